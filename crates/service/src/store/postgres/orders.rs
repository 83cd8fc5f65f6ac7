//! Orders, their changes and their events on PostgreSQL, many callers in one statement.

use std::collections::HashMap;

use deadpool_postgres::{Client, GenericClient};
use tokio_postgres::Row;

use super::batch::{Batch, column};
use super::outbox::insert_events;
use super::{Fault, Postgres};
use crate::domain::{
    ApplicationId, Change, ExternalTransactionId, Lane, NewOrder, Order, ReferenceNumber, Status,
};
use crate::store::records::{ORDER_COLUMNS, OrderRow};
use crate::store::{AuditRow, Committed, Created, NewException, Result, StoreError};

impl Postgres {
    pub(in crate::store) async fn create_order(&self, order: NewOrder) -> Result<Created> {
        self.creates.run(order).await?
    }

    pub(in crate::store) async fn order_by_external_id(
        &self,
        application: ApplicationId,
        id: ExternalTransactionId,
    ) -> Result<Option<Order>> {
        self.lookups.run((application, id)).await?
    }

    pub(in crate::store) async fn order_by_reference(
        &self,
        reference: &ReferenceNumber,
    ) -> Result<Option<Order>> {
        let sql = format!("select {ORDER_COLUMNS} from orders where reference_number = $1");
        let row = self
            .client()
            .await?
            .query_opt(&sql, &[&reference.as_str()])
            .await
            .map_err(Fault::from)?;
        row.map(|row| order_row(&row).read()).transpose()
    }

    pub(in crate::store) async fn commit(&self, change: Change) -> Result<Committed> {
        self.changes.run(change).await?
    }

    pub(in crate::store) async fn record_exception(&self, new: NewException) -> Result<bool> {
        let added = self
            .client()
            .await?
            .execute(
                "insert into exceptions (kind, application_id, reference_number, rail,
                     rail_payment_id, amount, detail, created_at_ms)
                 values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing",
                &[
                    &new.kind.as_str(),
                    &new.application.map(|id| id.0),
                    &new.reference_number.as_ref().map(ReferenceNumber::as_str),
                    &new.rail,
                    &new.rail_payment_id,
                    &new.amount,
                    &new.detail,
                    &new.at.as_millisecond(),
                ],
            )
            .await
            .map_err(Fault::from)?;
        Ok(added == 1)
    }

    pub(in crate::store) async fn audit_of(&self, subject: &str) -> Result<Vec<AuditRow>> {
        let rows = self
            .client()
            .await?
            .query(
                "select actor, action, before, after, cause, request_id from audit
                 where subject = $1 order by id",
                &[&subject],
            )
            .await
            .map_err(Fault::from)?;
        let read = |row: &Row| AuditRow {
            actor: row.get(0),
            action: row.get(1),
            before: row.get(2),
            after: row.get(3),
            cause: row.get(4),
            request_id: row.get(5),
        };
        Ok(rows.iter().map(read).collect())
    }
}

pub(super) struct CreateOrders;

impl Batch for CreateOrders {
    type Item = NewOrder;
    type Answer = Result<Created>;

    async fn run(
        db: &mut Client,
        orders: &[NewOrder],
    ) -> std::result::Result<Vec<Self::Answer>, Fault> {
        let announced: Vec<_> = orders.iter().filter(|order| order.event.is_some()).collect();
        let added = if announced.is_empty() {
            insert_orders(&*db, orders).await?
        } else {
            // Order and event in one transaction; events only for orders that were stored now.
            let tx = db.transaction().await?;
            let added = insert_orders(&tx, orders).await?;
            insert_events(&tx, &announced).await?;
            tx.commit().await?;
            added
        };
        if added == orders.len() as u64 {
            return Ok(orders.iter().map(|order| Ok(Created::New(order.clone().into()))).collect());
        }
        let ids: Vec<_> =
            orders.iter().map(|o| (o.application, o.external_transaction_id.clone())).collect();
        let stored = Lookups::run(db, &ids).await?;
        Ok(orders.iter().zip(stored).map(created).collect())
    }
}

/// How many of the orders are new.
async fn insert_orders(
    db: &impl GenericClient,
    orders: &[NewOrder],
) -> std::result::Result<u64, Fault> {
    // `do nothing` without a target covers both unique keys, so no order can fail the others.
    // Rows are taken in the order of their ids, so that two nodes cannot wait for each other.
    let insert = db
        .prepare_cached(
            "insert into orders (reference_number, application_id, external_transaction_id,
                 status, amount, quantity, payer_id, name, additional_info, request_id,
                 created_at_ms, expires_at_ms)
             select r, a, x, 'PEN', m, q, p, n, i, id, c, e
             from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[],
                 $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[])
                 as t (r, a, x, m, q, p, n, i, id, c, e)
             order by a, x
             on conflict do nothing",
        )
        .await?;
    let added = db
        .execute(
            &insert,
            &[
                &column(orders, |o| o.reference_number.as_str()),
                &column(orders, |o| o.application.0),
                &column(orders, |o| o.external_transaction_id.as_str()),
                &column(orders, |o| o.terms.amount.get()),
                &column(orders, |o| o.terms.quantity.get()),
                &column(orders, |o| o.terms.payer_id.as_str()),
                &column(orders, |o| o.terms.name.as_str()),
                &column(orders, |o| o.terms.additional_info.as_str()),
                &column(orders, |o| o.request_id.as_str()),
                &column(orders, |o| o.created_at.as_millisecond()),
                &column(orders, |o| o.expires_at.as_millisecond()),
            ],
        )
        .await?;
    Ok(added)
}

/// The row that has the id now says whose insert it was: the reference is ours, or somebody's.
fn created((order, stored): (&NewOrder, Result<Option<Order>>)) -> Result<Created> {
    Ok(match stored? {
        Some(stored) if stored.reference_number == order.reference_number => Created::New(stored),
        Some(stored) => Created::Existing(stored),
        None => Created::ReferenceTaken,
    })
}

pub(super) struct Lookups;

impl Batch for Lookups {
    type Item = (ApplicationId, ExternalTransactionId);
    type Answer = Result<Option<Order>>;

    async fn run(
        db: &mut Client,
        ids: &[Self::Item],
    ) -> std::result::Result<Vec<Self::Answer>, Fault> {
        let select = db
            .prepare_cached(&format!(
                "select {ORDER_COLUMNS} from orders
                 join unnest($1::bigint[], $2::text[]) as t (a, x)
                   on application_id = a and external_transaction_id = x"
            ))
            .await?;
        let rows = db
            .query(&select, &[&column(ids, |id| id.0.0), &column(ids, |id| id.1.as_str())])
            .await?;
        let found: HashMap<(i64, &str), &Row> =
            rows.iter().map(|row| ((row.get(1), row.get(2)), row)).collect();
        // An id may be asked for twice in a batch, so rows are lent, not given away.
        let answer = |id: &Self::Item| {
            let row = found.get(&(id.0.0, id.1.as_str()));
            row.map(|row| order_row(row).read()).transpose()
        };
        Ok(ids.iter().map(answer).collect())
    }
}

pub(super) struct Commits;

impl Batch for Commits {
    type Item = Change;
    type Answer = Result<Committed>;

    async fn run(
        db: &mut Client,
        changes: &[Change],
    ) -> std::result::Result<Vec<Result<Committed>>, Fault> {
        // The compare-and-set decides; of two changes of one order in this batch the first is
        // taken. Rows are locked in the order of their references, so that batches of two nodes
        // cannot wait for each other. Audit and event rows exist only for orders that moved, and
        // what still waited to be told of them is told by their new event.
        let settle = db
            .prepare_cached(
                "with given as (
                     select distinct on (reference) *
                     from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
                         $6::text[], $7::text[], $8::text[], $9::bytea[], $10::text[], $11::text[])
                         with ordinality as t (reference, application, status, at_ms, actor, cause,
                             request, event, body, url, origin, position)
                     order by reference, position
                 ), locked as materialized (
                     select o.reference_number from orders o join given
                         on o.reference_number = given.reference
                     where o.status = 'PEN' order by o.reference_number for update of o
                 ), moved as (
                     update orders o set status = given.status, settled_at_ms = given.at_ms
                     from given join locked on locked.reference_number = given.reference
                     where o.reference_number = given.reference and o.status = 'PEN'
                     returning given.*
                 ), audited as (
                     insert into audit (at_ms, actor, action, subject, before, after, cause, request_id)
                     select at_ms, actor, 'order.settle', reference, 'PEN', status, cause, request
                     from moved
                 ), queued as (
                     insert into outbox (id, application_id, reference_number, status, body,
                         webhook_url, origin, state, next_attempt_at_ms, queued_at_ms,
                         created_at_ms)
                     select event, application, reference, status, body, url, origin, 'queued',
                         at_ms, at_ms, at_ms
                     from moved
                 ), older as materialized (
                     select e.id, e.state from outbox e
                         join moved on e.reference_number = moved.reference
                     order by e.id for update of e
                 ), superseded as (
                     update outbox set latest = false,
                         state = case when older.state = 'queued' then 'superseded'
                             else older.state end
                     from older where outbox.id = older.id
                 )
                 select count(*) from moved",
            )
            .await?;
        db.query_one(
            &settle,
            &[
                &column(changes, |c| c.reference_number.as_str()),
                &column(changes, |c| c.application.0),
                &column(changes, |c| c.to.code()),
                &column(changes, |c| c.stamp.at.as_millisecond()),
                &column(changes, |c| c.stamp.actor.to_string()),
                &column(changes, |c| c.cause.as_str()),
                &column(changes, |c| c.stamp.request_id.as_str()),
                &column(changes, |c| c.event.id.as_str()),
                &column(changes, |c| c.event.body.as_slice()),
                &column(changes, |c| c.event.webhook_url.as_str()),
                &column(changes, |c| Lane::of(c.application, &c.event.webhook_url).origin),
            ],
        )
        .await?;
        outcomes(db, changes).await
    }
}

/// Whose change is it? The event in the outbox tells, also after a repeated try.
async fn outcomes(
    db: &Client,
    changes: &[Change],
) -> std::result::Result<Vec<Result<Committed>>, Fault> {
    let ask = db
        .prepare_cached(
            "select o.status, e.id is not null
             from unnest($1::text[], $2::text[]) with ordinality as t (reference, event, position)
             left join orders o on o.reference_number = t.reference
             left join outbox e on e.id = t.event
             order by position",
        )
        .await?;
    let rows = db
        .query(
            &ask,
            &[
                &column(changes, |c| c.reference_number.as_str()),
                &column(changes, |c| c.event.id.as_str()),
            ],
        )
        .await?;
    Ok(rows.iter().map(outcome).collect())
}

fn outcome(row: &Row) -> Result<Committed> {
    if row.get(1) {
        return Ok(Committed::Done);
    }
    let Some(status) = row.get::<_, Option<&str>>(0) else { return Ok(Committed::NoSuchOrder) };
    let status =
        Status::from_code(status).ok_or_else(|| StoreError::Corrupt(format!("status {status}")))?;
    Ok(Committed::Lost(status))
}

fn order_row(row: &Row) -> OrderRow {
    OrderRow {
        reference_number: row.get(0),
        application_id: row.get(1),
        external_transaction_id: row.get(2),
        status: row.get(3),
        amount: row.get(4),
        quantity: row.get(5),
        payer_id: row.get(6),
        name: row.get(7),
        additional_info: row.get(8),
        created_at_ms: row.get(9),
        expires_at_ms: row.get(10),
    }
}
