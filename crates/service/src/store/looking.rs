//! Lists for people who look: newest first, page by page, never more than a bounded stretch of rows.

use jiff::Timestamp;

use super::portable::{Cells, Statement, Value, values};
use super::records::{read_reference, read_status};
use super::{EventState, Result, Store, as_limit};
use crate::domain::{ApplicationId, EventId, Order, ReferenceNumber, Status};

/// Whose rows somebody may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Everything,
    Applications(Vec<ApplicationId>),
}

impl Scope {
    pub fn holds(&self, application: ApplicationId) -> bool {
        match self {
            Self::Everything => true,
            Self::Applications(own) => own.contains(&application),
        }
    }

    /// One list for all, or one for each application, to be merged: an index serves each.
    fn parts(&self) -> Vec<Option<ApplicationId>> {
        match self {
            Self::Everything => vec![None],
            Self::Applications(own) => own.iter().copied().map(Some).collect(),
        }
    }
}

/// Rows read at a time, and how often for one page; a page of a rare kind may hold fewer rows than
/// asked for, and then says where to go on.
const STRETCH: usize = 1_000;
const STRETCHES_MAX: usize = 5;

/// A page and where the next one begins.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub next: Option<String>,
}

#[derive(Clone, Debug)]
pub struct OrderLine {
    pub reference_number: ReferenceNumber,
    pub application: ApplicationId,
    pub external_transaction_id: String,
    pub status: Status,
    pub amount: i64,
    pub name: String,
    pub created_at: Timestamp,
}

impl From<Order> for OrderLine {
    fn from(order: Order) -> Self {
        Self {
            reference_number: order.reference_number,
            application: order.application,
            external_transaction_id: order.external_transaction_id.as_str().to_owned(),
            status: order.status,
            amount: order.terms.amount.get(),
            name: order.terms.name.as_str().to_owned(),
            created_at: order.created_at,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct OrderFilter {
    pub status: Option<Status>,
    /// In kwanza.
    pub amount: Option<i64>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct EventLine {
    pub id: EventId,
    pub application: ApplicationId,
    pub reference_number: ReferenceNumber,
    pub status: Status,
    pub origin: String,
    pub state: EventState,
    pub attempts: i64,
    /// Since it was queued or replayed.
    pub failures: u32,
    pub next_attempt_at: Timestamp,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    State(EventState),
    /// Tried, and not taken yet.
    Failing,
}

/// How a destination takes its events.
#[derive(Clone, Debug)]
pub struct DestinationLine {
    pub application: ApplicationId,
    pub origin: String,
    pub waiting: i64,
    pub oldest_at: Timestamp,
    pub next_attempt_at: Timestamp,
}

/// One of the last deliveries.
#[derive(Clone, Debug)]
pub struct RecentDelivery {
    pub application: ApplicationId,
    pub origin: String,
    pub http_status: Option<i64>,
    pub latency_ms: i64,
    pub at: Timestamp,
}

/// What needs somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    pub open_exceptions: i64,
    /// Payments whose rail keeps silent, and the order of the first.
    pub unanswered: i64,
    pub first_unanswered: Option<String>,
    pub exhausted_events: i64,
    pub waiting_events: i64,
    pub oldest_waiting_at_ms: Option<i64>,
}

impl Store {
    pub async fn order_lines(
        &self,
        scope: &Scope,
        filter: OrderFilter,
        before: Option<String>,
        limit: usize,
    ) -> Result<Page<OrderLine>> {
        let first = filter.since.map_or_else(String::new, ReferenceNumber::lowest_at);
        let end = filter.until.map_or_else(|| "~".to_owned(), ReferenceNumber::lowest_at);
        let end = before.map_or(end.clone(), |before| before.min(end));
        let list = List {
            columns: "reference_number, application_id, external_transaction_id, status, amount, \
                      name, created_at_ms",
            table: "orders",
            key: "reference_number",
            first,
        };
        let wanted = |line: &OrderLine| {
            filter.status.is_none_or(|status| line.status == status)
                && filter.amount.is_none_or(|amount| line.amount == amount)
        };
        let key = |line: &OrderLine| line.reference_number.as_str().to_owned();
        self.newest(&list, scope, end, limit, order_line, wanted, key).await
    }

    pub async fn event_lines(
        &self,
        scope: &Scope,
        kind: Option<EventKind>,
        before: Option<String>,
        limit: usize,
    ) -> Result<Page<EventLine>> {
        let exhausted = kind == Some(EventKind::State(EventState::Exhausted));
        let list = List {
            columns: "id, application_id, reference_number, status, origin, state, attempts, \
                      failures, next_attempt_at_ms, created_at_ms",
            // They have an index of their own, and may be rare.
            table: if exhausted {
                "(select * from outbox where state = 'exhausted') as outbox"
            } else {
                "outbox"
            },
            key: "id",
            first: String::new(),
        };
        let wanted = |line: &EventLine| match kind {
            None => true,
            Some(EventKind::State(state)) => line.state == state,
            Some(EventKind::Failing) => line.state == EventState::Queued && line.failures > 0,
        };
        let key = |line: &EventLine| line.id.as_str().to_owned();
        let end = before.unwrap_or_else(|| "~".to_owned());
        self.newest(&list, scope, end, limit, event_line, wanted, key).await
    }

    #[expect(clippy::too_many_arguments, reason = "two callers, each with its own row")]
    async fn newest<T>(
        &self,
        list: &List,
        scope: &Scope,
        mut end: String,
        limit: usize,
        read: impl Fn(&mut Cells) -> Result<T> + Copy,
        wanted: impl Fn(&T) -> bool,
        key: impl Fn(&T) -> String,
    ) -> Result<Page<T>> {
        let mut rows = Vec::new();
        for _ in 0..STRETCHES_MAX {
            let mut stretch = Vec::new();
            for application in scope.parts() {
                stretch.extend(self.select(list.statement(application, &end), read).await?);
            }
            stretch.sort_by_key(|row| std::cmp::Reverse(key(row)));
            // Of merged lists only what none of them can still come between.
            stretch.truncate(STRETCH);
            let is_last = stretch.len() < STRETCH;
            for row in stretch {
                let is_wanted = wanted(&row);
                // Only what is known to be there is worth another page.
                if is_wanted && rows.len() == limit {
                    return Ok(Page { rows, next: Some(end) });
                }
                end = key(&row);
                if is_wanted {
                    rows.push(row);
                }
            }
            if is_last {
                return Ok(Page { rows, next: None });
            }
        }
        Ok(Page { rows, next: Some(end) })
    }

    /// Where events wait, the longest first.
    pub async fn waiting_destinations(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> Result<Vec<DestinationLine>> {
        let mut values = values![as_limit(limit)];
        let own = condition(scope, &mut values);
        let sql = format!(
            "select application_id, origin, count(*), min(created_at_ms), min(next_attempt_at_ms)
             from outbox where state = 'queued'{own}
             group by application_id, origin order by 4 limit ?1"
        );
        let read = |cells: &mut Cells| {
            Ok(DestinationLine {
                application: ApplicationId(cells.integer()?),
                origin: cells.text()?,
                waiting: cells.integer()?,
                oldest_at: cells.time()?,
                next_attempt_at: cells.time()?,
            })
        };
        self.select(Statement::new(sql, values), read).await
    }

    /// Attempts of the newest events. Joined in this order: SQLite would read all attempts to look for
    /// their events.
    pub async fn recent_deliveries(
        &self,
        scope: &Scope,
        events: usize,
    ) -> Result<Vec<RecentDelivery>> {
        let mut recent = Vec::new();
        for application in scope.parts() {
            let mut values = values![as_limit(events)];
            let own = condition(&Scope::of(application), &mut values);
            let sql = format!(
                "select e.application_id, e.origin, a.http_status, a.latency_ms, a.at_ms
                 from (select id, application_id, origin from outbox where true{own}
                       order by id desc limit ?1) as e
                 cross join delivery_attempts a where a.event_id = e.id"
            );
            let read = |cells: &mut Cells| {
                Ok(RecentDelivery {
                    application: ApplicationId(cells.integer()?),
                    origin: cells.text()?,
                    http_status: cells.maybe_integer()?,
                    latency_ms: cells.integer()?,
                    at: cells.time()?,
                })
            };
            recent.extend(self.select(Statement::new(sql, values), read).await?);
        }
        Ok(recent)
    }

    /// Every origin: said so that SQLite counts in the index of lanes, not in one of all events.
    pub async fn attention(&self, scope: &Scope) -> Result<Attention> {
        let mut values = values![];
        let own = condition(scope, &mut values);
        let sql = format!(
            "select (select count(*) from exceptions where resolved_at_ms is null{own}),
                 (select count(*) from payment_attempts
                  where state = 'unknown' and due_at_ms is null{own}),
                 (select min(reference_number) from payment_attempts
                  where state = 'unknown' and due_at_ms is null{own}),
                 (select count(*) from outbox where state = 'exhausted'{own}),
                 count(*), min(created_at_ms)
             from outbox where state = 'queued' and origin >= ''{own}"
        );
        let read = |cells: &mut Cells| {
            Ok(Attention {
                open_exceptions: cells.integer()?,
                unanswered: cells.integer()?,
                first_unanswered: cells.maybe_text()?,
                exhausted_events: cells.integer()?,
                waiting_events: cells.integer()?,
                oldest_waiting_at_ms: cells.maybe_integer()?,
            })
        };
        Ok(self.select_one(Statement::new(sql, values), read).await?.unwrap_or_default())
    }
}

impl Scope {
    fn of(application: Option<ApplicationId>) -> Self {
        application.map_or(Self::Everything, |one| Self::Applications(vec![one]))
    }
}

/// A table with a key that begins with its row's time.
struct List {
    columns: &'static str,
    table: &'static str,
    key: &'static str,
    first: String,
}

impl List {
    fn statement(&self, application: Option<ApplicationId>, end: &str) -> Statement {
        let Self { columns, table, key, first } = self;
        let mut values = values![first.as_str(), end, as_limit(STRETCH)];
        let own = condition(&Scope::of(application), &mut values);
        let sql = format!(
            "select {columns} from {table} where {key} >= ?1 and {key} < ?2{own}
             order by {key} desc limit ?3"
        );
        Statement::new(sql, values)
    }
}

/// Whatever else is asked: only what is theirs.
pub(super) fn condition(scope: &Scope, values: &mut Vec<Value>) -> String {
    match scope {
        Scope::Everything => String::new(),
        // Nobody's application: nothing is found.
        Scope::Applications(own) if own.is_empty() => " and application_id = -1".to_owned(),
        Scope::Applications(own) => {
            let mut places = Vec::with_capacity(own.len());
            for application in own {
                values.push(application.0.into());
                places.push(format!("?{}", values.len()));
            }
            match &places[..] {
                [only] => format!(" and application_id = {only}"),
                many => format!(" and application_id in ({})", many.join(", ")),
            }
        }
    }
}

fn reference(cells: &mut Cells) -> Result<ReferenceNumber> {
    read_reference(&cells.text()?)
}

fn status(cells: &mut Cells) -> Result<Status> {
    read_status(&cells.text()?)
}

fn order_line(cells: &mut Cells) -> Result<OrderLine> {
    Ok(OrderLine {
        reference_number: reference(cells)?,
        application: ApplicationId(cells.integer()?),
        external_transaction_id: cells.text()?,
        status: status(cells)?,
        amount: cells.integer()?,
        name: cells.text()?,
        created_at: cells.time()?,
    })
}

fn event_line(cells: &mut Cells) -> Result<EventLine> {
    Ok(EventLine {
        id: EventId::restore(cells.text()?),
        application: ApplicationId(cells.integer()?),
        reference_number: reference(cells)?,
        status: status(cells)?,
        origin: cells.text()?,
        state: EventState::read(&cells.text()?)?,
        attempts: cells.integer()?,
        failures: u32::try_from(cells.integer()?).unwrap_or(u32::MAX),
        next_attempt_at: cells.time()?,
        created_at: cells.time()?,
    })
}
