//! Windows of the checkout, as the store knows them.

use jiff::Timestamp;

use super::portable::{Statement, values};
use super::{Result, Store, time};

/// When the page of a window was last heard of, and when its payer left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckoutVisit {
    pub seen_at: Timestamp,
    /// The page's script has run: it will tell when the payer leaves.
    pub alive: bool,
    pub left_at: Option<Timestamp>,
}

impl CheckoutVisit {
    pub(super) fn read(seen_at_ms: i64, alive: bool, left_at_ms: Option<i64>) -> Result<Self> {
        let left_at = left_at_ms.map(time).transpose()?;
        Ok(Self { seen_at: time(seen_at_ms)?, alive, left_at })
    }
}

impl Store {
    /// Windows that nobody has heard of since then; some of them, and the others the next time.
    pub async fn forget_visits(&self, before: Timestamp) -> Result<()> {
        let sql = "delete from checkout_visits where (reference_number, nonce) in (
                       select reference_number, nonce from checkout_visits
                       where seen_at_ms < ?1 limit 5000)";
        self.transact(vec![Statement::new(sql, values![before])]).await.map(drop)
    }
}
