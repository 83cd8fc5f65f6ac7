//! Per order, the older event is never sent after the newer, whatever fails and whenever it does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::Response;
use jiff::SignedDuration;
use svc_service::app::App;
use svc_service::domain::*;
use svc_service::store::{EventFilter, EventRecord, EventState, PendingEvent};
use svc_service::webhook::Dispatcher;
use tokio::task::JoinSet;

use super::crowd::{Stall, create, settle, stall, told};
use super::gate::Gate;
use crate::support::{
    Dice, Received, Receiver, TestDatabase, TestDelivery, on_both_engines, waiting_events,
};

on_both_engines! {
    thousands_of_orders_are_told_in_order_whatever_fails,
    a_newer_event_waits_for_the_answer_to_the_older_and_then_goes_at_once,
    a_running_dispatcher_holds_one_order_back_and_no_other,
    an_older_event_that_fails_under_a_newer_one_is_not_tried_again,
}

const WAVES: usize = 20;

const ORDERS: usize = 20_000;

/// How often each merchant fails, in percent.
const FAILURES: [u64; 4] = [0, 10, 20, 30];

/// Attempts of one order as its merchant saw them start, and whether it said that it took them.
type Seen = HashMap<String, Vec<(String, bool)>>;

async fn thousands_of_orders_are_told_in_order_whatever_fails(database: TestDatabase) {
    let delivery = TestDelivery::start(database).await;
    let app = delivery.app.clone();
    let mut nodes = [delivery.beside().await, delivery];
    let mut dice = Dice::of_this_run(&app);
    let (mut merchants, mut stalls) = (Vec::new(), Vec::new());
    for percent in FAILURES {
        let merchant = Merchant::start(dice.clone(), percent).await;
        stalls.push(stall(&app, &merchant.receiver.url(), PendingEvent::Creation).await);
        merchants.push(merchant);
    }
    let mut open = Vec::new();
    for wave in 0..WAVES {
        let settling = settle_some(&app, &mut open, &mut dice, 40);
        let mut creating = JoinSet::new();
        for number in 0..ORDERS / WAVES {
            let stall = stalls[dice.below(stalls.len() as u64) as usize].clone();
            let soon = dice.chance(50).then(|| fate(&mut dice));
            let id = format!("order_{wave}_{number}");
            creating.spawn(create_and_perhaps_settle(app.clone(), stall, id, soon));
        }
        go_on(&mut nodes, &mut dice).await;
        open.extend(creating.join_all().await.into_iter().flatten());
        settling.join_all().await;
    }
    while !open.is_empty() {
        let settling = settle_some(&app, &mut open, &mut dice, 100);
        go_on(&mut nodes, &mut dice).await;
        settling.join_all().await;
    }
    while go_on(&mut nodes, &mut dice).await {}
    let mut checked = Checked::default();
    for (merchant, stall) in merchants.iter().zip(&stalls) {
        checked.add(merchant, &app, stall).await;
    }
    assert_eq!(checked.orders, ORDERS, "nothing is lost");
    assert_eq!(waiting_events(&app.store).await, 0);
    // Otherwise there was nothing to get wrong.
    assert!(checked.superseded > ORDERS / 100, "{checked:?}");
    assert!(checked.announced > ORDERS / 100, "{checked:?}");
    assert!(checked.repeated > ORDERS / 100, "{checked:?}");
}

/// Moves the clocks past what is due next and delivers all of it, by both nodes; false when nothing is queued.
async fn go_on(nodes: &mut [TestDelivery; 2], dice: &mut Dice) -> bool {
    let Some(due) = nodes[0].dispatcher.next_due().await.unwrap() else { return false };
    let to = due + SignedDuration::from_millis(dice.below(20_000).cast_signed());
    nodes.iter().for_each(|node| node.advance_to(to));
    let [one, other] = nodes;
    tokio::join!(one.drain(), other.drain());
    true
}

/// How an order ends, and after how many turns of others.
fn fate(dice: &mut Dice) -> (Status, u64) {
    let to = if dice.chance(30) { Status::Cancelled } else { Status::Confirmed };
    (to, dice.below(30))
}

/// Settles orders drawn by lot, each at a moment of its own while webhooks go out.
fn settle_some(app: &App, open: &mut Vec<Order>, dice: &mut Dice, percent: u64) -> JoinSet<()> {
    let mut settling = JoinSet::new();
    for order in std::mem::take(open) {
        if dice.chance(percent) {
            let (to, turns) = fate(dice);
            settling.spawn(settle(app.clone(), order, to, turns));
        } else {
            open.push(order);
        }
    }
    settling
}

/// The order, if it is still open.
async fn create_and_perhaps_settle(
    app: App,
    stall: Stall,
    id: String,
    soon: Option<(Status, u64)>,
) -> Option<Order> {
    let order = create(app.clone(), stall, id).await;
    let Some((to, turns)) = soon else { return Some(order) };
    settle(app, order, to, turns).await;
    None
}

struct Merchant {
    receiver: Receiver,
    seen: Arc<Mutex<Seen>>,
}

impl Merchant {
    /// Refuses so many of a hundred attempts, or hangs up on them and nobody knows whether it took them.
    async fn start(dice: Dice, percent: u64) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let for_server = Arc::clone(&seen);
        let receiver = Receiver::start_rude(move |request| {
            let (order, status) =
                (text(request, "externalTransactionId"), text(request, "paymentStatus"));
            let attempt = request.header("x-svc-delivery-attempt");
            let mut dice = dice.named(&format!("{order} {status} {attempt}"));
            let (good, speaks) = (!dice.chance(percent), dice.chance(50));
            for_server.lock().unwrap().entry(order).or_default().push((status, good));
            let code = if good { 200 } else { 503 };
            let answer = Response::builder().status(code).body(Full::default()).unwrap();
            (good || speaks).then_some(answer)
        })
        .await;
        Self { receiver, seen }
    }
}

/// A value of the body, found without parsing it: that would take most of the test's time.
fn text(request: &Received, key: &str) -> String {
    let body = std::str::from_utf8(&request.body).unwrap();
    let (_, after) = body.split_once(&format!("\"{key}\":\"")).unwrap();
    after.split('"').next().unwrap().to_owned()
}

#[derive(Debug, Default)]
struct Checked {
    orders: usize,
    /// Orders whose announcement arrived.
    announced: usize,
    /// Orders whose announcement was overtaken.
    superseded: usize,
    /// Orders with an event that was tried more than once.
    repeated: usize,
}

impl Checked {
    async fn add(&mut self, merchant: &Merchant, app: &App, stall: &Stall) {
        let filter = EventFilter { application: Some(stall.application.id), ..Default::default() };
        let mut told: HashMap<ReferenceNumber, Vec<EventRecord>> = HashMap::new();
        for event in app.store.events(filter, usize::MAX).await.unwrap() {
            told.entry(event.reference_number.clone()).or_default().push(event);
        }
        let seen = merchant.seen.lock().unwrap();
        assert_eq!(told.len(), seen.len(), "orders this merchant heard of");
        for events in told.values() {
            let body: serde_json::Value = serde_json::from_slice(&events[0].body).unwrap();
            let order = body["data"]["externalTransactionId"].as_str().unwrap();
            self.check(order, events, &seen[order]);
        }
    }

    fn check(&mut self, order: &str, events: &[EventRecord], attempts: &[(String, bool)]) {
        let mut events: Vec<_> = events.iter().collect();
        events.sort_by_key(|event| event.status != Status::Pending);
        let [pending, settled] = events[..] else { panic!("{order}: {} events", events.len()) };
        assert_eq!(pending.status, Status::Pending, "{order}");
        assert_ne!(settled.status, Status::Pending, "{order}");
        let first_settled = attempts.iter().position(|(status, _)| status != "PEN");
        let last_pending = attempts.iter().rposition(|(status, _)| status == "PEN");
        assert!(last_pending < first_settled, "{order}: older after newer in {attempts:?}");
        let taken = |status: Status| {
            attempts.iter().filter(|(code, good)| *good && code == status.code()).count()
        };
        assert_eq!(settled.state, EventState::Delivered, "{order}: {attempts:?}");
        assert!(taken(settled.status) >= 1, "{order}: {attempts:?}");
        let ended = if taken(Status::Pending) > 0 {
            self.announced += 1;
            EventState::Delivered
        } else {
            self.superseded += 1;
            EventState::Superseded
        };
        assert_eq!(pending.state, ended, "{order}: {attempts:?}");
        let known = [pending.status.code(), settled.status.code()];
        assert!(attempts.iter().all(|(code, _)| known.contains(&code.as_str())), "{attempts:?}");
        self.repeated += usize::from(pending.attempts.max(settled.attempts) > 1);
        self.orders += 1;
    }
}

async fn a_newer_event_waits_for_the_answer_to_the_older_and_then_goes_at_once(
    database: TestDatabase,
) {
    let mut gate = Gate::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let mut beside = delivery.beside().await;
    let shop = delivery.shop(&gate.url()).await;
    let order = delivery.order(&shop, "order_1", true).await;
    let meanwhile = async {
        assert_eq!(gate.came().await.status(), "PEN");
        beside.pay(&order).await;
        beside.drain().await;
        assert!(gate.is_quiet(), "the newer went out beside the older");
        gate.answer(200);
        gate.answer(200);
    };
    // One drain: the newer goes because the older has ended, not because somebody looked again.
    tokio::join!(delivery.drain(), meanwhile);
    assert_eq!(gate.came_already().expect("the newer has gone").status(), "CON");
    let states: Vec<_> =
        told(&delivery.app, &order).await.iter().map(|event| event.state).collect();
    assert_eq!(states, [EventState::Delivered, EventState::Delivered]);
}

async fn a_running_dispatcher_holds_one_order_back_and_no_other(database: TestDatabase) {
    let mut gate = Gate::start().await;
    let delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&gate.url()).await;
    let order = delivery.order(&shop, "order_1", true).await;
    let dispatcher = Dispatcher::new(delivery.app.clone()).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(dispatcher.run(async {
        let _ = stopped.await;
    }));
    assert_eq!(gate.came().await.status(), "PEN");
    delivery.pay(&order).await;
    // Paid later, sent earlier: the dispatcher has looked at this lane since.
    delivery.paid_order(&shop, "order_2").await;
    let other = gate.came().await;
    assert_eq!((other.order().as_str(), other.status().as_str()), ("order_2", "CON"));
    gate.answer(200);
    gate.answer(200);
    let newer = gate.came().await;
    assert_eq!((newer.order().as_str(), newer.status().as_str()), ("order_1", "CON"));
    gate.answer(200);
    stop.send(()).unwrap();
    running.await.unwrap();
    assert!(gate.is_quiet());
    assert_eq!(waiting_events(&delivery.app.store).await, 0);
}

async fn an_older_event_that_fails_under_a_newer_one_is_not_tried_again(database: TestDatabase) {
    let mut gate = Gate::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let beside = delivery.beside().await;
    let shop = delivery.shop(&gate.url()).await;
    let order = delivery.order(&shop, "order_1", true).await;
    let meanwhile = async {
        assert_eq!(gate.came().await.status(), "PEN");
        beside.pay(&order).await;
        gate.answer(500);
        gate.answer(500);
    };
    tokio::join!(delivery.drain(), meanwhile);
    gate.answer(200);
    assert!(delivery.step().await);
    for _ in 0..2 {
        assert_eq!(gate.came_already().expect("the newer has gone").status(), "CON");
    }
    assert!(gate.is_quiet());
    let events = told(&delivery.app, &order).await;
    let ended: Vec<_> = events.iter().map(|event| (event.state, event.attempts)).collect();
    assert_eq!(ended, [(EventState::Superseded, 1), (EventState::Delivered, 2)]);
}
