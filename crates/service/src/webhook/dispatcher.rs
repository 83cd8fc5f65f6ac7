//! Walk C: outbox row → claim → sign → POST → decide → record. Nothing here outlives a restart,
//! because nothing here is more than a copy of the outbox.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::{JoinError, JoinSet};

use super::chaos;
use super::connections::SenderError;
use super::delivery::{Delivery, deliver};
use super::lanes::{Lanes, Returned};
use super::sender::Sender;
use super::unrecorded::Unrecorded;
use crate::app::App;
use crate::domain::{Lane, Steady};
use crate::store::{
    Claimed, DeliveryAttempt, LaneDue, LeaseToken, Recorded, StoreError, Verdict, Want,
};

/// How often the outbox is looked through for events nobody rang for: those of other nodes and of an earlier
/// life, replays.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// Lanes looked at in one go; the next look goes on from there.
const LOOK_LANES_MAX: usize = 1_000;
/// Retries remembered until they are due; those of later times are found by a look.
const RETRIES_MAX: usize = 16_384;
/// Attempts waiting to be recorded; beyond it nothing new is claimed.
const UNRECORDED_MAX: usize = 4_096;
/// A record is a commit: attempts that end within this share one, unless there are many.
const RECORD_PAUSE: Duration = Duration::from_millis(10);
const RECORD_AT_ONCE: usize = 256;

pub struct Dispatcher {
    app: App,
    sender: Arc<Sender>,
    lanes: Lanes,
    tasks: JoinSet<Done>,
    claiming: bool,
    /// Nothing new is claimed any more.
    stopping: bool,
    unrecorded: Unrecorded<(Lane, DeliveryAttempt)>,
    /// When the first of them has waited long enough for others.
    record_by: tokio::time::Instant,
    looked_to: Option<Lane>,
    /// The last look failed.
    blind: bool,
    /// Lanes in which something is tried again, and when.
    retries: BTreeSet<(Timestamp, Lane)>,
    /// A claim or a record failed; the store is asked again at the next look.
    store_down: Option<StoreError>,
    /// It has failed since it last answered.
    store_failing: bool,
}

/// Work that is over. Claims and records go one at a time, each with all that waits for it.
enum Done {
    Claimed {
        wants: Vec<Want>,
        lease: LeaseToken,
        /// Before the store was asked: its leases cannot have begun earlier.
        asked_at: Steady,
        events: Result<Vec<Claimed>, StoreError>,
    },
    Delivered(Box<Delivery>),
    FollowedUp,
    Recorded {
        attempts: Vec<(Lane, DeliveryAttempt)>,
        outcome: Result<Vec<Recorded>, StoreError>,
    },
    /// Each by its lane, and when it is due.
    Returned(Vec<(Lane, Timestamp)>),
}

impl Dispatcher {
    pub fn new(app: App) -> Result<Self, SenderError> {
        let sender = Sender::new(&app.config.webhooks, app.url_rules.clone())?;
        Ok(Self {
            record_by: app.clock.stopwatch().into(),
            app,
            sender: Arc::new(sender),
            lanes: Lanes::default(),
            tasks: JoinSet::new(),
            claiming: false,
            stopping: false,
            unrecorded: Unrecorded::default(),
            looked_to: None,
            blind: false,
            retries: BTreeSet::new(),
            store_down: None,
            store_failing: false,
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
                () = app.outbox_bell.heard() => {
                    self.hear();
                    self.tell_waiting().await;
                }
                Some(done) = self.tasks.join_next() => self.finish(done),
                () = tokio::time::sleep_until(self.record_by), if self.must_record() => self.record(),
            }
            self.proceed();
            if self.unrecorded.waiting() >= RECORD_AT_ONCE {
                self.record();
            }
        }
        self.stop().await;
    }

    /// Requests under way are finished and recorded; what was only claimed is given back.
    async fn stop(&mut self) {
        self.stopping = true;
        // Whatever was to be recorded is tried once more.
        self.store_down = None;
        loop {
            self.proceed();
            self.record();
            let Some(done) = self.tasks.join_next().await else { return };
            self.finish(done);
        }
    }

    /// Delivers everything that is due at this moment of the clock.
    pub async fn drain(&mut self) -> Result<(), StoreError> {
        self.store_down = None;
        self.tidy();
        self.hear();
        let mut after = None;
        loop {
            let found = self.app.store.lanes(after, LOOK_LANES_MAX).await?;
            let Some(last) = found.last() else { break };
            after = Some(last.lane.clone());
            self.notice_due(found);
        }
        loop {
            self.proceed();
            self.record();
            match self.tasks.join_next().await {
                Some(done) => self.finish(done),
                None => return self.store_down.clone().map_or(Ok(()), Err),
            }
        }
    }

    /// For those who wait until everything due is sent.
    async fn tell_waiting(&mut self) {
        let waiting = self.app.outbox_bell.take_waiting();
        if waiting.is_empty() {
            return;
        }
        let next = match self.drain().await {
            Ok(()) => self.next_due().await.unwrap_or_default(),
            Err(fault) => {
                self.store_failed(fault);
                None
            }
        };
        for one in waiting {
            let _ = one.send(next);
        }
    }

    /// When there is next something to do, if the clock is all it takes.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let found = self.app.store.lanes(None, usize::MAX).await?;
        // A lane that is paused waits for its probe, whenever its events are due.
        let due = found.iter().map(|found| match self.lanes.paused_until(&found.lane) {
            Some(probe) => found.due_at.max(probe),
            None => found.due_at,
        });
        Ok(due.min())
    }

    fn hear(&mut self) {
        for lane in self.app.outbox_bell.take() {
            self.lanes.notice(lane);
        }
    }

    fn tidy(&mut self) {
        let now = self.app.clock.now();
        self.lanes.forget_idle(now);
        self.app.metrics.webhook_breakers_open.set(self.lanes.broken(now) as f64);
    }

    /// The next stretch of lanes; at the end it begins anew.
    async fn look(&mut self) {
        self.tidy();
        // A look reads far more than a claim: where it fails, that may still succeed.
        self.store_down = None;
        match self.app.store.lanes(self.looked_to.clone(), LOOK_LANES_MAX).await {
            Ok(found) => {
                let is_last = found.len() < LOOK_LANES_MAX;
                self.looked_to = found.last().filter(|_| !is_last).map(|found| found.lane.clone());
                self.notice_due(found);
                self.blind = false;
            }
            Err(fault) if !self.blind => {
                tracing::warn!(%fault, "the outbox cannot be looked through: what nobody rang for waits");
                self.blind = true;
            }
            Err(_) => {}
        }
    }

    fn notice_due(&mut self, found: Vec<LaneDue>) {
        let now = self.app.clock.now();
        let due = found.into_iter().filter(|found| found.due_at <= now);
        due.for_each(|found| self.lanes.notice(found.lane));
    }

    /// A look would find them too, but not at once where there are many lanes.
    fn notice_retries(&mut self) {
        let now = self.app.clock.now();
        while self.retries.first().is_some_and(|(due, _)| *due <= now) {
            let (_, lane) = self.retries.pop_first().expect("there is a first");
            self.lanes.notice(lane);
        }
    }

    /// Starts whatever can be started.
    fn proceed(&mut self) {
        // What has ended meanwhile goes into the same helpings.
        while let Some(done) = self.tasks.try_join_next() {
            self.finish(done);
        }
        if self.stopping {
            self.lanes.give_up_held();
        }
        self.notice_retries();
        for held in self.lanes.sends(self.app.clock.now(), self.app.clock.steady()) {
            let (app, sender) = (self.app.clone(), Arc::clone(&self.sender));
            // In a box: the runtime moves a task about, and this one is large.
            self.tasks.spawn(Box::pin(async move {
                Done::Delivered(Box::new(deliver(&app, &sender, held).await))
            }));
        }
        self.app.metrics.webhooks_in_flight.set(self.lanes.in_flight() as f64);
        self.give_back();
        self.claim();
    }

    fn must_record(&self) -> bool {
        self.unrecorded.is_ready() && self.store_down.is_none()
    }

    fn claim(&mut self) {
        let busy = self.claiming
            || self.unrecorded.waiting() > UNRECORDED_MAX
            || self.unrecorded.is_urgent(self.app.clock.steady());
        if self.stopping || busy || self.store_down.is_some() {
            return;
        }
        let wants = self.lanes.wants(self.app.clock.now());
        if wants.is_empty() {
            return;
        }
        self.claiming = true;
        let (app, lease) = (self.app.clone(), LeaseToken::assign(self.app.random.bytes()));
        let asked_at = app.clock.steady();
        self.tasks.spawn(async move {
            let events = app.store.claim(wants.clone(), &lease, asked_at).await;
            Done::Claimed { wants, lease, asked_at, events }
        });
    }

    fn record(&mut self) {
        if !self.must_record() {
            return;
        }
        let (app, attempts) = (self.app.clone(), self.unrecorded.take());
        self.tasks.spawn(async move {
            let only = attempts.iter().map(|(_, attempt)| attempt.clone()).collect();
            let outcome = app.store.record(only).await;
            app.news.tell();
            Done::Recorded { attempts, outcome }
        });
    }

    fn give_back(&mut self) {
        let returned = self.lanes.take_returned();
        if returned.is_empty() {
            return;
        }
        let app = self.app.clone();
        self.tasks.spawn(async move {
            let split = |Returned { event, lease, lane, due_at }| ((event, lease), (lane, due_at));
            let (unsent, lanes) = returned.into_iter().map(split).unzip();
            // If it cannot be told, the leases run out by themselves.
            let _ = app.store.give_back(unsent).await;
            Done::Returned(lanes)
        });
    }

    fn finish(&mut self, done: Result<Done, JoinError>) {
        let done = match done {
            Ok(done) => done,
            // The runtime is ending, and this task with it.
            Err(ended) if ended.is_cancelled() => return,
            // Its lane would wait for ever: the service ends and starts anew.
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        };
        match done {
            Done::Claimed { wants, lease, asked_at, events } => {
                self.claiming = false;
                match events {
                    Ok(events) => {
                        self.store_failing = false;
                        self.lanes.claimed(wants, events, &lease, asked_at);
                    }
                    Err(fault) => {
                        self.store_failed(fault);
                        self.lanes.not_claimed(wants);
                    }
                }
            }
            Done::Delivered(delivery) => {
                let Delivery { lane, told, asks_for_time, attempt, follow_up } = *delivery;
                let now = self.app.clock.now();
                self.lanes.ended(&lane, told, attempt.number, now);
                if asks_for_time {
                    self.lanes.keep_to_time(&lane, now);
                }
                if let Some((chaos, event)) = follow_up {
                    let (app, sender) = (self.app.clone(), Arc::clone(&self.sender));
                    self.tasks.spawn(async move {
                        chaos::follow_up(&app, &sender, &chaos, &event).await;
                        Done::FollowedUp
                    });
                }
                if self.unrecorded.waiting() == 0 {
                    self.record_by = (self.app.clock.stopwatch() + RECORD_PAUSE).into();
                }
                self.unrecorded.push((lane, attempt), self.app.clock.steady());
            }
            Done::Recorded { attempts, outcome } => match outcome {
                Ok(outcome) => {
                    self.store_failing = false;
                    self.unrecorded.recorded();
                    self.recorded(attempts, &outcome);
                }
                // Kept for the next try. Should the process end before, the events are sent
                // again: twice is allowed, never is not.
                Err(fault) => {
                    self.store_failed(fault);
                    self.unrecorded.not_recorded(attempts);
                }
            },
            Done::FollowedUp => {}
            Done::Returned(lanes) => {
                let now = self.app.clock.now();
                for (lane, due_at) in lanes {
                    self.lanes.given_back(&lane, due_at, now);
                }
            }
        }
    }

    fn recorded(&mut self, attempts: Vec<(Lane, DeliveryAttempt)>, outcome: &[Recorded]) {
        for ((lane, attempt), recorded) in attempts.into_iter().zip(outcome) {
            match recorded {
                Recorded::Done => {
                    if let Verdict::RetryAt(at) = attempt.verdict {
                        self.retries.insert((at, lane));
                    }
                }
                Recorded::Superseded => self.lanes.notice(lane),
                Recorded::LeaseLost => {
                    tracing::warn!(event = attempt.event.as_str(), "a lease was lost");
                }
            }
        }
        while self.retries.len() > RETRIES_MAX {
            self.retries.pop_last();
        }
    }

    fn store_failed(&mut self, fault: StoreError) {
        if !std::mem::replace(&mut self.store_failing, true) {
            tracing::warn!(%fault, "webhooks wait: the outbox is not available");
        }
        self.store_down = Some(fault);
        self.unrecorded.store_failed();
    }
}
