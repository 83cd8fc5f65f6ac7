//! Windows of the checkout, as the store knows them.

use jiff::Timestamp;

use super::portable::{Cells, Statement, values};
use super::{Result, Store};
use crate::domain::ReferenceNumber;

/// When the page of a window was last heard of, and when its payer left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutVisit {
    pub seen_at: Timestamp,
    /// The page's script has run: it will tell when the payer leaves.
    pub alive: bool,
    pub left_at: Option<Timestamp>,
    /// Which life of its page that was, if it was named.
    pub page_life: Option<String>,
}

impl CheckoutVisit {
    fn read(cells: &mut Cells) -> Result<Self> {
        Ok(Self {
            seen_at: cells.time()?,
            alive: cells.integer()? != 0,
            left_at: cells.maybe_time()?,
            page_life: cells.maybe_text()?,
        })
    }
}

impl Store {
    /// The window with this nonce; none if no such window showed this order.
    pub async fn visit(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
    ) -> Result<Option<CheckoutVisit>> {
        let sql = "select seen_at_ms, alive, left_at_ms, page_life from checkout_visits
                   where reference_number = ?1 and nonce = ?2";
        let statement = Statement::new(sql, values![reference.as_str(), nonce]);
        self.look_up(statement, CheckoutVisit::read).await
    }

    /// Whether another window shows this order: one whose script was heard of since the first time, or one that
    /// was loaded since the second.
    pub async fn is_open_elsewhere(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        heard_since: Timestamp,
        loaded_since: Timestamp,
    ) -> Result<bool> {
        let sql = "select 1 from checkout_visits where reference_number = ?1 and nonce <> ?2
                       and left_at_ms is null
                       and seen_at_ms >= case when alive then cast(?3 as bigint)
                           else cast(?4 as bigint) end limit 1";
        let values = values![reference.as_str(), nonce, heard_since, loaded_since];
        Ok(self.look_up(Statement::new(sql, values), Cells::integer).await?.is_some())
    }

    /// The window shows the order now; `alive` once its script asks for news. What a life of its page had on its
    /// way as it was left may come later, and is no return.
    pub async fn visit_seen(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        page_life: Option<&str>,
        alive: bool,
        at: Timestamp,
    ) -> Result<()> {
        let sql = format!(
            "insert into checkout_visits (reference_number, nonce, seen_at_ms, alive, page_life)
             values (?1, ?2, ?3, {alive}, ?4)
             on conflict (reference_number, nonce) do update
             set seen_at_ms = excluded.seen_at_ms,
                 alive = excluded.alive or checkout_visits.alive,
                 left_at_ms = null, due_at_ms = null, page_life = excluded.page_life
             where checkout_visits.left_at_ms is null
                 or checkout_visits.page_life is distinct from excluded.page_life
                 or excluded.page_life is null"
        );
        self.transact_one(sql, values![reference.as_str(), nonce, at, page_life]).await.map(drop)
    }

    /// The payer left the window, if it was ever seen and no later life of its page was; at `due` somebody looks
    /// whether for good.
    pub async fn visit_left(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        page_life: Option<&str>,
        at: Timestamp,
        due: Timestamp,
    ) -> Result<()> {
        let sql = "update checkout_visits
                   set left_at_ms = ?4, due_at_ms = ?5, page_life = coalesce(?3, page_life)
                   where reference_number = ?1 and nonce = ?2
                       and coalesce(page_life = ?3, true)";
        let values = values![reference.as_str(), nonce, page_life, at, due];
        self.transact_one(sql, values).await.map(drop)
    }

    /// Looks at a window again at `due`, if it is still the one that was left then.
    pub async fn visit_due(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        left_at: Timestamp,
        due: Timestamp,
    ) -> Result<()> {
        let sql = "update checkout_visits set due_at_ms = ?4
                   where reference_number = ?1 and nonce = ?2 and left_at_ms = ?3";
        self.transact_one(sql, values![reference.as_str(), nonce, left_at, due]).await.map(drop)
    }

    /// Nothing more is due for a window.
    pub async fn visit_ended(&self, reference: &ReferenceNumber, nonce: &str) -> Result<()> {
        let sql = "update checkout_visits set due_at_ms = null
                   where reference_number = ?1 and nonce = ?2";
        self.transact_one(sql, values![reference.as_str(), nonce]).await.map(drop)
    }

    /// Windows that nobody has heard of since then, a slice at a time; what is left waits for the next time.
    pub async fn forget_visits(&self, before: Timestamp) -> Result<()> {
        const SLICES_MAX: usize = 20;
        const SLICE: i64 = 5_000;
        let sql = "delete from checkout_visits where (reference_number, nonce) in (
                       select reference_number, nonce from checkout_visits
                       where seen_at_ms < ?1 limit ?2)";
        for _ in 0..SLICES_MAX {
            if !self.transact_one(sql, values![before, SLICE]).await? {
                break;
            }
        }
        Ok(())
    }
}
