//! Weeks of failures in moments: the schedule, the breaker and the way back (G3, G4).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::Response;
use jiff::Timestamp;
use svc_service::domain::{Author, Failure, Order, RETRY_HORIZON, Retry, next_retry};
use svc_service::store::{EventFilter, EventState, FeedPage};

use crate::support::*;

on_both_engines! {
    thirty_five_days_of_failures_lose_nothing,
    a_merchant_that_is_down_gets_few_requests_and_the_others_all_of_theirs,
    a_merchant_that_is_back_gets_everything_after_the_next_probe,
    a_merchant_that_is_back_is_sent_more_and_more_and_not_all_at_once,
    what_a_merchant_that_is_back_refuses_is_not_sent_in_a_circle,
    a_merchant_that_is_back_and_asks_for_time_gets_it,
    one_order_that_always_fails_does_not_hold_up_the_others,
    one_order_that_always_fails_does_not_end_the_catching_up,
}

/// Seconds after failure 1, 2, 3 …, as documented; then `TAIL_S`.
const STEPS_S: [i64; 7] = [5, 30, 120, 600, 1_800, 3_600, 10_800];
const TAIL_S: i64 = 8 * 3_600;
const DELIVERIES_MIN: u32 = 110;
/// The longest time without a probe.
const PAUSE_MAX_S: i64 = 15;

/// Answers 500 until it is switched on.
struct Switch(Arc<AtomicBool>);

impl Switch {
    async fn start() -> (Self, Receiver) {
        let on = Arc::new(AtomicBool::new(false));
        let is_on = Arc::clone(&on);
        let receiver = Receiver::start(move |_| {
            let status = if is_on.load(Ordering::Acquire) { 200 } else { 500 };
            Response::builder().status(status).body("".into()).unwrap()
        })
        .await;
        (Self(on), receiver)
    }

    fn on(&self) {
        self.0.store(true, Ordering::Release);
    }
}

async fn paid_orders(delivery: &TestDelivery, shop: &Shop, count: usize) -> Vec<Order> {
    let mut orders = Vec::new();
    for number in 0..count {
        orders.push(delivery.paid_order(shop, &format!("order_{number}")).await);
    }
    orders
}

async fn in_state(delivery: &TestDelivery, state: EventState) -> usize {
    let filter = EventFilter { state: Some(state), ..EventFilter::default() };
    delivery.app.store.events(filter, 1_000).await.unwrap().len()
}

#[test]
fn nothing_is_given_up_before_thirty_five_days_and_110_attempts_however_the_dice_fall() {
    for dice in [0.0, 0.25, 0.5, 0.75, 1.0] {
        // The first attempt comes at once.
        let (mut attempts, mut last) = (1, Duration::ZERO);
        while let Retry::After(delay) = next_retry(Failure::Status, attempts, last, None, dice) {
            last += delay;
            attempts += 1;
        }
        assert!(attempts >= DELIVERIES_MIN, "dice {dice}: {attempts} attempts");
        assert!(last >= RETRY_HORIZON, "dice {dice}: given up after {} h", last.as_secs() / 3_600);
    }
}

async fn thirty_five_days_of_failures_lose_nothing(database: TestDatabase) {
    let (merchant, receiver) = Switch::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let order = delivery.paid_order(&shop, "order_1").await;
    delivery.drain().await;
    while delivery.step().await {}

    let event = delivery.event(&order).await;
    assert_eq!(event.state, EventState::Exhausted);
    assert!(event.attempts >= DELIVERIES_MIN, "{} attempts", event.attempts);
    let attempts = delivery.attempts(&order).await;
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, (1..=event.attempts).collect::<Vec<_>>());
    let mut spread = HashSet::new();
    for (failures, pair) in attempts.windows(2).enumerate() {
        let base_ms = STEPS_S.get(failures).copied().unwrap_or(TAIL_S) * 1_000;
        let wait_ms = pair[1].at.as_millisecond() - pair[0].at.as_millisecond();
        let allowed = base_ms * 8 / 10 - 1..=base_ms * 12 / 10 + 1;
        assert!(allowed.contains(&wait_ms), "{wait_ms} ms after failure {}", failures + 1);
        spread.insert(wait_ms * 100 / base_ms);
    }
    assert!(spread.len() > 10, "no jitter: {spread:?}");
    let tried_for = attempts.last().unwrap().at.duration_since(event.created_at);
    assert!(tried_for.as_secs() >= 34 * 86_400, "{tried_for}");

    // It stays where people and partners look, and nothing more is sent.
    delivery.advance_s(90 * 86_400);
    delivery.drain().await;
    assert_eq!(receiver.requests().len(), attempts.len());
    assert_eq!(in_state(&delivery, EventState::Exhausted).await, 1);
    let page =
        FeedPage { application: shop.application, after: None, limit: 10, undelivered: true };
    let feed = delivery.app.store.feed(page).await.unwrap();
    assert_eq!(feed.events.iter().map(|event| &event.id).collect::<Vec<_>>(), [&event.id]);

    merchant.on();
    let filter = EventFilter { id: Some(event.id.clone()), ..EventFilter::default() };
    let now = delivery.app.clock.now();
    assert_eq!(
        delivery.app.store.replay(filter, now, Author::command_line(None), "test").await.unwrap(),
        1
    );
    assert_eq!(delivery.event(&order).await.state, EventState::Queued);
    while delivery.step().await {}
    let requests = receiver.requests();
    let (first, replayed) = (&requests[0], requests.last().unwrap());
    assert_eq!(requests.len(), attempts.len() + 1);
    assert_eq!(replayed.body, first.body);
    assert_eq!(replayed.header("webhook-id"), event.id.as_str());
    let number = (event.attempts + 1).to_string();
    assert_eq!(replayed.header("x-svc-delivery-attempt"), number);
    assert_eq!(delivery.event(&order).await.state, EventState::Delivered);
}

async fn a_merchant_that_is_down_gets_few_requests_and_the_others_all_of_theirs(
    database: TestDatabase,
) {
    const ORDERS: usize = 100;
    let (merchant, down) = Switch::start().await;
    let well = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let down_shop = delivery.shop(&down.url()).await;
    let well_shop = delivery.shop(&well.url()).await;
    paid_orders(&delivery, &down_shop, ORDERS).await;
    paid_orders(&delivery, &well_shop, ORDERS).await;
    delivery.drain().await;
    assert_eq!(well.requests().len(), ORDERS);
    // Five failures in a row, and what was under way at the time.
    let before = down.requests().len();
    assert!((5..=8).contains(&before), "{before} requests");
    for second in 0..60 {
        delivery.advance_s(1);
        delivery.paid_order(&well_shop, &format!("later_{second}")).await;
        delivery.drain().await;
        assert_eq!(well.requests().len(), ORDERS + 1 + second, "nobody else waits");
    }
    // Probes after 1, 2, 4, 8 and then every 15 seconds.
    let probes = down.requests().len() - before;
    assert!((4..=7).contains(&probes), "{probes} probes in a minute");
    assert_eq!(in_state(&delivery, EventState::Queued).await, ORDERS);
    assert_eq!(delivery.figure::<u32>("svc_webhook_breakers_open"), 1);
    merchant.on();
    delivery.advance_s(PAUSE_MAX_S);
    delivery.drain().await;
    assert_eq!(in_state(&delivery, EventState::Queued).await, 0);
    assert_eq!(down.requests().len(), before + probes + ORDERS, "each once");
    // Looked at as often as for what is due.
    delivery.drain().await;
    assert_eq!(delivery.figure::<u32>("svc_webhook_breakers_open"), 0);
}

async fn a_merchant_that_is_back_gets_everything_after_the_next_probe(database: TestDatabase) {
    const ORDERS: usize = 12;
    let (merchant, receiver) = Switch::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let orders = paid_orders(&delivery, &shop, ORDERS).await;
    delivery.drain().await;
    // Until every event waits for hours.
    loop {
        assert!(delivery.step().await);
        let mut fewest = u32::MAX;
        for order in &orders {
            fewest = fewest.min(delivery.event(order).await.attempts);
        }
        if fewest >= 8 {
            break;
        }
    }
    let mut due = Vec::new();
    for order in &orders {
        due.push(delivery.event(order).await.next_attempt_at);
    }
    let failed = receiver.requests().len();
    merchant.on();
    assert!(delivery.step().await);
    let now = delivery.app.clock.now();
    for order in &orders {
        assert_eq!(delivery.event(order).await.state, EventState::Delivered);
        assert_eq!(delivery.attempts(order).await.pop().unwrap().at, now);
    }
    let latest = due.into_iter().max().unwrap();
    assert!(latest.duration_since(now).as_mins() > 30, "all were due anyway");
    assert_eq!(receiver.requests().len(), failed + ORDERS, "each once");
}

async fn a_merchant_that_is_back_is_sent_more_and_more_and_not_all_at_once(database: TestDatabase) {
    const ROUNDS: [usize; 6] = [1, 2, 4, 8, 16, 32];
    let total: usize = ROUNDS.iter().sum();
    let mut gate = Gate::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&gate.receiver.url()).await;
    paid_orders(&delivery, &shop, total).await;
    // Five failures in a row, and it gets no more.
    gate.answer(5, 500);
    delivery.drain().await;
    assert_eq!(gate.came(), 5);
    delivery.advance_s(PAUSE_MAX_S);
    let draining = tokio::spawn(async move {
        delivery.drain().await;
        delivery
    });
    let mut came = 5;
    for round in ROUNDS {
        came += round;
        gate.wait_for(came).await;
        assert_eq!(gate.came(), came, "twice as many as before, and no more");
        gate.answer(round, 200);
    }
    let delivery = draining.await.unwrap();
    assert_eq!(in_state(&delivery, EventState::Delivered).await, total);
}

/// How often each order was sent.
fn counts(receiver: &Receiver) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for request in receiver.requests() {
        *counts.entry(request.order()).or_default() += 1;
    }
    counts
}

async fn due_times(delivery: &TestDelivery) -> HashMap<String, Timestamp> {
    let filter = EventFilter { state: Some(EventState::Queued), ..EventFilter::default() };
    let events = delivery.app.store.events(filter, usize::MAX).await.unwrap();
    events.into_iter().map(|e| (e.id.as_str().to_owned(), e.next_attempt_at)).collect()
}

/// Paid orders of a merchant that has been down for a day.
async fn failed_for_a_day(
    database: TestDatabase,
    receiver: &Receiver,
    orders: usize,
) -> TestDelivery {
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    paid_orders(&delivery, &shop, orders).await;
    delivery.drain().await;
    let by = delivery.app.clock.now().as_millisecond() + 86_400_000;
    while delivery.app.clock.now().as_millisecond() < by {
        assert!(delivery.step().await);
    }
    delivery
}

async fn what_a_merchant_that_is_back_refuses_is_not_sent_in_a_circle(database: TestDatabase) {
    const ORDERS: usize = 60;
    // It is down; then it takes one event, and refuses all others.
    let (is_up, takes_one) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(true));
    let up = Arc::clone(&is_up);
    let receiver = Receiver::start(move |_| {
        let status = match up.load(Ordering::SeqCst) {
            false => 500,
            true if takes_one.swap(false, Ordering::SeqCst) => 200,
            true => 422,
        };
        Response::builder().status(status).body("".into()).unwrap()
    })
    .await;
    let mut delivery = failed_for_a_day(database, &receiver, ORDERS).await;
    let before = due_times(&delivery).await;
    let failed = receiver.requests().len();
    is_up.store(true, Ordering::SeqCst);
    assert!(patiently(delivery.step()).await);
    let sent = receiver.requests().len() - failed;
    // Some twice, if the machine stands still meanwhile; a circle would have no end.
    assert!((ORDERS..2 * ORDERS + ORDERS / 2).contains(&sent), "{sent} requests");
    // Those that were not due keep the time at which they are.
    let now = delivery.app.clock.now();
    let after = due_times(&delivery).await;
    assert_eq!(after.len(), ORDERS - 1);
    let kept =
        after.iter().filter(|(id, due_at)| before[*id] == **due_at && **due_at > now).count();
    assert!(kept >= ORDERS / 2, "{kept} kept their time");
}

async fn a_merchant_that_is_back_and_asks_for_time_gets_it(database: TestDatabase) {
    const ORDERS: usize = 60;
    // It is down; then it takes one event, and asks for an hour each time it is sent another.
    let (is_up, takes_one) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(true));
    let up = Arc::clone(&is_up);
    let receiver = Receiver::start(move |_| {
        let answer = Response::builder();
        let answer = match up.load(Ordering::SeqCst) {
            false => answer.status(500),
            true if takes_one.swap(false, Ordering::SeqCst) => answer.status(200),
            true => answer.status(422).header("retry-after", "3600"),
        };
        answer.body("".into()).unwrap()
    })
    .await;
    let mut delivery = failed_for_a_day(database, &receiver, ORDERS).await;
    let failed = receiver.requests().len();
    is_up.store(true, Ordering::SeqCst);
    assert!(patiently(delivery.step()).await);
    let sent = receiver.requests().len() - failed;
    // Two are under way when it first asks; what is due at that moment goes all the same.
    assert!(sent <= 10, "{sent} requests, although it asked for time");
}

async fn one_order_that_always_fails_does_not_hold_up_the_others(database: TestDatabase) {
    const ORDERS: usize = 40;
    let receiver = Receiver::start(|request| {
        let status = if request.order() == "bad" { 500 } else { 200 };
        Response::builder().status(status).body("".into()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let bad = delivery.paid_order(&shop, "bad").await;
    // Among others it stops nothing.
    for number in 0..ORDERS {
        delivery.paid_order(&shop, &format!("order_{number}")).await;
        delivery.drain().await;
        assert_eq!(in_state(&delivery, EventState::Delivered).await, number + 1);
        delivery.advance_s(60);
    }
    // Alone it fails often enough to be taken for the merchant, and costs others one pause at most.
    for number in 0..ORDERS {
        delivery.step().await;
        delivery.paid_order(&shop, &format!("late_{number}")).await;
        delivery.drain().await;
        delivery.advance_s(PAUSE_MAX_S);
        delivery.drain().await;
        assert_eq!(in_state(&delivery, EventState::Delivered).await, ORDERS + number + 1);
    }
    let mut counts = counts(&receiver);
    let tries = counts.remove("bad").unwrap();
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let event = delivery.event(&bad).await;
    assert_eq!((event.state, event.attempts as usize), (EventState::Queued, tries));
}

async fn one_order_that_always_fails_does_not_end_the_catching_up(database: TestDatabase) {
    const ORDERS: usize = 30;
    // Until it is known which order will be the bad one, all are.
    let bad = Arc::new(OnceLock::<String>::new());
    let known_bad = Arc::clone(&bad);
    let receiver = Receiver::start(move |request| {
        let good = known_bad.get().is_some_and(|bad| *bad != request.header("webhook-id"));
        Response::builder().status(if good { 200 } else { 500 }).body("".into()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    paid_orders(&delivery, &shop, ORDERS).await;
    delivery.drain().await;
    // A day of it: every event waits for hours.
    let day_after = delivery.app.clock.now().as_millisecond() + 86_400_000;
    while delivery.app.clock.now().as_millisecond() < day_after {
        assert!(delivery.step().await);
    }
    // The first that is due is the probe; the second goes when the catching up has begun.
    let mut events = delivery.app.store.events(EventFilter::default(), ORDERS).await.unwrap();
    events.sort_by_key(|event| event.next_attempt_at);
    bad.set(events[1].id.as_str().to_owned()).unwrap();
    delivery.step().await;
    // A few pauses are allowed, hours are not.
    for _ in 0..20 {
        delivery.advance_s(PAUSE_MAX_S);
        delivery.drain().await;
    }
    assert_eq!(in_state(&delivery, EventState::Delivered).await, ORDERS - 1);
    let filter = EventFilter { id: Some(events[1].id.clone()), ..EventFilter::default() };
    let tries = delivery.app.store.events(filter, 1).await.unwrap()[0].attempts;
    assert!(tries <= events[1].attempts + 5, "the bad order was not left alone: {tries}");
}
