//! The outbox: events on their way to merchants, claimed by one dispatcher at a time.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use super::audit::audited;
use super::portable::{Cells, Statement, values};
use super::records::{read_reference, read_status};
use super::{Engine, Result, Store, StoreError, engine, time};
use crate::domain::{ApplicationId, Author, EventId, Lane, ReferenceNumber, Status, Steady, words};

/// How long a claim keeps other dispatchers away: longer than an attempt and its record may take,
/// short enough that a dead node's events move on within ten seconds.
pub const LEASE_MS: i64 = 9_000;

/// Whether a lease is in force at a moment of its clock. One that would last for longer than any does is of before
/// that clock was set back or began anew, and of nobody.
pub(super) fn in_force(now_ms: &str) -> String {
    format!("between {now_ms} and {now_ms} + 2 * {LEASE_MS}")
}
/// Rows looked at for one page: a page may hold fewer events, and then says where to go on.
pub(super) const SCANNED_MAX: i64 = 5_000;

words! {
    /// Where an event stands.
    pub enum EventState {
        Queued = "queued",
        Delivered = "delivered",
        /// A newer event of the same order made it pointless.
        Superseded = "superseded",
        /// Tried to the end of the schedule; it can be replayed.
        Exhausted = "exhausted",
    }
}

impl EventState {
    pub(super) fn read(text: &str) -> Result<Self> {
        Self::from_text(text).ok_or_else(|| StoreError::Corrupt(format!("event state {text}")))
    }
}

/// Proof of a claim; a record that comes with an old one changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseToken(String);

impl LeaseToken {
    pub fn assign(random: [u8; 16]) -> Self {
        Self(hex::encode(random))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A wish for events of one lane.
#[derive(Clone, Debug)]
pub struct Want {
    pub lane: Lane,
    pub most: usize,
    /// Events due from then on: all of them, unless those before were tried already.
    pub due_from: Timestamp,
    /// Events due by then; later than now for a merchant that has just come back.
    pub due_by: Timestamp,
}

impl Want {
    pub fn due_by(due_by: Timestamp, lane: Lane, most: usize) -> Self {
        Self { lane, most, due_from: Timestamp::MIN, due_by }
    }

    /// Whatever waits, from those due at that moment on.
    pub fn early(due_from: Timestamp, lane: Lane, most: usize) -> Self {
        Self { lane, most, due_from, due_by: Timestamp::MAX }
    }

    pub fn is_early(&self) -> bool {
        self.due_by == Timestamp::MAX
    }
}

/// A lane with queued events, and when the first of them is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneDue {
    pub lane: Lane,
    pub due_at: Timestamp,
}

/// An event that is ours to send.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub id: EventId,
    pub lane: Lane,
    pub body: Vec<u8>,
    pub webhook_url: String,
    /// 1 for the first; every send has its own number, also one that was never recorded.
    pub attempt: u32,
    /// Failures since it was queued or replayed.
    pub failures: u32,
    /// Later than now for one that is sent before its time.
    pub due_at: Timestamp,
    pub queued_at: Timestamp,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    RetryAt(Timestamp),
    Exhausted,
}

impl Verdict {
    pub(super) fn state(self) -> EventState {
        match self {
            Self::Delivered => EventState::Delivered,
            Self::RetryAt(_) => EventState::Queued,
            Self::Exhausted => EventState::Exhausted,
        }
    }

    /// When the event may be claimed again; what has ended keeps the time of its end.
    pub(super) fn next_attempt_at(self, ended_at: Timestamp) -> Timestamp {
        match self {
            Self::RetryAt(at) => at,
            Self::Delivered | Self::Exhausted => ended_at,
        }
    }
}

/// What came of sending a claimed event.
#[derive(Clone, Debug)]
pub struct DeliveryAttempt {
    pub event: EventId,
    pub lease: LeaseToken,
    pub number: u32,
    pub at: Timestamp,
    /// Of the event as it was claimed: another moment in its row means that it was queued anew meanwhile.
    pub queued_at: Timestamp,
    pub latency_ms: i64,
    pub http_status: Option<u16>,
    pub error: Option<String>,
    pub answer_start: Vec<u8>,
    pub verdict: Verdict,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    Done,
    /// The event was superseded while it was sent: its successor has been waiting for this.
    Superseded,
    /// The lease ran out and somebody else has the event now; the attempt is noted all the same.
    LeaseLost,
}

/// An event for those who look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    pub id: EventId,
    pub application: ApplicationId,
    pub reference_number: ReferenceNumber,
    pub status: Status,
    pub body: Vec<u8>,
    pub webhook_url: String,
    pub state: EventState,
    pub attempts: u32,
    /// Since it was queued or replayed.
    pub failures: u32,
    pub next_attempt_at: Timestamp,
    pub created_at: Timestamp,
}

/// An attempt for those who look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRecord {
    pub number: u32,
    pub at: Timestamp,
    pub latency_ms: i64,
    pub http_status: Option<u16>,
    pub error: Option<String>,
    pub answer_start: Vec<u8>,
}

impl DeliveryRecord {
    pub fn is_taken(&self) -> bool {
        self.http_status.is_some_and(|status| (200..300).contains(&status))
    }

    /// What came of it, in a few words.
    pub fn told(&self) -> String {
        match (&self.error, self.http_status) {
            (Some(error), _) => error.clone(),
            (None, Some(status)) => format!("HTTP {status}"),
            (None, None) => String::new(),
        }
    }
}

/// Which events; what is not said does not matter.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    pub id: Option<EventId>,
    pub application: Option<ApplicationId>,
    pub reference_number: Option<ReferenceNumber>,
    pub state: Option<EventState>,
    /// Only those that have failed since they were queued.
    pub failed: bool,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// A partner's place in its feed and what it wants from there.
#[derive(Clone, Debug)]
pub struct FeedPage {
    pub application: ApplicationId,
    pub after: Option<EventId>,
    pub limit: usize,
    /// Leave out what was delivered or superseded.
    pub undelivered: bool,
}

#[derive(Clone, Debug)]
pub struct Feed {
    pub events: Vec<EventRecord>,
    /// The last event looked at, wanted or not; `None` when there was none.
    pub scanned_to: Option<EventId>,
    /// There is more after it.
    pub more: bool,
    /// How long a write had been under way, before the reading, that nobody sees yet: its events may have ids
    /// from before it began.
    pub unseen_for: Duration,
}

/// The rows a page looks at, so that one page is never the work of thousands.
pub(super) struct Stretch {
    pub last_id: Option<String>,
    pub rows: i64,
}

impl Stretch {
    /// Where the next one begins, if there is one.
    pub(super) fn goes_on_after(self) -> Option<String> {
        self.last_id.filter(|_| self.rows == SCANNED_MAX)
    }
}

impl Feed {
    /// `events` are the wanted ones of the stretch, one more than the page holds if there are.
    pub(super) fn of(
        mut events: Vec<EventRecord>,
        stretch: Stretch,
        limit: usize,
        unseen_for: Duration,
    ) -> Self {
        if events.len() > limit {
            events.truncate(limit);
            let scanned_to = events.last().map(|event| event.id.clone());
            return Self { events, scanned_to, more: true, unseen_for };
        }
        let scanned_to = stretch.last_id.map(EventId::restore);
        Self { events, scanned_to, more: stretch.rows == SCANNED_MAX, unseen_for }
    }
}

impl Store {
    /// Lanes with queued events, after the given one, in their order.
    pub async fn lanes(&self, after: Option<Lane>, limit: usize) -> Result<Vec<LaneDue>> {
        engine!(self.lanes(after, limit))
    }

    /// Takes events for sending: due, nobody's, and with no older event of their order under way. Leases run on
    /// a time that is the same for all who claim: of this machine on SQLite, of the server on PostgreSQL.
    pub async fn claim(
        &self,
        wants: Vec<Want>,
        lease: &LeaseToken,
        now: Steady,
    ) -> Result<Vec<Claimed>> {
        engine!(self.claim(wants, lease, now))
    }

    /// Notes attempts and, where the lease still holds, moves the events on.
    pub async fn record(&self, attempts: Vec<DeliveryAttempt>) -> Result<Vec<Recorded>> {
        engine!(self.record(attempts))
    }

    /// Ends claims that came to nothing, as if they had not been made.
    pub async fn give_back(&self, unsent: Vec<(EventId, LeaseToken)>) -> Result<()> {
        engine!(self.give_back(unsent))
    }

    /// Newest first.
    pub async fn events(&self, filter: EventFilter, limit: usize) -> Result<Vec<EventRecord>> {
        engine!(self.events(filter, limit))
    }

    pub async fn deliveries_of(&self, event: &EventId) -> Result<Vec<DeliveryRecord>> {
        let sql = "select attempt, at_ms, http_status, latency_ms, error, answer_start
                   from delivery_attempts where event_id = ?1 order by attempt";
        self.select(Statement::new(sql, values![event.as_str()]), delivery).await
    }

    /// What came last of each of these events that was tried.
    pub async fn last_deliveries(
        &self,
        events: &[EventId],
    ) -> Result<HashMap<EventId, DeliveryRecord>> {
        /// Both engines take more values in a statement.
        const TOGETHER: usize = 1_000;
        let mut found = HashMap::new();
        for events in events.chunks(TOGETHER) {
            let places: Vec<_> = (1..=events.len()).map(|place| format!("?{place}")).collect();
            let sql = format!(
                "select attempt, at_ms, http_status, latency_ms, error, answer_start, event_id
                 from delivery_attempts of where event_id in ({}) and attempt = (
                     select max(attempt) from delivery_attempts other
                     where other.event_id = of.event_id)",
                places.join(", ")
            );
            let ids = events.iter().map(|event| event.as_str().into()).collect();
            let read = |cells: &mut Cells| {
                let delivery = delivery(cells)?;
                Ok((EventId::restore(cells.text()?), delivery))
            };
            found.extend(self.select(Statement::new(sql, ids), read).await?);
        }
        Ok(found)
    }

    /// Queues events anew that have ended, and makes waiting ones due; how many. The latest event
    /// of an order only: an older one must never follow it. The history says who did it, if there was
    /// anything to replay: once for each slice, in the transaction of its events.
    pub async fn replay(
        &self,
        filter: EventFilter,
        at: Timestamp,
        by: Author,
        subject: &str,
    ) -> Result<u64> {
        let note = ReplayNote { by, subject: subject.to_owned() };
        let mut replayed = 0;
        let mut after = String::new();
        loop {
            let slice = engine!(self.replay(filter.clone(), after, at, note.clone()))?;
            replayed += slice.replayed;
            match slice.goes_on_after {
                Some(last) => after = last,
                None => return Ok(replayed),
            }
        }
    }

    /// A partner's own events, oldest first.
    pub async fn feed(&self, page: FeedPage) -> Result<Feed> {
        engine!(self.feed(page))
    }
}

/// Of a replay, what one transaction did: it looks at no more than a stretch of events, so that a million of
/// them hold up nobody.
pub(super) struct ReplaySlice {
    pub replayed: u64,
    pub goes_on_after: Option<String>,
}

/// Who replays what, for the history.
#[derive(Clone, Debug)]
pub(super) struct ReplayNote {
    by: Author,
    subject: String,
}

impl ReplayNote {
    pub(super) fn row(&self, at: Timestamp, count: u64) -> Statement {
        let told = format!("{count} events");
        audited(at, &self.by, "webhook.replay", &self.subject, None, &told)
    }
}

impl EventFilter {
    /// The condition on parameters 1 to 6, strict in what is given so that an index can serve it. One bound on
    /// each side: of two SQLite seeks by the first, and tests the other row by row.
    pub(super) fn condition(&self, parameter: impl Fn(usize) -> String) -> String {
        let columns = [
            ("id", self.id.is_some()),
            ("application_id", self.application.is_some()),
            ("reference_number", self.reference_number.is_some()),
            ("state", self.state.is_some()),
        ];
        let mut condition = format!("id > {} and id <= {}", parameter(5), parameter(6));
        for (place, (column, given)) in (1..).zip(columns) {
            let parameter = parameter(place);
            condition += &match given {
                true => format!(" and {column} = {parameter}"),
                false => format!(" and {parameter} is null"),
            };
        }
        if self.failed {
            condition += " and failures > 0";
        }
        condition
    }

    /// It names so few that they need not be looked at in stretches.
    pub(super) fn is_narrow(&self) -> bool {
        self.id.is_some() || self.reference_number.is_some()
    }

    /// Event ids begin with their time, so a range of times is one of ids: after the first of these, up to the
    /// second, neither of which is an event's.
    pub(super) fn ids(&self) -> (String, String) {
        let at = |time: Timestamp| String::from(EventId::lowest_at(time));
        (self.since.map(at).unwrap_or_default(), self.until.map_or_else(|| "evt_~".into(), at))
    }
}

/// The columns of an event, in the order every `select` names them.
pub(super) const EVENT_COLUMNS: &str = "id, application_id, reference_number, status, body, \
     webhook_url, state, attempts, failures, next_attempt_at_ms, created_at_ms";

pub(super) fn event(cells: &mut Cells) -> Result<EventRecord> {
    let id = EventId::restore(cells.text()?);
    let corrupt = |_| StoreError::Corrupt(format!("event {}", id.as_str()));
    Ok(EventRecord {
        application: ApplicationId(cells.integer()?),
        reference_number: read_reference(&cells.text()?)?,
        status: read_status(&cells.text()?)?,
        body: cells.bytes()?,
        webhook_url: cells.text()?,
        state: EventState::read(&cells.text()?)?,
        attempts: u32::try_from(cells.integer()?).map_err(corrupt)?,
        failures: u32::try_from(cells.integer()?).map_err(corrupt)?,
        next_attempt_at: cells.time()?,
        created_at: cells.time()?,
        id,
    })
}

/// The columns of a claim, in the order every `returning` names them.
pub(super) const CLAIM_COLUMNS: &str = "id, application_id, origin, body, webhook_url, attempts, \
     failures, next_attempt_at_ms, queued_at_ms, created_at_ms";

pub(super) struct ClaimRow {
    pub id: String,
    pub application_id: i64,
    pub origin: String,
    pub body: Vec<u8>,
    pub webhook_url: String,
    pub attempts: i64,
    pub failures: i64,
    pub next_attempt_at_ms: i64,
    pub queued_at_ms: i64,
    pub created_at_ms: i64,
}

impl ClaimRow {
    pub(super) fn read(self) -> Result<Claimed> {
        let corrupt = |_| StoreError::Corrupt(format!("event {}", self.id));
        Ok(Claimed {
            lane: Lane { application: ApplicationId(self.application_id), origin: self.origin },
            attempt: u32::try_from(self.attempts).map_err(corrupt)?,
            failures: u32::try_from(self.failures).map_err(corrupt)?,
            due_at: time(self.next_attempt_at_ms)?,
            queued_at: time(self.queued_at_ms)?,
            created_at: time(self.created_at_ms)?,
            id: EventId::restore(self.id),
            body: self.body,
            webhook_url: self.webhook_url,
        })
    }
}

pub(super) fn lane_due(application_id: i64, origin: String, due_at_ms: i64) -> Result<LaneDue> {
    let lane = Lane { application: ApplicationId(application_id), origin };
    Ok(LaneDue { lane, due_at: time(due_at_ms)? })
}

fn delivery(cells: &mut Cells) -> Result<DeliveryRecord> {
    let number = cells.integer()?;
    let corrupt = |_| StoreError::Corrupt(format!("attempt {number}"));
    Ok(DeliveryRecord {
        number: u32::try_from(number).map_err(corrupt)?,
        at: cells.time()?,
        http_status: cells.maybe_integer()?.map(u16::try_from).transpose().map_err(corrupt)?,
        latency_ms: cells.integer()?,
        error: cells.maybe_text()?,
        answer_start: cells.maybe_bytes()?.unwrap_or_default(),
    })
}
