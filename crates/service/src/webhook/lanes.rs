//! Which lanes may claim and send how much now: pure bookkeeping, no clock and no I/O of its own.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::breaker::Breaker;
use crate::domain::{ApplicationId, Lane};
use crate::store::{Claimed, LeaseToken, Want};

/// Requests under way in all: what a node has memory for.
pub(super) const IN_FLIGHT_MAX: usize = 512;
/// Of one application, however many hosts it sends us to.
const APPLICATION_MAX: usize = 128;
/// Events of one lane that are claimed ahead of their turn, so that a quick merchant need not wait
/// for the database: twice as many whenever they run out, half as many when some come too late.
const AHEAD_START: u32 = 16;
const AHEAD_MAX: u32 = 2_048;
/// In all.
const HELD_MAX: usize = 8_192;
/// A claimed event that was not sent by then is given back: its lease must outlast the attempt.
const HELD_TIME_MAX: Duration = Duration::from_secs(3);
/// Lanes in one claim.
const WANTS_MAX: usize = 64;
/// Lanes known at once, in all and of one application; beyond it new ones wait for a later look.
/// Whoever sends us to a thousand dead hosts holds up only itself.
const LANES_MAX: usize = 16_384;
const APPLICATION_LANES_MAX: usize = 256;
/// Calm lanes are kept so that they need not start over, up to this many.
const CALM_MAX: usize = 1_024;

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
    returned: Vec<Held>,
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
    claimed_at: Instant,
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
    /// The merchant has just come back: what waits for it goes now, whenever it was due.
    catching_up: bool,
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
            catching_up: false,
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
            let due_by = if state.catching_up { Timestamp::MAX } else { now };
            wants.push(Want { lane, most, due_by });
        }
        wants
    }

    /// What the claim gave; fewer than wanted means that nothing more is due.
    pub(super) fn claimed(
        &mut self,
        wants: Vec<Want>,
        events: Vec<Claimed>,
        lease: &LeaseToken,
        claimed_at: Instant,
    ) {
        let mut counts: HashMap<Lane, usize> = HashMap::new();
        for event in events {
            let lane = event.lane.clone();
            *counts.entry(lane.clone()).or_default() += 1;
            let state = self.known.get_mut(&lane).expect("lanes are claimed for while known");
            state.held.push_back(Held { event, lease: lease.clone(), claimed_at });
            self.held += 1;
            self.of_application.entry(lane.application).or_default().held += 1;
            if !std::mem::replace(&mut state.sending, true) {
                self.sendable.push_back(lane);
            }
        }
        for want in wants {
            let Some(state) = self.known.get_mut(&want.lane) else { continue };
            let full = counts.get(&want.lane) == Some(&want.most);
            // Queued again meanwhile: somebody rang after the claim had looked.
            state.waiting = full || state.place != Place::Nowhere;
            state.catching_up &= full;
            if full {
                self.queue(want.lane);
            }
        }
    }

    /// Events to send now, each lane within its limits.
    pub(super) fn sends(&mut self, now: Timestamp, instant: Instant) -> Vec<Held> {
        let mut sends = Vec::new();
        for _ in 0..self.sendable.len() {
            if self.in_flight >= IN_FLIGHT_MAX {
                break;
            }
            let Some(lane) = self.sendable.pop_front() else { break };
            let Some(state) = self.known.get_mut(&lane) else { continue };
            let share = self.of_application.entry(lane.application).or_default();
            while let Some(first) = state.held.front() {
                let late = instant.duration_since(first.claimed_at) > HELD_TIME_MAX;
                let stop = self.in_flight >= IN_FLIGHT_MAX
                    || share.in_flight >= APPLICATION_MAX
                    || state.breaker.room(now, state.in_flight) == 0;
                if stop && !late {
                    break;
                }
                self.held -= 1;
                share.held -= 1;
                if late {
                    state.ahead /= 2;
                    state.waiting = true;
                    self.returned.extend(state.held.pop_front());
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
    pub(super) fn ended(&mut self, lane: &Lane, delivered: bool, attempt: u32, now: Timestamp) {
        self.in_flight -= 1;
        let share = self.of_application.entry(lane.application).or_default();
        share.in_flight -= 1;
        let state = self.known.get_mut(lane).expect("a lane with a request under way is known");
        state.in_flight -= 1;
        if delivered {
            if state.waiting && state.held.is_empty() {
                state.ahead = (state.ahead * 2).clamp(AHEAD_START, AHEAD_MAX);
            }
            state.advanced |= state.catching_up && attempt > 1;
            let long_broken = state.breaker.is_long_broken();
            if state.breaker.succeeded() {
                // Not after every pause: events that are refused each time would bring the next one on.
                state.catching_up = long_broken || state.interrupted;
                (state.interrupted, state.advanced) = (false, false);
                state.waiting = true;
                // The pause is over before its time.
                if let Place::Paused(until) = state.place {
                    self.paused.remove(&(until, lane.clone()));
                    state.place = Place::Nowhere;
                }
            }
        } else {
            state.breaker.failed(now);
            if state.breaker.is_broken() {
                state.interrupted |= state.catching_up && state.advanced;
                state.catching_up = false;
                state.ahead = 0;
                // They wait for the probe like all others.
                state.waiting |= !state.held.is_empty();
                self.held -= state.held.len();
                share.held -= state.held.len();
                self.returned.extend(state.held.drain(..));
            }
        }
        if state.waiting {
            self.queue(lane.clone());
        }
    }

    /// Claimed events that will not be sent after all.
    pub(super) fn take_returned(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.returned)
    }

    /// Everything that is claimed and not sent, because nothing more will be.
    pub(super) fn give_up_held(&mut self) {
        for state in self.known.values_mut() {
            self.returned.extend(state.held.drain(..));
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

    pub(super) fn broken(&self) -> usize {
        self.known.values().filter(|state| state.breaker.is_broken()).count()
    }

    /// Forgets lanes with nothing to do: those that failed once their pause is over, and calm ones
    /// when there are many. A look finds them again when they have due events.
    pub(super) fn forget_idle(&mut self, now: Timestamp) {
        let many = self.known.len() > CALM_MAX;
        self.known.retain(|lane, state| {
            let busy = state.waiting || state.place != Place::Nowhere || state.in_flight > 0;
            let paused = state.breaker.paused_until().is_some_and(|until| until > now);
            let calm = state.breaker.is_calm() && !many;
            let keep = busy || !state.held.is_empty() || paused || calm;
            if !keep && let Some(share) = self.of_application.get_mut(&lane.application) {
                share.lanes -= 1;
            }
            keep
        });
        self.of_application.retain(|_, share| share.lanes > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::EventId;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn lane() -> Lane {
        Lane { application: ApplicationId(1), origin: "https://a.ao".into() }
    }

    fn event(number: u8) -> Claimed {
        Claimed {
            id: EventId::assign(at(0), [number; 10]),
            lane: lane(),
            body: Vec::new(),
            webhook_url: "https://a.ao/".into(),
            attempt: 1,
            failures: 0,
            queued_at: at(0),
            created_at: at(0),
        }
    }

    /// Claims and sends what may be, from a store that always has more.
    fn turn(lanes: &mut Lanes, now: Timestamp, instant: Instant) -> usize {
        let wants = lanes.wants(now);
        let most: usize = wants.iter().map(|want| want.most).sum();
        let events = (0..most).map(|number| event(number as u8)).collect();
        lanes.claimed(wants, events, &LeaseToken::assign([0; 16]), instant);
        lanes.sends(now, instant).len()
    }

    #[expect(clippy::disallowed_methods, reason = "a moment to count from")]
    fn some_instant() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_late_success_ends_a_pause_before_its_time() {
        let (mut lanes, instant) = (Lanes::default(), some_instant());
        lanes.notice(lane());
        assert_eq!(turn(&mut lanes, at(0), instant), 4);
        (0..2).for_each(|_| lanes.ended(&lane(), true, 1, at(0)));
        assert_eq!(turn(&mut lanes, at(0), instant), 4);
        // One of six is slow; the others fail, and the lane is paused.
        (0..5).for_each(|_| lanes.ended(&lane(), false, 1, at(0)));
        lanes.notice(lane());
        assert_eq!(turn(&mut lanes, at(0), instant), 0, "it is paused");
        lanes.ended(&lane(), true, 1, at(10));
        assert!(turn(&mut lanes, at(10), instant) > 0, "it answers again");
    }

    #[test]
    fn events_that_are_always_refused_are_not_sent_before_their_time_again_and_again() {
        let (mut lanes, instant) = (Lanes::default(), some_instant());
        let refuse_until_paused = |lanes: &mut Lanes, attempt: u32, now: Timestamp| {
            lanes.notice(lane());
            while !lanes.known[&lane()].breaker.is_broken() || lanes.in_flight() > 0 {
                turn(lanes, now, instant);
                lanes.ended(&lane(), false, attempt, now);
            }
        };
        let probe = |lanes: &mut Lanes, now: Timestamp, delivered: bool| {
            assert_eq!(turn(lanes, now, instant), 1, "one probe");
            lanes.ended(&lane(), delivered, 1, now);
        };
        let early = |lanes: &Lanes| lanes.known[&lane()].catching_up;
        // A merchant that was away for a while: whatever waits goes once it is back.
        refuse_until_paused(&mut lanes, 1, at(0));
        for (now, delivered) in [(1_000, false), (3_000, false), (7_000, true)] {
            probe(&mut lanes, at(now), delivered);
        }
        assert!(early(&lanes));
        // It is overwhelmed by that, but some of what had failed was delivered: that goes on.
        turn(&mut lanes, at(7_000), instant);
        lanes.ended(&lane(), true, 2, at(7_000));
        refuse_until_paused(&mut lanes, 2, at(7_000));
        probe(&mut lanes, at(8_000), true);
        assert!(early(&lanes));
        // Whatever is left is refused each time, while new events are delivered: it waits for its time.
        refuse_until_paused(&mut lanes, 2, at(8_000));
        probe(&mut lanes, at(9_000), true);
        assert!(!early(&lanes));
        // And so it does after a second of refusals.
        let mut lanes = Lanes::default();
        refuse_until_paused(&mut lanes, 1, at(0));
        probe(&mut lanes, at(1_000), true);
        assert!(!early(&lanes));
    }

    #[test]
    fn an_event_that_comes_during_a_claim_is_not_left_to_the_next_look() {
        let (mut lanes, instant) = (Lanes::default(), some_instant());
        lanes.notice(lane());
        assert_eq!(turn(&mut lanes, at(0), instant), 4);
        lanes.ended(&lane(), true, 1, at(0));
        let wants = lanes.wants(at(0));
        lanes.notice(lane());
        let events = (1..wants[0].most as u8).map(event).collect();
        lanes.claimed(wants, events, &LeaseToken::assign([0; 16]), instant);
        lanes.sends(at(0), instant);
        assert!(lanes.wants(at(0)).is_empty(), "it has enough for now");
        let mut asked = false;
        while lanes.in_flight() > 0 && !asked {
            lanes.ended(&lane(), true, 1, at(0));
            lanes.sends(at(0), instant);
            asked = !lanes.wants(at(0)).is_empty();
        }
        assert!(asked, "the event waits for a look");
    }

    #[test]
    fn what_is_claimed_ahead_and_not_sent_in_time_is_given_back() {
        let (mut lanes, instant) = (Lanes::default(), some_instant());
        lanes.notice(lane());
        assert_eq!(turn(&mut lanes, at(0), instant), 4);
        lanes.ended(&lane(), true, 1, at(0));
        assert_eq!(turn(&mut lanes, at(0), instant), 2, "and some are held");
        assert!(lanes.sends(at(0), instant).is_empty());
        assert!(lanes.take_returned().is_empty());
        assert!(lanes.sends(at(0), instant + HELD_TIME_MAX * 2).is_empty());
        assert!(!lanes.take_returned().is_empty());
    }

    #[test]
    fn one_application_takes_its_share_of_lanes_and_no_more() {
        let mut lanes = Lanes::default();
        for number in 0..2_000 {
            lanes.notice(Lane { origin: format!("https://{number}.ao"), ..lane() });
        }
        assert_eq!(lanes.known.len(), APPLICATION_LANES_MAX);
        lanes.notice(Lane { application: ApplicationId(2), ..lane() });
        let wants: usize = std::iter::from_fn(|| {
            let wants = lanes.wants(at(0));
            (!wants.is_empty()).then_some(wants)
        })
        .flatten()
        .filter(|want| want.lane.application == ApplicationId(2))
        .count();
        assert_eq!(wants, 1, "another one has its turn");
    }
}
