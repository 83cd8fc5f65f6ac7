//! Lanes without a clock and a store.

use super::*;

const NOW: Steady = Steady::since_boot(Duration::from_secs(3_600));

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
        due_at: at(0),
        queued_at: at(0),
        created_at: at(0),
    }
}

/// Claims and sends what may be, from a store that always has more.
fn turn(lanes: &mut Lanes, now: Timestamp, steady: Steady) -> usize {
    let wants = lanes.wants(now);
    let most: usize = wants.iter().map(|want| want.most).sum();
    let events = (0..most).map(|number| event(number as u8)).collect();
    lanes.claimed(wants, events, &LeaseToken::assign([0; 16]), steady);
    lanes.sends(now, steady).len()
}

#[test]
fn a_late_success_ends_a_pause_before_its_time() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    lanes.notice(lane());
    assert_eq!(turn(&mut lanes, at(0), steady), 4);
    (0..2).for_each(|_| lanes.ended(&lane(), Told::Taken, 1, at(0)));
    assert_eq!(turn(&mut lanes, at(0), steady), 4);
    // One of six is slow; the others fail, and the lane is paused.
    (0..5).for_each(|_| lanes.ended(&lane(), Told::Failed, 1, at(0)));
    lanes.notice(lane());
    assert_eq!(turn(&mut lanes, at(0), steady), 0, "it is paused");
    lanes.ended(&lane(), Told::Taken, 1, at(10));
    assert!(turn(&mut lanes, at(10), steady) > 0, "it answers again");
}

#[test]
fn events_that_are_always_refused_are_not_sent_before_their_time_again_and_again() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    let refuse_until_paused = |lanes: &mut Lanes, attempt: u32, now: Timestamp| {
        lanes.notice(lane());
        while !lanes.known[&lane()].breaker.is_broken() || lanes.in_flight() > 0 {
            turn(lanes, now, steady);
            lanes.ended(&lane(), Told::Failed, attempt, now);
        }
    };
    let probe = |lanes: &mut Lanes, now: Timestamp, told: Told| {
        assert_eq!(turn(lanes, now, steady), 1, "one probe");
        lanes.ended(&lane(), told, 1, now);
    };
    let early = |lanes: &Lanes| lanes.known[&lane()].catching_up.is_some();
    // A merchant that was away for a while: whatever waits goes once it is back.
    refuse_until_paused(&mut lanes, 1, at(0));
    for (now, told) in [(1_000, Told::Failed), (3_000, Told::Failed), (7_000, Told::Taken)] {
        probe(&mut lanes, at(now), told);
    }
    assert!(early(&lanes));
    // It is overwhelmed by that, but some of what had failed was delivered: that goes on.
    turn(&mut lanes, at(7_000), steady);
    lanes.ended(&lane(), Told::Taken, 2, at(7_000));
    refuse_until_paused(&mut lanes, 2, at(7_000));
    probe(&mut lanes, at(8_000), Told::Taken);
    assert!(early(&lanes));
    // Whatever is left is refused each time, while new events are delivered: it waits for its time.
    refuse_until_paused(&mut lanes, 2, at(8_000));
    probe(&mut lanes, at(9_000), Told::Taken);
    assert!(!early(&lanes));
    // And so it does after a second of refusals.
    let mut lanes = Lanes::default();
    refuse_until_paused(&mut lanes, 1, at(0));
    probe(&mut lanes, at(1_000), Told::Taken);
    assert!(!early(&lanes));
}

#[test]
fn an_event_that_comes_during_a_claim_is_not_left_to_the_next_look() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    lanes.notice(lane());
    assert_eq!(turn(&mut lanes, at(0), steady), 4);
    lanes.ended(&lane(), Told::Taken, 1, at(0));
    let wants = lanes.wants(at(0));
    lanes.notice(lane());
    let events = (1..wants[0].most as u8).map(event).collect();
    lanes.claimed(wants, events, &LeaseToken::assign([0; 16]), steady);
    lanes.sends(at(0), steady);
    assert!(lanes.wants(at(0)).is_empty(), "it has enough for now");
    let mut asked = false;
    while lanes.in_flight() > 0 && !asked {
        lanes.ended(&lane(), Told::Taken, 1, at(0));
        lanes.sends(at(0), steady);
        asked = !lanes.wants(at(0)).is_empty();
    }
    assert!(asked, "the event waits for a look");
}

#[test]
fn what_is_claimed_ahead_and_not_sent_in_time_is_given_back() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    lanes.notice(lane());
    assert_eq!(turn(&mut lanes, at(0), steady), 4);
    lanes.ended(&lane(), Told::Taken, 1, at(0));
    assert_eq!(turn(&mut lanes, at(0), steady), 2, "and some are held");
    assert!(lanes.sends(at(0), steady).is_empty());
    assert!(lanes.take_returned().is_empty());
    assert!(lanes.sends(at(0), steady.after(HELD_TIME_MAX * 2)).is_empty());
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

/// Claims one event that is due, sends it and hears this of it.
fn one(lanes: &mut Lanes, number: u8, told: Told, now: Timestamp, steady: Steady) {
    lanes.notice(lane());
    let wants = lanes.wants(now);
    lanes.claimed(wants, vec![event(number)], &LeaseToken::assign([0; 16]), steady);
    assert_eq!(lanes.sends(now, steady).len(), 1);
    lanes.ended(&lane(), told, 1, now);
    // Nothing more is due.
    let wants = lanes.wants(now);
    lanes.claimed(wants, Vec::new(), &LeaseToken::assign([0; 16]), steady);
    lanes.forget_idle(now);
}

#[test]
fn failures_with_long_times_between_them_are_not_forgotten() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    for number in 0..8 {
        one(&mut lanes, number, Told::Failed, at(i64::from(number) * 60_000), steady);
    }
    assert_eq!(lanes.broken(at(480_000)), 1);
    assert_eq!(lanes.broken(at(2 * 86_400_000)), 0, "nothing is left to be sent to it");
    lanes.notice(lane());
    let now = at(3_600_000);
    assert_eq!(turn(&mut lanes, now, steady), 1, "one probe");
    lanes.ended(&lane(), Told::Taken, 1, now);
    let due = lanes.wants(now);
    assert!(!due[0].is_early());
    lanes.claimed(due, Vec::new(), &LeaseToken::assign([0; 16]), steady);
    assert!(lanes.wants(now)[0].is_early(), "it is back, whatever waits goes now");
}

#[test]
fn an_application_with_more_hosts_than_are_known_at_once_is_told_at_all_of_them() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    let mut left: Vec<_> = (0..1_000).map(|n| format!("https://{n}.ao")).collect();
    for look in 0.. {
        left.iter().for_each(|origin| lanes.notice(Lane { origin: origin.clone(), ..lane() }));
        loop {
            let wants = lanes.wants(at(0));
            if wants.is_empty() {
                break;
            }
            left.retain(|origin| wants.iter().all(|want| want.lane.origin != *origin));
            lanes.claimed(wants, Vec::new(), &LeaseToken::assign([0; 16]), steady);
        }
        lanes.forget_idle(at(0));
        if left.is_empty() {
            return;
        }
        assert!(look < 20, "{} have not had their turn", left.len());
    }
}

#[test]
fn what_was_claimed_early_and_given_back_goes_early_again() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    for (number, now) in [0, 0, 0, 0, 0, 1_000, 3_000].into_iter().enumerate() {
        one(&mut lanes, number as u8, Told::Failed, at(now), steady);
    }
    let now = at(7_000);
    one_that_is_back(&mut lanes, now, steady);
    let late = steady.after(HELD_TIME_MAX * 2);
    lanes.sends(now, late);
    let returned = lanes.take_returned();
    assert!(!returned.is_empty());
    assert!(lanes.wants(now).is_empty(), "not before they can be claimed");
    returned.iter().for_each(|held| lanes.given_back(&lane(), held.due_at, now));
    while lanes.in_flight() > 0 {
        lanes.ended(&lane(), Told::Taken, 2, now);
    }
    let due = lanes.wants(now);
    lanes.claimed(due, Vec::new(), &LeaseToken::assign([0; 16]), steady);
    let wanted = &lanes.wants(now)[0];
    assert_eq!((wanted.due_from, wanted.due_by), (returned[0].due_at, Timestamp::MAX));
}

/// Its probe is taken; of what waits, more is claimed than it may be sent, and then there is no more.
fn one_that_is_back(lanes: &mut Lanes, now: Timestamp, steady: Steady) {
    lanes.notice(lane());
    assert_eq!(turn(lanes, now, steady), 1, "one probe");
    lanes.ended(&lane(), Told::Taken, 1, now);
    let due = lanes.wants(now);
    lanes.claimed(due, Vec::new(), &LeaseToken::assign([0; 16]), steady);
    let wants = lanes.wants(now);
    let later = |number| Claimed { due_at: at(3_600_000 + i64::from(number)), ..event(number) };
    let fewer = (1..wants[0].most as u8).map(later).collect();
    lanes.claimed(wants, fewer, &LeaseToken::assign([0; 16]), steady);
    assert_eq!(lanes.sends(now, steady).len(), 2);
    assert!(lanes.wants(now).is_empty());
}

#[test]
fn what_is_refused_again_and_again_neither_pauses_a_merchant_nor_keeps_it_paused() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    for number in 0..20 {
        one(&mut lanes, number, Told::Nothing, at(0), steady);
    }
    assert_eq!(lanes.broken(at(0)), 0);
    (0..5).for_each(|number| one(&mut lanes, number, Told::Failed, at(0), steady));
    assert_eq!(lanes.broken(at(0)), 1);
    lanes.notice(lane());
    for _ in 0..20 {
        assert_eq!(turn(&mut lanes, at(1_000), steady), 1, "one probe");
        lanes.ended(&lane(), Told::Nothing, 2, at(1_000));
    }
    assert_eq!(turn(&mut lanes, at(1_000), steady), 1);
    lanes.ended(&lane(), Told::Taken, 1, at(1_000));
    assert_eq!(lanes.broken(at(0)), 0);
}

#[test]
fn what_is_refused_before_its_time_does_not_go_in_a_circle() {
    const EVENTS: usize = 200;
    let (mut lanes, steady) = (Lanes::default(), NOW);
    for (number, now) in [0, 0, 0, 0, 0, 1_000, 3_000].into_iter().enumerate() {
        one(&mut lanes, number as u8, Told::Failed, at(now), steady);
    }
    let now = at(7_000);
    one(&mut lanes, 0, Told::Taken, now, steady);
    // A store of events that are due later, some at the same moment, and keep that time.
    let due_at = |number: usize| at(3_600_000 + number as i64 / 3);
    let mut sent = [0; EVENTS];
    loop {
        let wants = lanes.wants(now);
        let Some(want) = wants.first() else { break };
        let given: Vec<_> = (0..EVENTS)
            .filter(|number| (want.due_from..=want.due_by).contains(&due_at(*number)))
            .take(want.most)
            .collect();
        given.iter().for_each(|number| sent[*number] += 1);
        assert!(sent.iter().sum::<usize>() < 2 * EVENTS, "in a circle: {sent:?}");
        let events = given.iter().map(|n| Claimed { due_at: due_at(*n), ..event(*n as u8) });
        lanes.claimed(wants, events.collect(), &LeaseToken::assign([0; 16]), steady);
        while !lanes.sends(now, steady).is_empty() {
            while lanes.in_flight() > 0 {
                lanes.ended(&lane(), Told::Nothing, 9, now);
            }
        }
    }
    assert!(sent.iter().all(|count| (1..=2).contains(count)), "{sent:?}");
    assert!(lanes.known[&lane()].catching_up.is_none());
}

#[test]
fn what_is_given_back_during_a_claim_goes_early_all_the_same() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    for (number, now) in [0, 0, 0, 0, 0, 1_000, 3_000].into_iter().enumerate() {
        one(&mut lanes, number as u8, Told::Failed, at(now), steady);
    }
    let now = at(7_000);
    lanes.notice(lane());
    assert_eq!(turn(&mut lanes, now, steady), 1, "one probe");
    lanes.ended(&lane(), Told::Taken, 1, now);
    let nothing = |lanes: &mut Lanes, wants| {
        lanes.claimed(wants, Vec::new(), &LeaseToken::assign([0; 16]), steady);
    };
    let due = lanes.wants(now);
    nothing(&mut lanes, due);
    let early = lanes.wants(now);
    assert!(early[0].is_early());
    lanes.given_back(&lane(), at(3_600_000), now);
    nothing(&mut lanes, early);
    let due = lanes.wants(now);
    assert!(!due[0].is_early());
    nothing(&mut lanes, due);
    assert!(lanes.wants(now)[0].is_early(), "the claim had not seen it");
}

#[test]
fn a_merchant_that_asks_for_time_is_sent_nothing_before_it_until_it_was_away_once_more() {
    let (mut lanes, steady) = (Lanes::default(), NOW);
    let away = |lanes: &mut Lanes, since: i64| {
        for (number, ms) in [0, 0, 0, 0, 0, 1_000, 3_000].into_iter().enumerate() {
            one(lanes, number as u8, Told::Failed, at(since + ms), steady);
        }
        at(since + 7_000)
    };
    let nothing_is_early = |lanes: &mut Lanes, now: Timestamp| {
        lanes.notice(lane());
        for _ in 0..3 {
            let wants = lanes.wants(now);
            assert!(wants.iter().all(|want| !want.is_early()), "{wants:?}");
            lanes.claimed(wants, Vec::new(), &LeaseToken::assign([0; 16]), steady);
        }
    };
    let now = away(&mut lanes, 0);
    one_that_is_back(&mut lanes, now, steady);
    let held = lanes.held;
    assert!(held > 0);
    lanes.ended(&lane(), Told::Taken, 2, now);
    lanes.ended(&lane(), Told::Failed, 2, now);
    lanes.keep_to_time(&lane(), now);
    let returned = lanes.take_returned();
    assert_eq!((returned.len(), lanes.held), (held, 0), "what was claimed early is given back");
    returned.iter().for_each(|held| lanes.given_back(&lane(), held.due_at, now));
    nothing_is_early(&mut lanes, now);
    // It fails some more and takes a new event: that is no return from anywhere.
    (0..4).for_each(|number| one(&mut lanes, number, Told::Failed, now, steady));
    assert_eq!(lanes.broken(now), 1);
    one(&mut lanes, 0, Told::Taken, at(8_000), steady);
    nothing_is_early(&mut lanes, at(8_000));

    let now = away(&mut lanes, 100_000);
    one(&mut lanes, 0, Told::Taken, now, steady);
    let early = lanes.wants(now);
    assert!(early[0].is_early(), "it was away once more");
    lanes.keep_to_time(&lane(), now);
    let later = Claimed { due_at: at(3_600_000), ..event(1) };
    lanes.claimed(early, vec![later], &LeaseToken::assign([0; 16]), steady);
    assert!(lanes.sends(now, steady).is_empty(), "it asked while that was claimed");
    assert_eq!(lanes.take_returned().len(), 1);
    nothing_is_early(&mut lanes, now);
}
