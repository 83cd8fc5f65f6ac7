//! Orders on PostgreSQL: created and found, many callers in one statement.

use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::{Client, GenericClient};
use tokio_postgres::Row;

use super::batch::{Batch, column};
use super::outbox::insert_events;
use super::portable::cells;
use super::{Param, Postgres, Told, change, many};
use crate::domain::{ApplicationId, ExternalTransactionId, NewOrder, Standing};
use crate::store::Result;
use crate::store::portable::{Statement, values};
use crate::store::records::{Inserted, ORDER_COLUMNS, order, read_standing};

impl Postgres {
    pub(in crate::store) async fn create_order(&self, order: Arc<NewOrder>) -> Result<Inserted> {
        self.creates.run(order).await?
    }

    pub(in crate::store) async fn standing(
        &self,
        application: ApplicationId,
        id: &ExternalTransactionId,
    ) -> Result<Option<Standing>> {
        self.standings.run((application, id.clone())).await?
    }
}

/// Orders of any application with this id of a merchant.
pub(in crate::store) fn orders_with_id(id: &str) -> Statement {
    Statement::new(
        "select o.reference_number, o.application_id from applications a
         join orders o on o.application_id = a.id and o.external_transaction_id = ?1",
        values![id],
    )
}

pub(super) struct CreateOrders;

impl Batch for CreateOrders {
    type Item = Arc<NewOrder>;
    type Answer = Result<Inserted>;

    async fn run(db: &mut Client, orders: &[Arc<NewOrder>]) -> Told<Vec<Self::Answer>> {
        let added = match insert(db, orders, Existing::ById).await {
            // Eighty random bits have come twice, or this batch has, its connection cut, and the first is not done yet:
            // once more, and leave out those as well.
            Err(fault) if fault.is_taken() => insert(db, orders, Existing::ByAnything).await?,
            told => told?,
        };
        if added == orders.len() as u64 {
            return Ok(orders.iter().map(|_| Ok(Inserted::New)).collect());
        }
        created(db, orders).await
    }
}

/// How many of the orders are new. Order and event are one transaction; events only for orders that were stored now.
async fn insert(db: &mut Client, orders: &[Arc<NewOrder>], existing: Existing) -> Told<u64> {
    let announced: Vec<&NewOrder> =
        orders.iter().map(AsRef::as_ref).filter(|order| order.event.is_some()).collect();
    if announced.is_empty() {
        return insert_orders(&*db, orders, existing).await;
    }
    let tx = db.transaction().await?;
    let added = insert_orders(&tx, orders, existing).await?;
    insert_events(&tx, &announced).await?;
    tx.commit().await?;
    Ok(added)
}

/// Which orders are left out as stored before. Each key that is asked for costs a look into its index before the
/// insert looks again.
#[derive(Clone, Copy)]
enum Existing {
    ById,
    /// Or by the reference: no order can fail the others.
    ByAnything,
}

async fn insert_orders(
    db: &impl GenericClient,
    orders: &[Arc<NewOrder>],
    existing: Existing,
) -> Told<u64> {
    let key = match existing {
        Existing::ById => "(application_id, external_transaction_id)",
        Existing::ByAnything => "",
    };
    // Rows are taken in the order of their ids, so that two nodes cannot wait for each other. The server needs a fifth
    // of its time for a row to sort them.
    let mut orders: Vec<_> = orders.iter().collect();
    orders.sort_unstable_by_key(|o| (o.application.0, o.external_transaction_id.as_str()));
    let sql = format!(
        "insert into orders (reference_number, application_id, external_transaction_id, status,
             amount, quantity, payer_id, name, additional_info, request_id, created_at_ms,
             expires_at_ms)
         select unnest($1::text[]), unnest($2::bigint[]), unnest($3::text[]), 'PEN',
             unnest($4::bigint[]), unnest($5::bigint[]), unnest($6::text[]), unnest($7::text[]),
             unnest($8::text[]), unnest($9::text[]), unnest($10::bigint[]), unnest($11::bigint[])
         on conflict {key} do nothing"
    );
    let given: [&Param<'_>; 11] = [
        &column(&orders, |o| o.reference_number.as_str()),
        &column(&orders, |o| o.application.0),
        &column(&orders, |o| o.external_transaction_id.as_str()),
        &column(&orders, |o| o.terms.amount.get()),
        &column(&orders, |o| o.terms.quantity.get()),
        &column(&orders, |o| o.terms.payer_id.as_str()),
        &column(&orders, |o| o.terms.name.as_str()),
        &column(&orders, |o| o.terms.additional_info.as_str()),
        &column(&orders, |o| o.request_id.as_str()),
        &column(&orders, |o| o.created_at.as_millisecond()),
        &column(&orders, |o| o.expires_at.as_millisecond()),
    ];
    change(db, &sql, &given).await
}

/// The row that has the id now says whose insert it was: the reference is ours, or somebody's.
async fn created(db: &Client, orders: &[Arc<NewOrder>]) -> Told<Vec<Result<Inserted>>> {
    let sql = format!(
        "select {ORDER_COLUMNS} from orders
         join unnest($1::bigint[], $2::text[]) as t (a, x)
           on application_id = a and external_transaction_id = x"
    );
    let rows = many(
        db,
        &sql,
        &[
            &column(orders, |o| o.application.0),
            &column(orders, |o| o.external_transaction_id.as_str()),
        ],
    )
    .await?;
    let stored: HashMap<(i64, &str), &Row> =
        rows.iter().map(|row| ((row.get(1), row.get(2)), row)).collect();
    // An id may come twice in a batch, so rows are lent, not given away.
    let created = |new: &Arc<NewOrder>| {
        let row = stored.get(&(new.application.0, new.external_transaction_id.as_str()));
        Ok(match row.map(|row| cells(row)?.read(order)).transpose()? {
            Some(stored) if stored.reference_number == new.reference_number => Inserted::New,
            Some(stored) => Inserted::Existing(stored),
            None => Inserted::ReferenceTaken,
        })
    };
    Ok(orders.iter().map(created).collect())
}

pub(super) struct Standings;

impl Batch for Standings {
    type Item = (ApplicationId, ExternalTransactionId);
    type Answer = Result<Option<Standing>>;

    async fn run(db: &mut Client, ids: &[Self::Item]) -> Told<Vec<Self::Answer>> {
        // By the place of each in the batch: no id has to come back.
        let rows = many(
            db,
            "select place, reference_number, status, amount
             from unnest($1::bigint[], $2::text[]) with ordinality as t (a, x, place)
             join orders on application_id = a and external_transaction_id = x",
            &[&column(ids, |id| id.0.0), &column(ids, |id| id.1.as_str())],
        )
        .await?;
        let mut answers: Vec<_> = ids.iter().map(|_| Ok(None)).collect();
        for row in rows {
            let place = row.get::<_, i64>(0).unsigned_abs() as usize;
            answers[place - 1] = read_standing(row.get(1), row.get(2), row.get(3)).map(Some);
        }
        Ok(answers)
    }
}
