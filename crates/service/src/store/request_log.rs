//! What partners asked and what they were told.

use jiff::Timestamp;

use super::portable::{Cells, Statement, Value, values};
use super::{Result, Store, as_limit};
use crate::domain::PartnerId;

#[derive(Clone, Debug)]
pub struct LoggedRequest {
    pub request_id: String,
    pub at: Timestamp,
    pub partner: Option<PartnerId>,
    pub method: String,
    pub path: String,
    pub status: u16,
    pub error: Option<String>,
    /// Which fields were wrong, and how.
    pub details: Option<String>,
    pub took_us: i64,
    /// Without what is secret or personal.
    pub body: String,
}

const COLUMNS: &str =
    "request_id, at_ms, partner_id, method, path, status, error, details, took_us, body";

impl Store {
    pub async fn log_requests(&self, requests: Vec<LoggedRequest>) -> Result<()> {
        let sql = format!(
            "insert into request_log ({COLUMNS}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             on conflict do nothing"
        );
        let insert = |request: LoggedRequest| {
            let values = values![
                request.request_id,
                request.at,
                request.partner.map(|partner| partner.0),
                request.method,
                request.path,
                i64::from(request.status),
                request.error,
                request.details,
                request.took_us,
                request.body,
            ];
            Statement::new(sql.as_str(), values)
        };
        let inserts: Vec<_> = requests.into_iter().map(insert).collect();
        if inserts.is_empty() { Ok(()) } else { self.transact(inserts).await.map(drop) }
    }

    /// Some of the old ones: all at once could hold up everybody else.
    pub async fn forget_requests(&self, before: Timestamp) -> Result<()> {
        const SLICE: i64 = 20_000;
        let sql = "delete from request_log where request_id in (
                       select request_id from request_log where at_ms < ?1 limit ?2)";
        self.transact_one(sql, values![before, SLICE]).await.map(drop)
    }

    /// One request, if it is this partner's or the asker may see all.
    pub async fn logged_request(
        &self,
        partner: Option<PartnerId>,
        request_id: &str,
    ) -> Result<Option<LoggedRequest>> {
        let mut values = values![request_id];
        let own = own(partner, &mut values);
        let sql = format!("select {COLUMNS} from request_log where request_id = ?1{own}");
        self.select_one(Statement::new(sql, values), read).await
    }

    /// Newest first.
    pub async fn logged_requests(
        &self,
        partner: Option<PartnerId>,
        refused_only: bool,
        before: Option<(Timestamp, String)>,
        limit: usize,
    ) -> Result<Vec<LoggedRequest>> {
        // Many requests may share a millisecond: time alone would leave some of them out.
        let (before, before_id) = before.unwrap_or((Timestamp::MAX, String::new()));
        let mut values = values![before, as_limit(limit), before_id];
        let own = own(partner, &mut values);
        let refused = if refused_only { " and status >= 400" } else { "" };
        let sql = format!(
            "select {COLUMNS} from request_log
             where at_ms <= ?1 and (at_ms < ?1 or request_id < ?3){own}{refused}
             order by at_ms desc, request_id desc limit ?2"
        );
        self.select(Statement::new(sql, values), read).await
    }

    /// Notes when partners last asked for a token.
    pub async fn note_key_uses(&self, uses: Vec<(PartnerId, Timestamp)>) -> Result<()> {
        let sql = "insert into key_uses (partner_id, at_ms) values (?1, ?2)
                   on conflict (partner_id) do update set at_ms = excluded.at_ms";
        let note =
            |(partner, at): (PartnerId, Timestamp)| Statement::new(sql, values![partner.0, at]);
        let notes: Vec<_> = uses.into_iter().map(note).collect();
        if notes.is_empty() { Ok(()) } else { self.transact(notes).await.map(drop) }
    }

    pub async fn key_used_at(&self, partner: PartnerId) -> Result<Option<Timestamp>> {
        let sql = "select at_ms from key_uses where partner_id = ?1";
        self.select_one(Statement::new(sql, values![partner.0]), Cells::time).await
    }
}

fn own(partner: Option<PartnerId>, values: &mut Vec<Value>) -> String {
    let Some(partner) = partner else { return String::new() };
    values.push(partner.0.into());
    format!(" and partner_id = ?{}", values.len())
}

fn read(cells: &mut Cells) -> Result<LoggedRequest> {
    Ok(LoggedRequest {
        request_id: cells.text()?,
        at: cells.time()?,
        partner: cells.maybe_integer()?.map(PartnerId),
        method: cells.text()?,
        path: cells.text()?,
        status: u16::try_from(cells.integer()?).unwrap_or_default(),
        error: cells.maybe_text()?,
        details: cells.maybe_text()?,
        took_us: cells.integer()?,
        body: cells.text()?,
    })
}
