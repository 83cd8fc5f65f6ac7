//! The outbox on SQLite: the single writer claims, so that nobody can claim beside it.

use std::time::Duration;

use rusqlite::{Row, params, params_from_iter};

use super::Sqlite;
use super::portable::cells;
use super::statements::{Db, execute, row, rows};
use crate::domain::{ApplicationId, Event, EventId, Lane, ReferenceNumber, Steady};
use crate::store::outbox::{
    CLAIM_COLUMNS, ClaimRow, EVENT_COLUMNS, LEASE_MS, ReplayNote, ReplaySlice, SCANNED_MAX,
    Stretch, event, in_force, lane_due,
};
use crate::store::portable::{Statement, each};
use crate::store::{
    Claimed, DeliveryAttempt, EventFilter, EventRecord, EventState, Feed, FeedPage, LaneDue,
    LeaseToken, Recorded, Result, Want, as_limit,
};

impl Sqlite {
    pub(in crate::store) async fn lanes(
        &self,
        after: Option<Lane>,
        limit: usize,
    ) -> Result<Vec<LaneDue>> {
        self.reader.run(move |db| lanes(db, after.as_ref(), limit)).await
    }

    pub(in crate::store) async fn claim(
        &self,
        wants: Vec<Want>,
        lease: &LeaseToken,
        now: Steady,
    ) -> Result<Vec<Claimed>> {
        let lease = lease.clone();
        self.writer
            .run_compound(move |db| {
                let mut claimed = Vec::new();
                for want in &wants {
                    claim(db, want, (&lease, now), &mut claimed)?;
                }
                Ok(claimed)
            })
            .await
    }

    pub(in crate::store) async fn record(
        &self,
        attempts: Vec<DeliveryAttempt>,
    ) -> Result<Vec<Recorded>> {
        self.writer
            .run_compound(move |db| attempts.iter().map(|attempt| record(db, attempt)).collect())
            .await
    }

    pub(in crate::store) async fn give_back(
        &self,
        unsent: Vec<(EventId, LeaseToken)>,
    ) -> Result<()> {
        let sql = "update outbox set lease_token = null, lease_until_ms = null,
                       attempts = attempts - 1
                   where id = ?1 and lease_token = ?2";
        self.writer
            .run_compound(move |db| {
                unsent.iter().try_for_each(|(event, lease)| {
                    execute(db, sql, [event.as_str(), lease.as_str()]).map(drop)
                })
            })
            .await
    }

    pub(in crate::store) async fn events(
        &self,
        filter: EventFilter,
        limit: usize,
    ) -> Result<Vec<EventRecord>> {
        let matches = filter.condition(|place| format!("?{place}"));
        let sql =
            format!("select {EVENT_COLUMNS} from outbox where {matches} order by id desc limit ?7");
        self.reader
            .run(move |db| {
                let (id, application, reference, state) = parameters(&filter);
                let ((after, to), limit) = (filter.ids(), as_limit(limit));
                let given = params![id, application, reference, state, after, to, limit];
                each(rows(db, &sql, given, cells)?, event)
            })
            .await
    }

    pub(in crate::store) async fn replay(
        &self,
        filter: EventFilter,
        after: String,
        at: jiff::Timestamp,
        note: ReplayNote,
    ) -> Result<ReplaySlice> {
        let matches = filter.condition(|place| format!("?{place}"));
        let sql = format!(
            "update outbox set state = 'queued', failures = 0, queued_at_ms = ?7,
                 next_attempt_at_ms = ?7
             where {matches} and latest"
        );
        self.writer
            .run_compound(move |db| {
                let (first, end) = filter.ids();
                let after = after.clone().max(first);
                let goes_on_after = match filter.is_narrow() {
                    true => None,
                    false => stretch(db, filter.application, (&after, &end))?.goes_on_after(),
                };
                let (id, application, reference, state) = parameters(&filter);
                let (to, at_ms) = (goes_on_after.as_ref().unwrap_or(&end), at.as_millisecond());
                let given = params![id, application, reference, state, after, to, at_ms];
                let replayed = execute(db, &sql, given)? as u64;
                if replayed > 0 {
                    let Statement { sql, values } = note.row(at, replayed);
                    execute(db, &sql, params_from_iter(&values))?;
                }
                Ok(ReplaySlice { replayed, goes_on_after })
            })
            .await
    }

    pub(in crate::store) async fn feed(&self, page: FeedPage) -> Result<Feed> {
        let unseen_for = self.under_way.lasts();
        self.feeder.run(move |db| feed(db, &page, unseen_for)).await
    }
}

/// The next events in a range of ids.
fn stretch(
    db: &Db<'_>,
    application: Option<ApplicationId>,
    (after, to): (&str, &str),
) -> Result<Stretch> {
    let of = if application.is_some() { "application_id = ?1" } else { "?1 is null" };
    let sql = format!(
        "select max(id), count(*) from (select id from outbox
             where {of} and id > ?2 and id <= ?3 order by id limit ?4)"
    );
    let given = params![application.map(|id| id.0), after, to, SCANNED_MAX];
    let read = |row: &Row<'_>| Ok(Stretch { last_id: row.get(0)?, rows: row.get(1)? });
    Ok(row(db, &sql, given, read)?.unwrap_or(Stretch { last_id: None, rows: 0 }))
}

/// From lane to lane by the index: a lane with a million events costs no more than one with one.
fn lanes(db: &Db<'_>, after: Option<&Lane>, limit: usize) -> Result<Vec<LaneDue>> {
    // With the time: of (application_id, origin) alone SQLite goes to the lane's first event and reads on.
    let sql = "select application_id, origin, next_attempt_at_ms from outbox
               where state = 'queued' and (application_id, origin, next_attempt_at_ms) > (?1, ?2, ?3)
               order by application_id, origin, next_attempt_at_ms limit 1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let mut at =
        after.map_or((i64::MIN, String::new()), |lane| (lane.application.0, lane.origin.clone()));
    let mut found = Vec::new();
    while found.len() < limit {
        let given = params![at.0, at.1, i64::MAX];
        let Some((application, origin, due_at_ms)) = row(db, sql, given, read)? else {
            break;
        };
        at = (application, origin);
        found.push(lane_due(at.0, at.1.clone(), due_at_ms)?);
    }
    Ok(found)
}

/// Read, then marked one by one: what `returning` gives goes through a temporary table first.
fn claim(
    db: &Db<'_>,
    want: &Want,
    (lease, now): (&LeaseToken, Steady),
    into: &mut Vec<Claimed>,
) -> Result<()> {
    let in_force = in_force("?6");
    let due = format!(
        "select rowid, {CLAIM_COLUMNS} from outbox due
         where state = 'queued' and application_id = ?1 and origin = ?2
             and next_attempt_at_ms between ?3 and ?4
             and (lease_until_ms is null or not lease_until_ms {in_force})
             and (status = 'PEN' or not exists (
                 select 1 from outbox older
                 where older.reference_number = due.reference_number
                     and older.status = 'PEN' and older.lease_until_ms {in_force}))
         order by next_attempt_at_ms limit ?5"
    );
    let given = params![
        want.lane.application.0,
        want.lane.origin,
        want.due_from.as_millisecond(),
        want.due_by.as_millisecond(),
        as_limit(want.most),
        now.as_millisecond(),
    ];
    let read = |row: &Row<'_>| {
        let claim = ClaimRow {
            id: row.get(1)?,
            application_id: row.get(2)?,
            origin: row.get(3)?,
            body: row.get(4)?,
            webhook_url: row.get(5)?,
            attempts: row.get::<_, i64>(6)? + 1,
            failures: row.get(7)?,
            next_attempt_at_ms: row.get(8)?,
            queued_at_ms: row.get(9)?,
            created_at_ms: row.get(10)?,
        };
        Ok((row.get::<_, i64>(0)?, claim))
    };
    let mark = "update outbox set lease_token = ?1, lease_until_ms = ?2, attempts = attempts + 1
                where rowid = ?3";
    let until_ms = now.as_millisecond() + LEASE_MS;
    for (rowid, claimed) in rows(db, &due, given, read)? {
        execute(db, mark, params![lease.as_str(), until_ms, rowid])?;
        into.push(claimed.read()?);
    }
    Ok(())
}

fn record(db: &Db<'_>, attempt: &DeliveryAttempt) -> Result<Recorded> {
    execute(
        db,
        "insert into delivery_attempts (event_id, attempt, at_ms, http_status, latency_ms, error,
             answer_start)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing",
        params![
            attempt.event.as_str(),
            attempt.number,
            attempt.at.as_millisecond(),
            attempt.http_status,
            attempt.latency_ms,
            attempt.error,
            attempt.answer_start,
        ],
    )?;
    let held = row(
        db,
        "select rowid, latest from outbox where id = ?1 and lease_token = ?2",
        [attempt.event.as_str(), attempt.lease.as_str()],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)),
    )?;
    let Some((rowid, latest)) = held else { return Ok(Recorded::LeaseLost) };
    execute(
        db,
        // Queued anew since it was claimed: it is to be sent once more, whatever came of this.
        "update outbox set lease_token = null, lease_until_ms = null,
             next_attempt_at_ms = iif(queued_at_ms <> ?5, next_attempt_at_ms, ?1),
             failures = iif(queued_at_ms <> ?5, failures, failures + ?2),
             state = iif(queued_at_ms <> ?5 or state = 'superseded' and ?2, state, ?3)
         where rowid = ?4",
        params![
            attempt.verdict.next_attempt_at(attempt.at).as_millisecond(),
            attempt.verdict.state() != EventState::Delivered,
            attempt.verdict.state().as_str(),
            rowid,
            attempt.queued_at.as_millisecond(),
        ],
    )?;
    Ok(if latest { Recorded::Done } else { Recorded::Superseded })
}

/// The stretch first: an event that is committed between the two reads is then in the second.
fn feed(db: &Db<'_>, page: &FeedPage, unseen_for: Duration) -> Result<Feed> {
    let after = page.after.as_ref().map_or("", EventId::as_str);
    let (_, end) = EventFilter::default().ids();
    let stretch = stretch(db, Some(page.application), (after, &end))?;
    let sql = format!(
        "select {EVENT_COLUMNS} from outbox where application_id = ?1 and id > ?2 and id <= ?3
             and (not ?4 or state in ('queued', 'exhausted'))
         order by id limit ?5"
    );
    let limit = as_limit(page.limit.saturating_add(1));
    let given = params![page.application.0, after, stretch.last_id, page.undelivered, limit];
    let events = each(rows(db, &sql, given, cells)?, event)?;
    Ok(Feed::of(events, stretch, page.limit, unseen_for))
}

pub(super) fn insert_event(db: &Db<'_>, reference: &ReferenceNumber, event: &Event) -> Result<()> {
    execute(
        db,
        "insert into outbox (id, application_id, reference_number, status, body, webhook_url,
             origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', ?8, ?8, ?8)",
        params![
            event.id.as_str(),
            event.lane.application.0,
            reference.as_str(),
            event.status.code(),
            event.body,
            event.webhook_url,
            event.lane.origin,
            event.at.as_millisecond(),
        ],
    )
    .map(drop)
}

/// What still waits for this order is told by the event that comes now.
pub(super) fn supersede(db: &Db<'_>, reference: &ReferenceNumber) -> Result<()> {
    execute(
        db,
        "update outbox set latest = 0,
             state = case when state = 'queued' then 'superseded' else state end
         where reference_number = ?1",
        [reference.as_str()],
    )
    .map(drop)
}

type Parameters<'a> = (Option<&'a str>, Option<i64>, Option<&'a str>, Option<&'static str>);

fn parameters(filter: &EventFilter) -> Parameters<'_> {
    (
        filter.id.as_ref().map(EventId::as_str),
        filter.application.map(|id| id.0),
        filter.reference_number.as_ref().map(ReferenceNumber::as_str),
        filter.state.map(EventState::as_str),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rusqlite::Connection;

    use super::*;

    /// How many steps of SQLite's machine it takes to find the lanes when each has so many events.
    fn steps_to_find_lanes(events_of_each: i64) -> u64 {
        let mut db = Connection::open_in_memory().unwrap();
        super::super::migrate(&mut db).unwrap();
        let sql = "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?1)
                   insert into outbox (id, application_id, reference_number, status, body,
                       webhook_url, origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
                   select ?2 || i, 7, ?2 || i, 'CON', x'', '', ?2, 'queued', i, i, i from n";
        for origin in ["https://a.ao", "https://b.ao"] {
            db.execute(sql, params![events_of_each, origin]).unwrap();
        }
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        db.progress_handler(1, Some(count)).unwrap();
        let found = lanes(&Db::of(&db), None, 10).unwrap();
        let origins: Vec<_> = found.iter().map(|found| found.lane.origin.as_str()).collect();
        assert_eq!(origins, ["https://a.ao", "https://b.ao"]);
        steps.load(Ordering::Relaxed)
    }

    #[test]
    fn a_lane_with_many_events_is_found_as_quickly_as_one_with_few() {
        assert_eq!(steps_to_find_lanes(2_000), steps_to_find_lanes(2));
    }
}
