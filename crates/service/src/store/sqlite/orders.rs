//! Orders on SQLite: created and found.

use std::sync::{Arc, LazyLock};

use rusqlite::{Row, params};

use super::Sqlite;
use super::order_ids::{IdKey, OrderIds};
use super::outbox::insert_event;
use super::portable::cells;
use super::statements::{Db, execute, row};
use crate::domain::{ApplicationId, ExternalTransactionId, NewOrder, Standing};
use crate::store::Result;
use crate::store::records::{self, Inserted, ORDER_COLUMNS, read_standing};

static BY_NUMBER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {ORDER_COLUMNS} from orders
         where id = ?1 and application_id = ?2 and external_transaction_id = ?3"
    )
});

/// Short, because callers' connections look them up by their text. The id itself is compared as well: a hash led there, and
/// perhaps a transaction that was taken back.
const STANDING: &str = "select reference_number, status, amount from orders
    where id = ?1 and application_id = ?2 and external_transaction_id = ?3";
const STANDING_BY_HASH: &str = "select reference_number, status, amount from orders
    where id = (select order_id from order_ids where id_hash = ?1 and application_id = ?2)
        and application_id = ?2 and external_transaction_id = ?3";

impl Sqlite {
    pub(in crate::store) async fn create_order(&self, order: Arc<NewOrder>) -> Result<Inserted> {
        let key = IdKey::new(order.application, order.external_transaction_id.as_str());
        let ids = Arc::clone(&self.order_ids);
        let announced = order.event.is_some();
        let work = move |db: &Db<'_>| create_order(db, &ids, &order, key);
        // Without an event it is one statement, which undoes itself when it fails.
        match announced {
            false => self.writer.run(work).await,
            true => self.writer.run_compound(work).await,
        }
    }

    pub(in crate::store) async fn standing(
        &self,
        application: ApplicationId,
        id: &ExternalTransactionId,
    ) -> Result<Option<Standing>> {
        let key = IdKey::new(application, id.as_str());
        self.lookups
            .run(|db| self.order_ids.look_up(db, &key, |number| standing(db, number, &key, id)))
    }

    /// Orders of any application with this id of a merchant.
    pub(in crate::store) fn orders_with_id(
        &self,
        id: &str,
    ) -> Result<Vec<(String, ApplicationId)>> {
        let sql = "select reference_number, application_id from orders
                   where id = ?1 and external_transaction_id = ?2";
        let read = |row: &Row<'_>| Ok((row.get(0)?, ApplicationId(row.get(1)?)));
        self.lookups.run(|db| {
            let numbers = self.order_ids.find_all(db, id)?.into_iter();
            let found = numbers.map(|number| row(db, sql, params![number, id], read));
            found.filter_map(Result::transpose).collect()
        })
    }
}

fn create_order(db: &Db<'_>, ids: &OrderIds, order: &NewOrder, key: IdKey) -> Result<Inserted> {
    if let Some(number) = ids.find(db, &key)? {
        let given = params![number, key.application, order.external_transaction_id.as_str()];
        let existing = row(db, BY_NUMBER.as_str(), given, cells)?;
        return Ok(match existing.map(|cells| cells.read(records::order)).transpose()? {
            Some(existing) => Inserted::Existing(existing),
            None => Inserted::ReferenceTaken,
        });
    }
    let added = execute(
        db,
        "insert into orders (reference_number, application_id, external_transaction_id, status,
             amount, quantity, payer_id, name, additional_info, request_id, created_at_ms,
             expires_at_ms)
         values (?1, ?2, ?3, 'PEN', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing",
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
        ],
    )?;
    if added == 0 {
        return Ok(Inserted::ReferenceTaken);
    }
    ids.add(key, db.last_insert_rowid());
    if let Some(event) = &order.event {
        insert_event(db, &order.reference_number, event)?;
    }
    Ok(Inserted::New)
}

fn standing(
    db: &Db<'_>,
    number: Option<i64>,
    key: &IdKey,
    id: &ExternalTransactionId,
) -> Result<Option<Standing>> {
    let read = |row: &Row<'_>| {
        let (reference, status) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
        Ok(read_standing(reference, status, row.get(2)?))
    };
    let found = match number {
        Some(number) => row(db, STANDING, params![number, key.application, id.as_str()], read),
        None => row(db, STANDING_BY_HASH, params![key.hash, key.application, id.as_str()], read),
    };
    found?.transpose()
}
