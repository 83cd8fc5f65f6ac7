//! Which lanes may claim and send how much now: pure bookkeeping, no clock and no I/O of its own.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::breaker::{Breaker, Told};
use super::catching_up::CatchingUp;
use super::limits::{EXCHANGE_TIMEOUT, IN_FLIGHT_MAX};
use crate::domain::{ApplicationId, EventId, Lane, Steady, before};
use crate::store::{Claimed, LeaseToken, Want};

/// Of one application, however many hosts it sends us to.
const APPLICATION_MAX: usize = 128;
/// Events of one lane that are claimed ahead of their turn, so that a quick merchant need not wait
/// for the database: twice as many whenever they run out, half as many when some come too late.
const AHEAD_START: u32 = 16;
const AHEAD_MAX: u32 = 2_048;
/// Events claimed ahead, of all lanes.
const HELD_MAX: usize = 8_192;
/// A claimed event that was not sent by then is given back: its lease must outlast the attempt.
const HELD_TIME_MAX: Duration = Duration::from_secs(3);
/// Lanes in one claim.
const WANTS_MAX: usize = 64;
/// Lanes known at once, in all and of one application; beyond it new ones wait for a later look.
/// Whoever sends us to a thousand dead hosts holds up only itself.
const LANES_MAX: usize = 16_384;
const APPLICATION_LANES_MAX: usize = 256;
/// Lanes with nothing to do are kept, so that they need not start over and nobody's failures are
/// forgotten, while no more than this are known.
const IDLE_MAX: usize = 1_024;
const APPLICATION_IDLE_MAX: usize = 128;
/// The last of the room is for lanes that do not take much of it: slow ones leave some to quick ones.
const CROWDED: usize = IN_FLIGHT_MAX / 4 * 3;
const CROWDED_LANE_MAX: u32 = 4;

#[derive(Default)]
pub(super) struct Lanes {
    known: HashMap<Lane, State>,
    /// Lanes to claim for, in turn.
    claimable: VecDeque<Lane>,
    paused: BTreeSet<(Timestamp, Lane)>,
    /// Lanes with claimed events, in turn.
    sendable: VecDeque<Lane>,
    in_flight: usize,
    held: usize,
    of_application: HashMap<ApplicationId, Share>,
    returned: Vec<Returned>,
}

/// What one application takes of the whole.
#[derive(Default)]
struct Share {
    lanes: usize,
    in_flight: usize,
    held: usize,
}

/// A claimed event and the proof that it is ours.
pub(super) struct Held {
    pub event: Claimed,
    pub lease: LeaseToken,
    claimed_at: Steady,
}

/// A claimed event that is not sent after all.
pub(super) struct Returned {
    pub event: EventId,
    pub lease: LeaseToken,
    pub lane: Lane,
    pub due_at: Timestamp,
}

impl Held {
    /// Until when it may be under way, before its lease runs out.
    pub(super) fn until(&self) -> Steady {
        self.claimed_at.after(HELD_TIME_MAX + EXCHANGE_TIMEOUT)
    }
}

impl From<Held> for Returned {
    fn from(held: Held) -> Self {
        let Claimed { id, lane, due_at, .. } = held.event;
        Self { event: id, lease: held.lease, lane, due_at }
    }
}

struct State {
    breaker: Breaker,
    in_flight: u32,
    held: VecDeque<Held>,
    /// There may be due events.
    waiting: bool,
    place: Place,
    /// Stands in `sendable`.
    sending: bool,
    /// The merchant has just come back: what waits for it goes before its time.
    catching_up: Option<CatchingUp>,
    /// It has asked for time since: nothing goes before its time, until it was away and is back once more.
    asked_for_time: bool,
    /// Something that had failed before was delivered since it came back.
    advanced: bool,
    /// It stopped answering while that went on; it goes on once it answers.
    interrupted: bool,
    /// How many to claim ahead.
    ahead: u32,
}

/// Where a lane waits to be claimed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Claimable,
    Paused(Timestamp),
}

impl State {
    fn new() -> Self {
        Self {
            breaker: Breaker::new(),
            in_flight: 0,
            held: VecDeque::new(),
            waiting: false,
            place: Place::Nowhere,
            sending: false,
            catching_up: None,
            asked_for_time: false,
            advanced: false,
            interrupted: false,
            ahead: 0,
        }
    }

    /// How many events to claim: what may be sent now, and some ahead for a merchant that is quick.
    fn claims(&self, now: Timestamp) -> usize {
        let room = self.breaker.room(now, self.in_flight);
        if self.breaker.is_broken() {
            return (room as usize).saturating_sub(self.held.len());
        }
        let most = (room + self.in_flight + self.ahead) as usize;
        let room = ((room + self.ahead) as usize).saturating_sub(self.held.len());
        // In large helpings, unless there is nothing left to send.
        if self.held.is_empty() || room * 2 >= most { room } else { 0 }
    }

    /// Whether there may be more to claim after this, which gave as much as it asked for (then the last of it
    /// is due at that moment) or less.
    fn goes_on(&mut self, want: &Want, full_to: Option<Timestamp>) -> bool {
        let Some(catching_up) = &mut self.catching_up else { return full_to.is_some() };
        if !catching_up.claimed(want, full_to) {
            self.catching_up = None;
        }
        // Also at its end: somebody may have rung for what is due, which was not looked for.
        true
    }
}

impl Lanes {
    /// There may be due events in this lane.
    pub(super) fn notice(&mut self, lane: Lane) {
        if !self.known.contains_key(&lane) {
            let share = self.of_application.entry(lane.application).or_default();
            if share.lanes >= APPLICATION_LANES_MAX || self.known.len() >= LANES_MAX {
                return;
            }
            share.lanes += 1;
            self.known.insert(lane.clone(), State::new());
        }
        if let Some(state) = self.known.get_mut(&lane) {
            state.waiting = true;
        }
        self.queue(lane);
    }

    /// What to claim now.
    pub(super) fn wants(&mut self, now: Timestamp) -> Vec<Want> {
        while let Some((until, _)) = self.paused.first()
            && *until <= now
        {
            let (_, lane) = self.paused.pop_first().expect("there is a first");
            if let Some(state) = self.known.get_mut(&lane) {
                state.place = Place::Claimable;
                self.claimable.push_back(lane);
            }
        }
        let mut wants = Vec::new();
        let mut free = HELD_MAX.saturating_sub(self.held);
        for _ in 0..self.claimable.len() {
            if free == 0 || wants.len() == WANTS_MAX {
                break;
            }
            let Some(lane) = self.claimable.pop_front() else { break };
            let Some(state) = self.known.get_mut(&lane) else { continue };
            state.place = Place::Nowhere;
            let share = self.of_application.entry(lane.application).or_default();
            let spare =
                (APPLICATION_MAX + AHEAD_MAX as usize).saturating_sub(share.in_flight + share.held);
            let most = state.claims(now).min(free).min(spare);
            if most == 0 {
                // It has enough, and is queued again when a request ends or at the next look; or it
                // was paused meanwhile.
                if state.breaker.paused_until().is_some() {
                    self.queue(lane);
                }
                continue;
            }
            free -= most;
            wants.push(match &mut state.catching_up {
                Some(catching_up) => catching_up.want(now, lane, most),
                None => Want::due_by(now, lane, most),
            });
        }
        wants
    }

    /// What the claim gave; fewer than wanted means that nothing more is due.
    pub(super) fn claimed(
        &mut self,
        wants: Vec<Want>,
        events: Vec<Claimed>,
        lease: &LeaseToken,
        claimed_at: Steady,
    ) {
        // Of each lane how many, and when the last of them is due.
        let mut given: HashMap<Lane, (usize, Timestamp)> = HashMap::new();
        for event in events {
            let lane = event.lane.clone();
            let (count, last) = given.entry(lane.clone()).or_insert((0, event.due_at));
            *count += 1;
            *last = event.due_at.max(*last);
            let state = self.known.get_mut(&lane).expect("lanes are claimed for while known");
            let held = Held { event, lease: lease.clone(), claimed_at };
            let is_early = || wants.iter().any(|want| want.lane == lane && want.is_early());
            if state.asked_for_time && is_early() {
                self.returned.push(held.into());
                continue;
            }
            state.held.push_back(held);
            self.held += 1;
            self.of_application.entry(lane.application).or_default().held += 1;
            if !std::mem::replace(&mut state.sending, true) {
                self.sendable.push_back(lane);
            }
        }
        for want in wants {
            let Some(state) = self.known.get_mut(&want.lane) else { continue };
            let last = given.get(&want.lane).filter(|(count, _)| *count == want.most);
            let more = state.goes_on(&want, last.map(|(_, last)| *last));
            // Queued again meanwhile: somebody rang after the claim had looked.
            state.waiting = more || state.place != Place::Nowhere;
            if more {
                self.queue(want.lane);
            }
        }
    }

    /// The store could not be asked: nothing is known of these.
    pub(super) fn not_claimed(&mut self, wants: Vec<Want>) {
        wants.into_iter().for_each(|want| self.notice(want.lane));
    }

    /// Events of this lane can be claimed again.
    pub(super) fn given_back(&mut self, lane: &Lane, due_at: Timestamp, now: Timestamp) {
        self.notice(lane.clone());
        if let Some(state) = self.known.get_mut(lane)
            && due_at > now
            && !state.breaker.is_broken()
            && !state.asked_for_time
        {
            state.catching_up.get_or_insert_with(|| CatchingUp::from(due_at)).comes_again(due_at);
        }
    }

    /// Events to send now, each lane within its limits.
    pub(super) fn sends(&mut self, now: Timestamp, steady: Steady) -> Vec<Held> {
        let mut sends = Vec::new();
        for _ in 0..self.sendable.len() {
            if self.in_flight >= IN_FLIGHT_MAX {
                break;
            }
            let Some(lane) = self.sendable.pop_front() else { break };
            let Some(state) = self.known.get_mut(&lane) else { continue };
            let share = self.of_application.entry(lane.application).or_default();
            while let Some(first) = state.held.front() {
                let late = steady.duration_since(first.claimed_at) > HELD_TIME_MAX;
                let crowded = self.in_flight >= CROWDED && state.in_flight >= CROWDED_LANE_MAX;
                let stop = self.in_flight >= IN_FLIGHT_MAX
                    || crowded
                    || share.in_flight >= APPLICATION_MAX
                    || state.breaker.room(now, state.in_flight) == 0;
                if stop && !late {
                    break;
                }
                self.held -= 1;
                share.held -= 1;
                if late {
                    state.ahead /= 2;
                    self.returned.extend(state.held.pop_front().map(Returned::from));
                    continue;
                }
                state.breaker.started();
                state.in_flight += 1;
                share.in_flight += 1;
                self.in_flight += 1;
                sends.extend(state.held.pop_front());
            }
            state.sending = !state.held.is_empty();
            if state.sending {
                self.sendable.push_back(lane);
            }
        }
        sends
    }

    /// A request ended, the so manieth attempt of its event.
    pub(super) fn ended(&mut self, lane: &Lane, told: Told, attempt: u32, now: Timestamp) {
        self.in_flight -= 1;
        let share = self.of_application.entry(lane.application).or_default();
        share.in_flight -= 1;
        let state = self.known.get_mut(lane).expect("a lane with a request under way is known");
        state.in_flight -= 1;
        match told {
            Told::Taken => {
                if state.waiting && state.held.is_empty() {
                    state.ahead = (state.ahead * 2).clamp(AHEAD_START, AHEAD_MAX);
                }
                state.advanced |= attempt > 1;
                let long_broken = state.breaker.is_long_broken();
                if state.breaker.succeeded() {
                    // Not after every pause: events that are refused each time would bring the next one on.
                    let catches_up = long_broken || state.interrupted;
                    state.catching_up = catches_up.then(|| CatchingUp::from(Timestamp::MIN));
                    state.asked_for_time &= !catches_up;
                    (state.interrupted, state.advanced) = (false, false);
                    state.waiting = true;
                    // The pause is over before its time.
                    if let Place::Paused(until) = state.place {
                        self.paused.remove(&(until, lane.clone()));
                        state.place = Place::Nowhere;
                    }
                }
            }
            Told::Nothing => state.breaker.said_nothing(now),
            Told::Failed => {
                state.breaker.failed(now);
                if state.breaker.is_broken() {
                    let early = state.held.iter().any(|held| held.event.due_at > now);
                    let early = state.catching_up.take().is_some() || early;
                    state.interrupted |= early && state.advanced;
                    state.ahead = 0;
                    // They wait for the probe like all others.
                    self.held -= state.held.len();
                    share.held -= state.held.len();
                    self.returned.extend(state.held.drain(..).map(Returned::from));
                }
            }
        }
        if state.waiting {
            self.queue(lane.clone());
        }
    }

    /// It has asked for time: what is not due is not sent.
    pub(super) fn keep_to_time(&mut self, lane: &Lane, now: Timestamp) {
        let Some(state) = self.known.get_mut(lane) else { return };
        state.catching_up = None;
        (state.interrupted, state.advanced) = (false, false);
        state.asked_for_time = true;
        let held = std::mem::take(&mut state.held);
        let (early, due): (VecDeque<_>, _) =
            held.into_iter().partition(|held| held.event.due_at > now);
        state.held = due;
        self.held -= early.len();
        self.of_application.entry(lane.application).or_default().held -= early.len();
        self.returned.extend(early.into_iter().map(Returned::from));
    }

    /// Claimed events that will not be sent after all.
    pub(super) fn take_returned(&mut self) -> Vec<Returned> {
        std::mem::take(&mut self.returned)
    }

    /// Everything that is claimed and not sent, because nothing more will be.
    pub(super) fn give_up_held(&mut self) {
        for state in self.known.values_mut() {
            self.returned.extend(state.held.drain(..).map(Returned::from));
        }
        self.of_application.values_mut().for_each(|share| share.held = 0);
        self.held = 0;
    }

    fn queue(&mut self, lane: Lane) {
        let Some(state) = self.known.get_mut(&lane) else { return };
        if state.place != Place::Nowhere {
            return;
        }
        match state.breaker.paused_until() {
            Some(until) => {
                state.place = Place::Paused(until);
                self.paused.insert((until, lane));
            }
            None => {
                state.place = Place::Claimable;
                self.claimable.push_back(lane);
            }
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// When a lane that does not answer may be probed.
    pub(super) fn paused_until(&self, lane: &Lane) -> Option<Timestamp> {
        self.known.get(lane)?.breaker.paused_until()
    }

    /// Those that do not answer. Whoever was sent nothing for a day has nothing left to be sent.
    pub(super) fn broken(&self, now: Timestamp) -> usize {
        let lately = before(now, SignedDuration::from_hours(24));
        let is_broken = |state: &&State| match state.breaker.paused_until() {
            Some(until) => until > lately,
            None => state.breaker.is_broken(),
        };
        self.known.values().filter(is_broken).count()
    }

    /// Forgets lanes with nothing to do where there are many: the calm ones first, and others once their
    /// pause is over. A look finds them again when they have due events.
    pub(super) fn forget_idle(&mut self, now: Timestamp) {
        self.forget(|state| state.breaker.is_calm());
        self.forget(|state| state.breaker.paused_until().is_none_or(|until| until <= now));
    }

    fn forget(&mut self, forgettable: impl Fn(&State) -> bool) {
        let mut too_many = self.known.len().saturating_sub(IDLE_MAX);
        let shares = &mut self.of_application;
        if too_many == 0 && shares.values().all(|share| share.lanes <= APPLICATION_IDLE_MAX) {
            return;
        }
        self.known.retain(|lane, state| {
            let Some(share) = shares.get_mut(&lane.application) else { return true };
            let many = too_many > 0 || share.lanes > APPLICATION_IDLE_MAX;
            let idle = !state.waiting
                && state.place == Place::Nowhere
                && state.in_flight == 0
                && state.held.is_empty();
            let keep = !many || !idle || !forgettable(state);
            if !keep {
                too_many = too_many.saturating_sub(1);
                share.lanes -= 1;
            }
            keep
        });
        shares.retain(|_, share| share.lanes > 0);
    }
}

#[cfg(test)]
mod tests;
