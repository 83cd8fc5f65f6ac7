//! GET /svcpartner/events: the same events the webhooks tell, for partners that would rather ask.

use std::num::IntErrorKind;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::app::App;
use crate::domain::{ApplicationUuid, EventId};
use crate::http::{
    ApiError, Caller, Envelope, ErrorReply, FieldFault, Issue, Reply, application_parameter,
    optional_parameter,
};
use crate::store::{EventRecord, EventState, FeedPage};

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;
/// An event gets its id before it is committed, so one with an earlier id may still appear for
/// this long. The cursor stays before such young events: they are given again, never missed.
const SETTLING: SignedDuration = SignedDuration::from_secs(30);

/// A place in the feed, opaque to partners: `settled`, or `settled~reached` while young events are
/// paged through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cursor {
    /// Nothing can appear before this any more.
    settled: Option<EventId>,
    /// Where the pages of one reading have got to; the next reading begins at `settled` again.
    reached: Option<EventId>,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (settled, reached) = match text.split_once('~') {
            Some((settled, reached)) => (settled, Some(EventId::parse(reached)?)),
            None => (text, None),
        };
        let settled = match (settled, &reached) {
            ("", Some(_)) => None,
            (settled, _) => Some(EventId::parse(settled)?),
        };
        Some(Self { settled, reached })
    }

    fn print(&self) -> Option<String> {
        let settled = self.settled.as_ref().map_or("", EventId::as_str);
        match &self.reached {
            Some(reached) => Some(format!("{settled}~{}", reached.as_str())),
            None => self.settled.as_ref().map(|settled| settled.as_str().to_owned()),
        }
    }

    /// A clock that was ahead when it was made may have been put right since.
    fn no_later_than(mut self, cutoff: &EventId) -> Self {
        if self.settled.as_ref().is_some_and(|settled| settled > cutoff) {
            self.settled = Some(cutoff.clone());
        }
        self
    }

    fn after(&self) -> Option<&EventId> {
        self.reached.as_ref().or(self.settled.as_ref())
    }

    /// The place after a page that ended at `last`, read when all up to `cutoff` had settled.
    fn next(self, last: Option<EventId>, more: bool, cutoff: EventId) -> Self {
        let Some(last) = last else { return Self { reached: None, ..self } };
        // What an earlier page of this reading saw may have been young then.
        let settled = match self.reached {
            None => self.settled.max(Some(last.clone().min(cutoff))),
            Some(_) => self.settled,
        };
        let reached = Some(last).filter(|last| more && Some(last) != settled.as_ref());
        Self { settled, reached }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventsData {
    /// Oldest first.
    events: Vec<EventData>,
    /// Give it as `after` to go on. Events of the last 30 seconds come again: know them by `id`.
    #[schema(example = "evt_01JC4E9V7Q3M8Y5T2K6R1N0WXZ")]
    next_cursor: Option<String>,
    /// There is more after this page.
    has_more: bool,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct EventData {
    /// The `webhook-id` of the event.
    #[schema(example = "evt_01JC4E9V7Q3M8Y5T2K6R1N0WXZ")]
    id: String,
    #[schema(example = "2026-11-15T09:30:00Z")]
    created_at: String,
    /// The body of the webhook.
    #[schema(value_type = Object)]
    payload: Box<RawValue>,
    delivery: DeliveryData,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryData {
    /// `queued`, `delivered`, `superseded` or `exhausted`.
    #[schema(example = "delivered")]
    state: &'static str,
    #[schema(example = 1)]
    attempts: u32,
    /// When it is tried next; absent once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
}

/// Your application's events, oldest first, a page at a time. Two of one order that come about in the same moment may
/// stand in either order: `CON` and `CAN` are final.
#[utoipa::path(
    get,
    path = "/svcpartner/events",
    tag = "Webhooks",
    security(("bearer" = [])),
    params(
        ("applicationUUID" = String, Query, description = "Your publishable key without its prefix"),
        ("after" = Option<String>, Query, description = "The `nextCursor` of the page before"),
        ("limit" = Option<i64>, Query, description = "Events on a page: 1 to 1000, default 100"),
        ("state" = Option<String>, Query, description = "`undelivered`: only what no webhook has brought you yet"),
    ),
    responses(
        (status = 200, description = "A page of events", body = Envelope<EventsData>),
        (status = 404, description = "`application_not_found`", body = ErrorReply),
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Reply<EventsData>, ApiError> {
    let asked = parse(&query.unwrap_or_default())?;
    app.limits.event_page(caller.partner.id)?;
    let application = caller.application(&app, &asked.uuid).await?;
    let now = app.clock.now();
    let cursor = asked.cursor.no_later_than(&settled_by(now, Duration::ZERO));
    let page = FeedPage {
        application: application.id,
        after: cursor.after().cloned(),
        limit: asked.limit,
        undelivered: asked.undelivered,
    };
    let feed = app.store.feed(page).await?;
    let cutoff = settled_by(now, feed.unseen_for);
    Ok(Reply::ok(EventsData {
        has_more: feed.more,
        next_cursor: cursor.next(feed.scanned_to, feed.more, cutoff).print(),
        events: feed.events.into_iter().map(event_data).collect::<Result<_, _>>()?,
    }))
}

/// No event can appear before it any more, if no write was under way for longer than this.
fn settled_by(now: Timestamp, unseen_for: Duration) -> EventId {
    let settled = now.saturating_sub(SETTLING).and_then(|then| then.saturating_sub(unseen_for));
    EventId::lowest_at(settled.unwrap_or(Timestamp::MIN))
}

struct Asked {
    uuid: ApplicationUuid,
    cursor: Cursor,
    limit: usize,
    undelivered: bool,
}

fn parse_limit(text: &str) -> Result<usize, Issue> {
    let too_large = Issue::TooLarge { max: LIMIT_MAX as i64 };
    match text.parse::<usize>() {
        Ok(0) => Err(Issue::TooSmall),
        Ok(limit) if limit > LIMIT_MAX => Err(too_large),
        Ok(limit) => Ok(limit),
        Err(fault) if *fault.kind() == IntErrorKind::PosOverflow => Err(too_large),
        Err(_) if text.parse::<i64>().is_ok() => Err(Issue::TooSmall),
        Err(_) => Err(Issue::NotAnInteger),
    }
}

/// Every 422 of this call is born here.
fn parse(query: &str) -> Result<Asked, ApiError> {
    let mut faults = Vec::new();
    let uuid = application_parameter(&mut faults, query);
    let after = optional_parameter(&mut faults, query, "after");
    let cursor = after.map_or(Some(Cursor::default()), |text| Cursor::parse(&text));
    if cursor.is_none() {
        faults.push(FieldFault::new("after", Issue::NotACursor));
    }
    let limit = optional_parameter(&mut faults, query, "limit");
    let limit = limit.map_or(Ok(LIMIT_DEFAULT), |text| parse_limit(&text));
    let limit = limit.map_err(|issue| faults.push(FieldFault::new("limit", issue))).ok();
    let state = optional_parameter(&mut faults, query, "state");
    if state.as_deref().is_some_and(|state| state != "undelivered") {
        faults.push(FieldFault::new("state", Issue::NotOneOf("undelivered")));
    }
    match (uuid, cursor, limit) {
        (Some(uuid), Some(cursor), Some(limit)) if faults.is_empty() => {
            Ok(Asked { uuid: uuid?, cursor, limit, undelivered: state.is_some() })
        }
        _ => Err(ApiError::InvalidQuery(faults)),
    }
}

fn event_data(event: EventRecord) -> Result<EventData, ApiError> {
    let broken = || ApiError::Internal(format!("the body of {} is not JSON", event.id.as_str()));
    let text = String::from_utf8(event.body).map_err(|_| broken())?;
    let queued = event.state == EventState::Queued;
    Ok(EventData {
        payload: RawValue::from_string(text).map_err(|_| broken())?,
        created_at: event.created_at.to_string(),
        delivery: DeliveryData {
            state: event.state.as_str(),
            attempts: event.attempts,
            next_attempt_at: queued.then(|| event.next_attempt_at.to_string()),
        },
        id: event.id.as_str().to_owned(),
    })
}
