//! Walk C: outbox row → claim → sign → POST → decide → record. Nothing here outlives a restart,
//! because nothing here is more than a copy of the outbox.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use super::lanes::{IN_FLIGHT_MAX, Lanes};
use super::sender::{Failure, Outcome, Sender, SenderError};
use super::signature::signature_headers;
use crate::app::App;
use crate::domain::{Lane, Retry, next_retry};
use crate::store::{Attempt, Claimed, LeaseToken, Recorded, StoreError, Verdict};

/// How often the outbox is looked through for events nobody rang for: retries that fell due,
/// events of other nodes, replays.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// Lanes looked at in one go; the next look goes on from there.
const LOOK_LANES_MAX: usize = 1_000;

pub struct Dispatcher {
    app: App,
    sender: Arc<Sender>,
    lanes: Lanes,
    under_way: JoinSet<Ended>,
    looked_to: Option<Lane>,
    /// The store failed; it is asked again at the next look.
    store_down: bool,
}

/// A delivery that is over.
struct Ended {
    lane: Lane,
    delivered: bool,
    /// An event of the same order waited for this one to end.
    awaited: bool,
}

impl Dispatcher {
    pub fn new(app: App) -> Result<Self, SenderError> {
        let sender = Sender::new(&app.config.webhooks, app.url_rules.clone())?;
        Ok(Self {
            app,
            sender: Arc::new(sender),
            lanes: Lanes::default(),
            under_way: JoinSet::new(),
            looked_to: None,
            store_down: false,
        })
    }

    /// Delivers until `stop` resolves, then finishes what is under way.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut look = tokio::time::interval(LOOK_PERIOD);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(stop);
        let app = self.app.clone();
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = look.tick() => self.look().await,
                () = app.outbox_bell.heard() => self.hear(),
                Some(ended) = self.under_way.join_next() => self.end(ended),
            }
            self.start_due().await;
            self.tell_metrics();
        }
        while let Some(ended) = self.under_way.join_next().await {
            self.end(ended);
        }
    }

    /// Delivers everything that is due at this moment of the clock, and what falls due by that.
    pub async fn drain(&mut self) -> Result<(), StoreError> {
        self.hear();
        let mut after = None;
        loop {
            let found = self.app.store.lanes(after, LOOK_LANES_MAX).await?;
            let Some(last) = found.last() else { break };
            after = Some(last.lane.clone());
            self.notice_due(found);
        }
        loop {
            self.start_due().await;
            let Some(ended) = self.under_way.join_next().await else { return Ok(()) };
            self.end(ended);
        }
    }

    /// When there is next something to do, if the clock is all it takes.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let found = self.app.store.lanes(None, usize::MAX).await?;
        let due = found.iter().map(|lane| lane.due_at).min();
        // A lane that is paused waits for its probe, whenever its events are due.
        Ok(due.map(|due| self.lanes.next_probe().map_or(due, |probe| due.max(probe))))
    }

    fn hear(&mut self) {
        for lane in self.app.outbox_bell.take() {
            self.lanes.notice(lane);
        }
    }

    /// The next stretch of lanes; at the end it begins anew.
    async fn look(&mut self) {
        self.lanes.forget_idle();
        match self.app.store.lanes(self.looked_to.take(), LOOK_LANES_MAX).await {
            Ok(found) => {
                if found.len() == LOOK_LANES_MAX {
                    self.looked_to = found.last().map(|found| found.lane.clone());
                }
                self.notice_due(found);
                self.store_down = false;
            }
            Err(fault) => self.store_failed(&fault),
        }
    }

    fn notice_due(&mut self, found: Vec<crate::store::LaneDue>) {
        let now = self.app.clock.now();
        found
            .into_iter()
            .filter(|lane| lane.due_at <= now)
            .for_each(|due| self.lanes.notice(due.lane));
    }

    /// Claims what may be sent now, and sends it.
    async fn start_due(&mut self) {
        while !self.store_down {
            let wants = self.lanes.wants(self.app.clock.now());
            if wants.is_empty() {
                return;
            }
            let lease = LeaseToken::assign(self.app.random.bytes());
            match self.app.store.claim(wants.clone(), &lease).await {
                Ok(claimed) => {
                    self.lanes.started(wants, &claimed);
                    for event in claimed {
                        let (app, sender) = (self.app.clone(), Arc::clone(&self.sender));
                        self.under_way.spawn(deliver(app, sender, event, lease.clone()));
                    }
                }
                Err(fault) => {
                    // The next look finds these lanes again.
                    self.lanes.started(wants, &[]);
                    self.store_failed(&fault);
                }
            }
        }
    }

    fn end(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        let ended = ended.expect("a delivery does not panic and is not cancelled");
        self.lanes.ended(&ended.lane, ended.delivered, self.app.clock.now());
        if ended.awaited {
            self.lanes.notice(ended.lane);
        }
    }

    fn store_failed(&mut self, fault: &StoreError) {
        if !std::mem::replace(&mut self.store_down, true) {
            tracing::warn!(%fault, "webhooks wait: the outbox could not be read");
        }
    }

    fn tell_metrics(&self) {
        self.app.metrics.webhooks_in_flight.set(self.lanes.in_flight() as f64);
        self.app.metrics.webhook_breakers_open.set(self.lanes.broken() as f64);
        debug_assert!(self.lanes.in_flight() <= IN_FLIGHT_MAX);
    }
}

async fn deliver(app: App, sender: Arc<Sender>, event: Claimed, lease: LeaseToken) -> Ended {
    let at = app.clock.now();
    if event.attempt == 1 {
        app.metrics.webhook_first_attempt_lag.record(seconds_between(event.created_at, at));
    }
    let watch = app.clock.stopwatch();
    let Claimed { id, lane, body, webhook_url, attempt: number, failures, queued_at, .. } = event;
    let outcome = match signatures(&app, &id, lane.application, &body, at).await {
        Ok(headers) => sender.post(&webhook_url, number, headers, body, at).await,
        Err(why) => Outcome::failed(Failure::Unsigned, why),
    };
    let latency = watch.elapsed();
    app.metrics.webhook_attempt(outcome.failure.map(Failure::as_str), latency);
    let delivered = outcome.failure.is_none();
    let verdict = decide(&app, &outcome, failures, queued_at);
    if verdict == Verdict::Exhausted {
        tracing::warn!(event = id.as_str(), "a webhook was tried to the end of its schedule");
    }
    let attempt = Attempt {
        event: id,
        lease,
        number,
        at,
        latency_ms: i64::try_from(latency.as_millis()).unwrap_or(i64::MAX),
        http_status: outcome.http_status,
        error: outcome.error,
        answer_start: outcome.answer_start,
        verdict,
    };
    let recorded = app.store.record(attempt).await.unwrap_or_else(|fault| {
        // The lease runs out and the event is sent again: twice is allowed, never is not.
        tracing::warn!(%fault, "an attempt could not be recorded");
        Recorded::LeaseLost
    });
    Ended { lane, delivered, awaited: recorded == Recorded::Superseded }
}

async fn signatures(
    app: &App,
    id: &crate::domain::EventId,
    application: crate::domain::ApplicationId,
    body: &[u8],
    at: Timestamp,
) -> Result<hyper::HeaderMap, String> {
    let known = app.directory.known();
    let known = match known.application_by_id(application) {
        Some(_) => known,
        None => app.directory.refresh(&app.store).await.map_err(|fault| fault.to_string())?,
    };
    let application = known.application_by_id(application).ok_or("its application is not known")?;
    signature_headers(&app.keys, application, id, body, at).map_err(|fault| fault.to_string())
}

fn decide(app: &App, outcome: &Outcome, failures: u32, queued_at: Timestamp) -> Verdict {
    if outcome.failure.is_none() {
        return Verdict::Delivered;
    }
    let now = app.clock.now();
    let waited = Duration::try_from(now.duration_since(queued_at)).unwrap_or_default();
    let dice = f64::from(u32::from_be_bytes(app.random.bytes())) / f64::from(u32::MAX);
    match next_retry(failures + 1, waited, outcome.retry_after, dice) {
        Retry::Exhausted => Verdict::Exhausted,
        Retry::After(delay) => {
            let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
            Verdict::RetryAt(now.saturating_add(delay).unwrap_or(Timestamp::MAX))
        }
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}
