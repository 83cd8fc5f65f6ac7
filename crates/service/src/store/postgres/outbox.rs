//! The outbox on PostgreSQL: many dispatchers claim beside each other and skip what others hold.

use std::collections::HashMap;
use std::time::Duration;

use deadpool_postgres::{Client, GenericClient};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::batch::{Batch, column, run_until_told};
use super::portable::{self, closed};
use super::{Fault, Postgres, REAL_NOW_MS, Told, change, many};
use crate::domain::{ApplicationId, Event, EventId, Lane, NewOrder, ReferenceNumber, Steady};
use crate::store::outbox::{
    CLAIM_COLUMNS, ClaimRow, EVENT_COLUMNS, LEASE_MS, ReplayNote, ReplaySlice, SCANNED_MAX,
    Stretch, event, in_force, lane_due,
};
use crate::store::{
    Claimed, DeliveryAttempt, EventFilter, EventRecord, EventState, Feed, FeedPage, LaneDue,
    LeaseToken, Recorded, Result, Want, as_limit,
};

/// Our own nodes' writes that nobody sees yet: a commit may wait long for a standby.
const UNSEEN_FOR: &str =
    "select coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::float8
     from pg_stat_activity
     where datname = current_database() and application_name = 'svc' and backend_xid is not null";

/// Types of the parameters of `EventFilter::condition`.
const FILTER_TYPES: [&str; 6] = ["text", "bigint", "text", "text", "text", "text"];

impl Postgres {
    /// From lane to lane by the index: a lane with a million events costs no more than one with one.
    pub(in crate::store) async fn lanes(
        &self,
        after: Option<Lane>,
        limit: usize,
    ) -> Result<Vec<LaneDue>> {
        let (application, origin) =
            after.map_or((i64::MIN, String::new()), |lane| (lane.application.0, lane.origin));
        let db = self.client().await?;
        let rows = many(
            &db,
            "with recursive lanes as (
                 (select application_id, origin, next_attempt_at_ms from outbox
                  where state = 'queued' and (application_id, origin) > ($1, $2)
                  order by application_id, origin, next_attempt_at_ms limit 1)
                 union all
                 select next.* from lanes cross join lateral (
                     select application_id, origin, next_attempt_at_ms from outbox o
                     where state = 'queued'
                         and (o.application_id, o.origin) > (lanes.application_id, lanes.origin)
                     order by o.application_id, o.origin, o.next_attempt_at_ms limit 1) next
             )
             select application_id, origin, next_attempt_at_ms from lanes limit $3",
            &[&application, &origin, &as_limit(limit)],
        )
        .await?;
        rows.iter().map(|row| lane_due(row.get(0), row.get(1), row.get(2))).collect()
    }

    pub(in crate::store) async fn claim(
        &self,
        wants: Vec<Want>,
        lease: &LeaseToken,
        _: Steady,
    ) -> Result<Vec<Claimed>> {
        let db = self.client().await?;
        let in_force = in_force(REAL_NOW_MS);
        let rows = many(
            &db,
            &format!(
                "with due as materialized (
                     select picked.id
                     from unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
                         as want (application, origin, due_from_ms, due_by_ms, most)
                     cross join lateral (
                         select o.id from outbox o
                         where o.state = 'queued' and o.application_id = want.application
                             and o.origin = want.origin
                             and o.next_attempt_at_ms between want.due_from_ms and want.due_by_ms
                             and (o.lease_until_ms is null or not o.lease_until_ms {in_force})
                             and (o.status = 'PEN' or not exists (
                                 select 1 from outbox older
                                 where older.reference_number = o.reference_number
                                     and older.status = 'PEN'
                                     and older.lease_until_ms {in_force}))
                         order by o.next_attempt_at_ms limit want.most
                         for update of o skip locked) picked
                 )
                 update outbox set lease_token = $1, lease_until_ms = {REAL_NOW_MS} + {LEASE_MS},
                     attempts = attempts + 1
                 where id in (select id from due)
                 returning {CLAIM_COLUMNS}"
            ),
            &[
                &lease.as_str(),
                &column(&wants, |want| want.lane.application.0),
                &column(&wants, |want| want.lane.origin.as_str()),
                &column(&wants, |want| want.due_from.as_millisecond()),
                &column(&wants, |want| want.due_by.as_millisecond()),
                &column(&wants, |want| as_limit(want.most)),
            ],
        )
        .await?;
        let claimed: Result<Vec<_>> = rows.iter().map(|row| claim_row(row).read()).collect();
        let mut claimed = claimed?;
        // What is returned has no order.
        claimed.sort_by_key(|event| event.due_at);
        Ok(claimed)
    }

    pub(in crate::store) async fn record(
        &self,
        attempts: Vec<DeliveryAttempt>,
    ) -> Result<Vec<Recorded>> {
        Ok(run_until_told::<Records>(&self.pool, &mut None, Instant::now(), &attempts).await?)
    }

    pub(in crate::store) async fn give_back(
        &self,
        unsent: Vec<(EventId, LeaseToken)>,
    ) -> Result<()> {
        change(
            &self.client().await?,
            // In the order in which everybody takes them.
            "with held as materialized (
                 select o.id from outbox o
                 join unnest($1::text[], $2::text[]) as t (event, lease)
                     on o.id = t.event and o.lease_token = t.lease
                 order by o.id for update of o
             )
             update outbox o set lease_token = null, lease_until_ms = null,
                 attempts = attempts - 1
             from held where o.id = held.id",
            &[
                &column(&unsent, |(event, _)| event.as_str()),
                &column(&unsent, |(_, lease)| lease.as_str()),
            ],
        )
        .await?;
        Ok(())
    }

    pub(in crate::store) async fn events(
        &self,
        filter: EventFilter,
        limit: usize,
    ) -> Result<Vec<EventRecord>> {
        let sql = format!(
            "select {EVENT_COLUMNS} from outbox where {} order by id desc limit $7",
            condition(&filter)
        );
        let (after, to) = filter.ids();
        let rows = self
            .client()
            .await?
            .query(
                &sql,
                &[
                    &filter.id.as_ref().map(EventId::as_str),
                    &filter.application.map(|id| id.0),
                    &filter.reference_number.as_ref().map(ReferenceNumber::as_str),
                    &filter.state.map(EventState::as_str),
                    &after,
                    &to,
                    &as_limit(limit),
                ],
            )
            .await
            .map_err(Fault::from)?;
        rows.iter().map(|row| portable::cells(row)?.read(event)).collect()
    }

    pub(in crate::store) async fn replay(
        &self,
        filter: EventFilter,
        after: String,
        at: jiff::Timestamp,
        note: ReplayNote,
    ) -> Result<ReplaySlice> {
        let mut db = self.client().await?;
        let transaction = db.transaction().await.map_err(Fault::from)?;
        let (first, end) = filter.ids();
        let after = after.max(first);
        let goes_on_after = match filter.is_narrow() {
            true => None,
            false => {
                let of = filter.application;
                stretch(&transaction, of, (&after, &end)).await?.goes_on_after()
            }
        };
        // Locked in the order in which everybody takes them.
        let sql = format!(
            "update outbox set state = 'queued', failures = 0, queued_at_ms = $7,
                 next_attempt_at_ms = $7
             where id in (select id from outbox where {} and latest order by id for update)",
            condition(&filter)
        );
        let replayed = transaction
            .execute(
                &sql,
                &[
                    &filter.id.as_ref().map(EventId::as_str),
                    &filter.application.map(|id| id.0),
                    &filter.reference_number.as_ref().map(ReferenceNumber::as_str),
                    &filter.state.map(EventState::as_str),
                    &after,
                    goes_on_after.as_ref().unwrap_or(&end),
                    &at.as_millisecond(),
                ],
            )
            .await
            .map_err(Fault::from)?;
        if replayed > 0 {
            portable::execute(&transaction, &note.row(at, replayed)).await?;
        }
        transaction.commit().await.map_err(Fault::from)?;
        Ok(ReplaySlice { replayed, goes_on_after })
    }

    /// The stretch first: an event that is committed between the two reads is then in the second.
    pub(in crate::store) async fn feed(&self, page: FeedPage) -> Result<Feed> {
        let after = page.after.as_ref().map_or("", EventId::as_str);
        let _feeding = self.feeders.acquire().await.map_err(|_| closed())?;
        let db = self.client().await?;
        // In a statement of its own: what is committed after it is seen by the next ones.
        let row = db.query_one(UNSEEN_FOR, &[]).await.map_err(Fault::from)?;
        let unseen_for = Duration::try_from_secs_f64(row.get(0)).unwrap_or_default();
        let (_, end) = EventFilter::default().ids();
        let stretch = stretch(&db, Some(page.application), (after, &end)).await?;
        let sql = format!(
            "select {EVENT_COLUMNS} from outbox where application_id = $1 and id > $2 and id <= $3
                 and (not $4 or state in ('queued', 'exhausted'))
             order by id limit $5"
        );
        let limit = as_limit(page.limit.saturating_add(1));
        let rows = db
            .query(
                &sql,
                &[&page.application.0, &after, &stretch.last_id, &page.undelivered, &limit],
            )
            .await
            .map_err(Fault::from)?;
        let events =
            rows.iter().map(|row| portable::cells(row)?.read(event)).collect::<Result<_>>()?;
        Ok(Feed::of(events, stretch, page.limit, unseen_for))
    }
}

pub(super) struct Records;

impl Batch for Records {
    type Item = DeliveryAttempt;
    type Answer = Recorded;

    /// Rows are locked in the order of their ids, so that two batches cannot wait for each other;
    /// once locked they are read as they are now, also if a newer event came a moment ago. One that
    /// was queued anew since it was claimed is to be sent once more, whatever came of this one.
    /// A repeated try finds the lease gone and says so, which harms nobody.
    async fn run(db: &mut Client, attempts: &[DeliveryAttempt]) -> Told<Vec<Recorded>> {
        let rows = many(
            db,
            "with given as (
                 select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[],
                     $5::bigint[], $6::bigint[], $7::text[], $8::bytea[], $9::text[],
                     $10::bigint[], $11::bigint[])
                     as t (event, lease, attempt, at_ms, http_status, latency_ms, error, answer,
                         state, next_ms, queued_ms)
             ), noted as (
                 insert into delivery_attempts (event_id, attempt, at_ms, http_status,
                     latency_ms, error, answer_start)
                 select event, attempt, at_ms, http_status, latency_ms, error, answer from given
                 on conflict do nothing
             ), locked as materialized (
                 select given.* from outbox o join given
                     on o.id = given.event and o.lease_token = given.lease
                 order by o.id for update of o
             )
             update outbox o set lease_token = null, lease_until_ms = null,
                 next_attempt_at_ms = case when o.queued_at_ms <> locked.queued_ms
                     then o.next_attempt_at_ms else locked.next_ms end,
                 failures = case when o.queued_at_ms <> locked.queued_ms then o.failures
                     else o.failures + (locked.state <> 'delivered')::int end,
                 state = case when o.queued_at_ms <> locked.queued_ms
                     or o.state = 'superseded' and locked.state <> 'delivered'
                     then o.state else locked.state end
             from locked where o.id = locked.event and o.lease_token = locked.lease
             returning o.id, not o.latest",
            &[
                &column(attempts, |a| a.event.as_str()),
                &column(attempts, |a| a.lease.as_str()),
                &column(attempts, |a| i64::from(a.number)),
                &column(attempts, |a| a.at.as_millisecond()),
                &column(attempts, |a| a.http_status.map(i64::from)),
                &column(attempts, |a| a.latency_ms),
                &column(attempts, |a| a.error.as_deref()),
                &column(attempts, |a| a.answer_start.as_slice()),
                &column(attempts, |a| a.verdict.state().as_str()),
                &column(attempts, |a| a.verdict.next_attempt_at(a.at).as_millisecond()),
                &column(attempts, |a| a.queued_at.as_millisecond()),
            ],
        )
        .await?;
        let held: HashMap<&str, bool> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let recorded = |attempt: &DeliveryAttempt| match held.get(attempt.event.as_str()) {
            Some(false) => Recorded::Done,
            Some(true) => Recorded::Superseded,
            None => Recorded::LeaseLost,
        };
        Ok(attempts.iter().map(recorded).collect())
    }
}

/// The `PEN` events of those orders that are new: their row carries the reference we gave it, and
/// an order that is replayed keeps the one it had.
pub(super) async fn insert_events(db: &impl GenericClient, announced: &[&NewOrder]) -> Told<()> {
    let events: Vec<(&NewOrder, &Event)> =
        announced.iter().filter_map(|order| Some((*order, order.event.as_ref()?))).collect();
    change(
        db,
        "insert into outbox (id, application_id, reference_number, status, body, webhook_url,
             origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
         select i, a, r, s, b, u, h, 'queued', t, t, t
         from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bytea[],
             $6::text[], $7::text[], $8::bigint[], $9::text[]) as g (i, a, r, s, b, u, h, t, x)
         join orders o on o.reference_number = r and o.application_id = a
             and o.external_transaction_id = x
         on conflict do nothing",
        &[
            &column(&events, |(_, event)| event.id.as_str()),
            &column(&events, |(_, event)| event.lane.application.0),
            &column(&events, |(order, _)| order.reference_number.as_str()),
            &column(&events, |(_, event)| event.status.code()),
            &column(&events, |(_, event)| event.body.as_slice()),
            &column(&events, |(_, event)| event.webhook_url.as_str()),
            &column(&events, |(_, event)| event.lane.origin.as_str()),
            &column(&events, |(_, event)| event.at.as_millisecond()),
            &column(&events, |(order, _)| order.external_transaction_id.as_str()),
        ],
    )
    .await?;
    Ok(())
}

/// The event of an order whose row the caller holds.
pub(super) async fn insert_event(
    db: &impl GenericClient,
    reference: &ReferenceNumber,
    event: &Event,
) -> Told<()> {
    change(
        db,
        "insert into outbox (id, application_id, reference_number, status, body, webhook_url,
             origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
         values ($1, $2, $3, $4, $5, $6, $7, 'queued', $8, $8, $8)",
        &[
            &event.id.as_str(),
            &event.lane.application.0,
            &reference.as_str(),
            &event.status.code(),
            &event.body,
            &event.webhook_url,
            &event.lane.origin,
            &event.at.as_millisecond(),
        ],
    )
    .await?;
    Ok(())
}

/// Statements with a condition are not kept: they are planned anew for what is asked this time.
fn condition(filter: &EventFilter) -> String {
    filter.condition(|place| format!("${place}::{}", FILTER_TYPES[place - 1]))
}

/// The next events in a range of ids.
async fn stretch(
    db: &impl GenericClient,
    application: Option<ApplicationId>,
    (after, to): (&str, &str),
) -> Result<Stretch> {
    let of = match application {
        Some(_) => "application_id = $1",
        None => "$1::bigint is null",
    };
    let sql = format!(
        "select max(id), count(*) from (select id from outbox
         where {of} and id > $2 and id <= $3 order by id limit $4) scanned"
    );
    let row = db
        .query_one(&sql, &[&application.map(|id| id.0), &after, &to, &SCANNED_MAX])
        .await
        .map_err(Fault::from)?;
    Ok(Stretch { last_id: row.get(0), rows: row.get(1) })
}

fn claim_row(row: &Row) -> ClaimRow {
    ClaimRow {
        id: row.get(0),
        application_id: row.get(1),
        origin: row.get(2),
        body: row.get(3),
        webhook_url: row.get(4),
        attempts: row.get(5),
        failures: row.get(6),
        next_attempt_at_ms: row.get(7),
        queued_at_ms: row.get(8),
        created_at_ms: row.get(9),
    }
}
