//! Which lanes may send how much now: pure bookkeeping, no clock and no I/O of its own.

use std::collections::{BTreeSet, HashMap, VecDeque};

use jiff::Timestamp;

use super::breaker::Breaker;
use crate::domain::{ApplicationId, Lane};
use crate::store::{Claimed, Want};

/// Requests under way in all: what a node has sockets and memory for.
pub(super) const IN_FLIGHT_MAX: usize = 512;
/// Of one application, however many hosts it sends us to.
const APPLICATION_MAX: usize = 128;
/// Lanes in one claim.
const WANTS_MAX: usize = 64;
/// Lanes known at once; beyond it new ones wait for the next look.
const LANES_MAX: usize = 10_000;
/// Calm lanes are kept so that they need not start over, up to this many.
const CALM_MAX: usize = 1_024;

#[derive(Default)]
pub(super) struct Lanes {
    known: HashMap<Lane, State>,
    /// Lanes to ask for, in turn.
    ready: VecDeque<Lane>,
    paused: BTreeSet<(Timestamp, Lane)>,
    in_flight: usize,
    of_application: HashMap<ApplicationId, usize>,
}

struct State {
    breaker: Breaker,
    in_flight: u32,
    /// There may be due events.
    waiting: bool,
    /// Stands in `ready` or `paused`.
    queued: bool,
    /// The merchant has just come back: what waits for it goes now, whenever it was due.
    catching_up: bool,
}

impl Lanes {
    /// There may be due events in this lane.
    pub(super) fn notice(&mut self, lane: Lane) {
        if !self.known.contains_key(&lane) && self.known.len() >= LANES_MAX {
            return;
        }
        let state = self.known.entry(lane.clone()).or_insert_with(|| State {
            breaker: Breaker::new(),
            in_flight: 0,
            waiting: false,
            queued: false,
            catching_up: false,
        });
        state.waiting = true;
        self.queue(lane);
    }

    /// What to claim now.
    pub(super) fn wants(&mut self, now: Timestamp) -> Vec<Want> {
        while let Some((until, _)) = self.paused.first()
            && *until <= now
        {
            let (_, lane) = self.paused.pop_first().expect("there is a first");
            self.ready.push_back(lane);
        }
        let mut wants = Vec::new();
        let mut free = IN_FLIGHT_MAX.saturating_sub(self.in_flight);
        let mut of_application: HashMap<ApplicationId, usize> = HashMap::new();
        // Each lane once, and a fair share while there is more to do than room.
        for _ in 0..self.ready.len() {
            if free == 0 || wants.len() == WANTS_MAX {
                break;
            }
            let Some(lane) = self.ready.pop_front() else { break };
            let Some(state) = self.known.get_mut(&lane) else { continue };
            let taken = of_application.entry(lane.application).or_insert_with(|| {
                self.of_application.get(&lane.application).copied().unwrap_or(0)
            });
            let room = state.breaker.room(now, state.in_flight) as usize;
            let most = room.min(APPLICATION_MAX.saturating_sub(*taken)).min(free);
            if room > 0 && most == 0 {
                // Its application has too much under way; its turn comes when some of that ends.
                self.ready.push_back(lane);
                continue;
            }
            state.queued = false;
            if most == 0 {
                // At its limit: it is queued again when a request ends.
                continue;
            }
            *taken += most;
            free -= most;
            let due_by = if state.catching_up { Timestamp::MAX } else { now };
            wants.push(Want { lane, most, due_by });
        }
        wants
    }

    /// What the claim gave; fewer than wanted means that nothing more is due.
    pub(super) fn started(&mut self, wants: Vec<Want>, claimed: &[Claimed]) {
        let mut counts: HashMap<&Lane, usize> = HashMap::new();
        for event in claimed {
            *counts.entry(&event.lane).or_default() += 1;
        }
        for want in wants {
            let count = counts.get(&want.lane).copied().unwrap_or(0);
            let Some(state) = self.known.get_mut(&want.lane) else { continue };
            state.waiting = count == want.most;
            state.catching_up &= state.waiting;
            for _ in 0..count {
                state.breaker.started();
                state.in_flight += 1;
            }
            self.in_flight += count;
            *self.of_application.entry(want.lane.application).or_default() += count;
            if state.waiting {
                self.queue(want.lane);
            }
        }
    }

    /// A request ended.
    pub(super) fn ended(&mut self, lane: &Lane, delivered: bool, now: Timestamp) {
        self.in_flight -= 1;
        if let Some(count) = self.of_application.get_mut(&lane.application) {
            *count -= 1;
            if *count == 0 {
                self.of_application.remove(&lane.application);
            }
        }
        let state = self.known.get_mut(lane).expect("a lane with a request under way is known");
        state.in_flight -= 1;
        if delivered {
            if state.breaker.succeeded() {
                state.catching_up = true;
                state.waiting = true;
            }
        } else {
            state.breaker.failed(now);
            state.catching_up = false;
        }
        if state.waiting {
            self.queue(lane.clone());
        } else if state.in_flight == 0 && state.breaker.is_calm() && self.known.len() > CALM_MAX {
            self.known.remove(lane);
        }
    }

    fn queue(&mut self, lane: Lane) {
        let Some(state) = self.known.get_mut(&lane) else { return };
        if std::mem::replace(&mut state.queued, true) {
            return;
        }
        match state.breaker.paused_until() {
            Some(until) => {
                self.paused.insert((until, lane));
            }
            None => self.ready.push_back(lane),
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// When a paused lane may be probed.
    pub(super) fn next_probe(&self) -> Option<Timestamp> {
        self.paused.first().map(|(until, _)| *until)
    }

    pub(super) fn broken(&self) -> usize {
        self.known.values().filter(|state| state.breaker.is_broken()).count()
    }

    /// Forgets lanes with nothing under way whose events are gone or not due; a look finds the rest.
    pub(super) fn forget_idle(&mut self) {
        if self.known.len() > CALM_MAX {
            self.known.retain(|_, state| {
                state.waiting || state.queued || state.in_flight > 0 || !state.breaker.is_calm()
            });
        }
    }
}
