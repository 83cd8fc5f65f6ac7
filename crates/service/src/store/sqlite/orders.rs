//! Orders and their history on SQLite.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::digest::{SHA256, digest};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::outbox::insert_event;
use super::{Sqlite, execute, row, rows};
use crate::domain::{ApplicationId, ExternalTransactionId, NewOrder, Order, ReferenceNumber};
use crate::store::portable::{Statement, values};
use crate::store::records::{ORDER_COLUMNS, OrderRow};
use crate::store::{AuditRow, Created, Result, time};

static BY_REFERENCE: LazyLock<String> =
    LazyLock::new(|| format!("select {ORDER_COLUMNS} from orders where reference_number = ?1"));

static BY_EXTERNAL_ID: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {ORDER_COLUMNS} from orders
         where id_hash = ?1 and application_id = ?2 and external_transaction_id = ?3"
    )
});

impl Sqlite {
    pub(in crate::store) async fn create_order(&self, order: NewOrder) -> Result<Created> {
        // The writer has enough to do: what it stored is made into an answer here.
        let order = Arc::new(order);
        let shared = Arc::clone(&order);
        let id_hash = id_hash(order.external_transaction_id.as_str());
        let work = move |db: &Connection| create_order(db, &shared, id_hash);
        // Without an event it is one statement, which undoes itself when it fails.
        let inserted = match &order.event {
            None => self.writer.run(work).await?,
            Some(_) => self.writer.run_compound(work).await?,
        };
        Ok(match inserted {
            Inserted::New => Created::New(Arc::unwrap_or_clone(order).into()),
            Inserted::Not(Some(existing)) => Created::Existing(existing),
            Inserted::Not(None) => Created::ReferenceTaken,
        })
    }

    pub(in crate::store) async fn order_by_external_id(
        &self,
        application: ApplicationId,
        id: ExternalTransactionId,
    ) -> Result<Option<Order>> {
        self.lookups.run(|db| order_by_external_id(db, application, &id))
    }

    pub(in crate::store) async fn order_by_reference(
        &self,
        reference: &ReferenceNumber,
    ) -> Result<Option<Order>> {
        self.lookups.run(|db| {
            let found = row(db, &BY_REFERENCE, [reference.as_str()], order_row)?;
            found.map(OrderRow::read).transpose()
        })
    }

    pub(in crate::store) async fn audit_of(&self, subject: &str) -> Result<Vec<AuditRow>> {
        let subject = subject.to_owned();
        let sql = "select actor, action, before, after, cause, request_id, at_ms from audit
                   where subject = ?1 order by id";
        let read = |row: &Row<'_>| {
            Ok(AuditRow {
                actor: row.get(0)?,
                action: row.get(1)?,
                before: row.get(2)?,
                after: row.get(3)?,
                cause: row.get(4)?,
                request_id: row.get(5)?,
                at: time(row.get(6)?).unwrap_or(Timestamp::MIN),
            })
        };
        self.reader.run(move |db| rows(db, sql, [&subject], read)).await
    }
}

/// What stands for a merchant's id in the index: short, so that more of it fits the writer's cache.
pub(super) type IdHash = [u8; 10];

pub(super) fn id_hash(id: &str) -> IdHash {
    let digest = digest(&SHA256, id.as_bytes());
    *digest.as_ref().first_chunk().expect("a SHA-256 has 32 bytes")
}

/// Orders of any application with this id of a merchant.
pub(in crate::store) fn orders_with_id(id: &str) -> Statement {
    Statement::new(
        "select reference_number, application_id from orders
         where id_hash = ?1 and external_transaction_id = ?2",
        values![id_hash(id).to_vec(), id],
    )
}

enum Inserted {
    New,
    /// Because of this order with the same id, or else because of its reference.
    Not(Option<Order>),
}

fn create_order(db: &Connection, order: &NewOrder, id_hash: IdHash) -> Result<Inserted> {
    let added = execute(
        db,
        "insert into orders (reference_number, application_id, external_transaction_id, id_hash,
             status, amount, quantity, payer_id, name, additional_info, request_id, created_at_ms,
             expires_at_ms)
         values (?1, ?2, ?3, ?12, 'PEN', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing",
        params![
            order.reference_number.as_str(),
            order.application.0,
            order.external_transaction_id.as_str(),
            order.terms.amount.get(),
            order.terms.quantity.get(),
            order.terms.payer_id.as_str(),
            order.terms.name.as_str(),
            order.terms.additional_info.as_str(),
            order.request_id,
            order.created_at.as_millisecond(),
            order.expires_at.as_millisecond(),
            id_hash,
        ],
    )?;
    if added == 1 {
        if let Some(event) = &order.event {
            insert_event(db, order.application, &order.reference_number, event)?;
        }
        return Ok(Inserted::New);
    }
    order_by_external_id(db, order.application, &order.external_transaction_id).map(Inserted::Not)
}

fn order_by_external_id(
    db: &Connection,
    application: ApplicationId,
    id: &ExternalTransactionId,
) -> Result<Option<Order>> {
    let given = params![id_hash(id.as_str()), application.0, id.as_str()];
    row(db, &BY_EXTERNAL_ID, given, order_row)?.map(OrderRow::read).transpose()
}

pub(super) fn order_row(row: &Row<'_>) -> rusqlite::Result<OrderRow> {
    Ok(OrderRow {
        reference_number: row.get(0)?,
        application_id: row.get(1)?,
        external_transaction_id: row.get(2)?,
        status: row.get(3)?,
        amount: row.get(4)?,
        quantity: row.get(5)?,
        payer_id: row.get(6)?,
        name: row.get(7)?,
        additional_info: row.get(8)?,
        created_at_ms: row.get(9)?,
        expires_at_ms: row.get(10)?,
    })
}
