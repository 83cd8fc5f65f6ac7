//! Whatever is done to an order in whatever sequence, it does what a model of a page says.
//!
//! `SVC_MODEL_SEQUENCES` runs more of them; a failing sequence is printed in its shortest form.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};
use svc_service::app::{App, Clock};
use svc_service::config::Config;
use svc_service::credentials;
use svc_service::domain::*;
use svc_service::orders::{self, Choice};
use svc_service::store::{Created, Received};

use crate::support::{TestDatabase, events_of, new_order};

const STEPS: usize = 40;

#[derive(Clone, Copy, Debug)]
enum Op {
    CreateAgain,
    Choose(PaymentMethod),
    Pay,
    PayWrong,
    /// The last notice once more.
    Again,
    Decline,
    Cancel,
    Expire,
    /// The service ends without a word and starts anew.
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let method = prop::sample::select(PaymentMethod::ALL.to_vec());
    prop_oneof![
        2 => Just(Op::CreateAgain),
        8 => method.prop_map(Op::Choose),
        2 => Just(Op::Pay),
        1 => Just(Op::PayWrong),
        2 => Just(Op::Again),
        5 => Just(Op::Decline),
        2 => Just(Op::Cancel),
        1 => Just(Op::Expire),
        1 => Just(Op::Reopen),
    ]
}

/// What must be true, in a few lines.
#[derive(Default)]
struct Model {
    settled: Option<Status>,
    attempts: Vec<(PaymentMethod, AttemptState)>,
    cancel_waits: bool,
    closing: bool,
    announced: bool,
    applied: i64,
    duplicates: i64,
    exceptions: Vec<ExceptionKind>,
}

impl Model {
    fn in_flight(&self) -> Option<PaymentMethod> {
        self.attempts.iter().find(|(_, state)| state.is_in_flight()).map(|(method, _)| *method)
    }

    fn is_unsettled(&self) -> bool {
        self.in_flight().is_some() || self.attempts.iter().any(|(_, s)| *s == AttemptState::Held)
    }

    fn settle(&mut self, status: Status, issued_become: AttemptState) {
        self.settled = Some(status);
        for (_, state) in &mut self.attempts {
            if *state == AttemptState::Issued {
                *state = issued_become;
            }
        }
    }

    fn choose(&mut self, method: PaymentMethod) {
        let closed = self.settled.is_some() || self.cancel_waits || self.closing;
        let live = self.attempts.contains(&(method, AttemptState::Issued));
        let tried = self.attempts.iter().filter(|(m, _)| *m == method).count();
        if closed || self.is_unsettled() || live || tried >= TRIES_PER_METHOD_MAX {
            return;
        }
        let state = match method {
            PaymentMethod::ExpressWallet => AttemptState::AwaitingPayer,
            PaymentMethod::BankReference | PaymentMethod::Direct => AttemptState::Issued,
        };
        self.attempts.push((method, state));
        self.announced = true;
    }

    fn pay(&mut self, exact: bool) {
        match (self.settled, exact) {
            (None, true) => {
                self.applied += 1;
                if let Some((_, last)) = self.attempts.last_mut() {
                    *last = AttemptState::Accepted;
                }
                self.settle(Status::Confirmed, AttemptState::Revoked);
            }
            (None, false) => {
                self.exceptions.push(ExceptionKind::Mismatch);
                if let Some((_, last)) = self.attempts.last_mut() {
                    *last = AttemptState::Held;
                }
            }
            (Some(status), _) => {
                self.exceptions.push(ExceptionKind::of_settled(status));
                if let Some((_, last)) = self.attempts.last_mut().filter(|(_, s)| s.may_be_paid()) {
                    *last = AttemptState::Accepted;
                }
            }
        }
    }

    fn decline(&mut self) {
        let Some((_, last)) = self.attempts.last_mut() else { return };
        self.applied += 1;
        if last.may_be_paid() {
            *last = AttemptState::Rejected;
        }
        // The clock stands: what was issued has its grace left.
        let grace = self.attempts.iter().any(|(_, state)| *state == AttemptState::Issued);
        self.wake(grace);
    }

    /// What waited for an attempt waits no longer.
    fn wake(&mut self, grace: bool) {
        if self.settled.is_some() || self.is_unsettled() {
            return;
        }
        if self.cancel_waits {
            self.settle(Status::Cancelled, AttemptState::Revoked);
        } else if self.closing && !grace {
            self.settle(Status::Cancelled, AttemptState::Expired);
        }
    }

    fn cancel(&mut self) {
        match (self.settled, self.is_unsettled()) {
            (Some(_), _) => {}
            (None, true) => self.cancel_waits = true,
            (None, false) => self.settle(Status::Cancelled, AttemptState::Revoked),
        }
    }

    fn expire(&mut self) {
        if self.settled.is_none() {
            self.closing = true;
            self.wake(false);
        }
    }
}

/// The service under test, with one order at a time.
struct Stage {
    database: TestDatabase,
    app: App,
    orders: usize,
}

fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

impl Stage {
    async fn set(database: TestDatabase) -> Self {
        let app = open(&database).await;
        credentials::create_partner(&app, "Loja").await.unwrap();
        app.directory.refresh(&app.store).await.unwrap();
        Self { database, app, orders: 0 }
    }

    async fn play(&mut self, ops: &[Op]) {
        self.orders += 1;
        let id = format!("order_{}", self.orders);
        let order = self.create(&id).await;
        let mut model = Model::default();
        let mut notices = 0;
        let mut last = None;
        for op in ops {
            match op {
                Op::CreateAgain => {
                    let again = self.create(&id).await;
                    assert_eq!(again.reference_number, order.reference_number);
                }
                Op::Choose(method) => {
                    model.choose(*method);
                    let choice = choice(*method);
                    // Refusals are told by the state that did not change.
                    let _ =
                        orders::pay(&self.app, &order.reference_number, &choice, &payer()).await;
                }
                Op::Pay | Op::PayWrong | Op::Decline => {
                    let about = self.last_attempt(&order).await;
                    let exact = matches!(op, Op::Pay);
                    let word = match op {
                        Op::Decline if matches!(about, About::Order(_)) => continue,
                        Op::Decline => Word::Refused(Reason::PayerRefused),
                        _ => Word::Paid(Centimos::new(1_500_000 - i64::from(!exact))),
                    };
                    if matches!(op, Op::Decline) {
                        model.decline();
                    } else {
                        model.pay(exact);
                    }
                    notices += 1;
                    let notice = Notice {
                        rail: "simulator".into(),
                        rail_payment_id: format!("{id}-{notices}"),
                        about,
                        word,
                        raw: b"said".to_vec(),
                    };
                    let received = orders::settle(&self.app, notice.clone(), "").await.unwrap();
                    assert_ne!(received, Received::Duplicate);
                    last = Some(notice);
                }
                Op::Again => {
                    if let Some(notice) = &last {
                        model.duplicates += 1;
                        let received = orders::settle(&self.app, notice.clone(), "").await.unwrap();
                        assert_eq!(received, Received::Duplicate);
                    }
                }
                Op::Cancel => {
                    model.cancel();
                    let reference = &order.reference_number;
                    let reason = CancelReason::Payer;
                    orders::cancel(&self.app, reference, reason, &payer()).await.unwrap();
                }
                Op::Expire => {
                    model.expire();
                    orders::expire_now(&self.app, &order.reference_number).await.unwrap();
                }
                Op::Reopen => self.app = open(&self.database).await,
            }
            orders::run_due(&self.app).await.unwrap();
            self.compare(&order, &model).await;
        }
        self.compare_ledgers(&order, &model).await;
    }

    async fn create(&self, id: &str) -> Order {
        let application = self.app.directory.known();
        assert!(application.application_by_id(ApplicationId(1)).is_some());
        let new = NewOrder {
            created_at: noon(),
            expires_at: noon().saturating_add(SignedDuration::from_hours(24)).unwrap(),
            ..new_order(1, id)
        };
        match self.app.store.create_order(new).await.unwrap() {
            Created::New(order) | Created::Existing(order) => order,
            Created::ReferenceTaken => panic!("references are random"),
        }
    }

    async fn last_attempt(&self, order: &Order) -> About {
        let dossier = self.app.store.dossier(&order.reference_number).await.unwrap().unwrap();
        match dossier.attempts.last() {
            Some(attempt) => About::Attempt(attempt.id.clone()),
            None => About::Order(order.reference_number.clone()),
        }
    }

    async fn compare(&self, order: &Order, model: &Model) {
        let dossier = self.app.store.dossier(&order.reference_number).await.unwrap().unwrap();
        assert_eq!(dossier.order.status, model.settled.unwrap_or(Status::Pending));
        let states: Vec<_> =
            dossier.attempts.iter().map(|a| (a.instrument.method(), a.state)).collect();
        assert_eq!(states, model.attempts);
        if model.settled.is_none() {
            assert_eq!(dossier.cancel_requested.is_some(), model.cancel_waits);
            assert_eq!(dossier.closing_since.is_some(), model.closing);
        }
    }

    async fn compare_ledgers(&self, order: &Order, model: &Model) {
        let told: Vec<_> =
            events_of(&self.app.store, order).await.iter().map(|event| event.status).collect();
        let mut expected: Vec<_> = model.announced.then_some(Status::Pending).into_iter().collect();
        expected.extend(model.settled);
        let by_code = |statuses: &mut Vec<Status>| statuses.sort_by_key(|status| status.code());
        let (mut told, mut expected) = (told, expected);
        by_code(&mut told);
        by_code(&mut expected);
        assert_eq!(told, expected, "the merchant hears of each state once");
        let of = format!("reference_number = '{}'", order.reference_number.as_str());
        let count = |table: String| async move { self.database.count(&table).await };
        let applied = count(format!("receipts where {of} and outcome = 'applied'")).await;
        let excepted = count(format!("receipts where {of} and outcome = 'exception'")).await;
        assert_eq!((applied, excepted), (model.applied, model.exceptions.len() as i64));
        assert_eq!(count(format!("exceptions where {of}")).await, excepted);
        let repeated =
            format!("select cast(coalesce(sum(duplicates), 0) as bigint) from receipts where {of}");
        assert_eq!(self.database.number(&repeated).await, model.duplicates);
        let subject = order.reference_number.as_str();
        let settled =
            count(format!("audit where subject = '{subject}' and action = 'order.settle'"));
        assert_eq!(settled.await, i64::from(model.settled.is_some()));
    }
}

async fn open(database: &TestDatabase) -> App {
    let config = Config::sandbox(([127, 0, 0, 1], 0).into());
    App::open_at(config, &database.database(), Clock::standing(noon())).await.unwrap()
}

fn payer() -> Author {
    Author { actor: Actor::Payer, request_id: "req".into() }
}

/// A number that nobody answers: what happens next is the test's affair.
fn choice(method: PaymentMethod) -> Choice {
    match method {
        PaymentMethod::ExpressWallet => Choice::Push(PhoneNumber::parse("900000003").unwrap()),
        PaymentMethod::BankReference => Choice::Reference { life: SignedDuration::from_hours(24) },
        PaymentMethod::Direct => Choice::Code,
    }
}

fn sequences(default: u32) -> u32 {
    std::env::var("SVC_MODEL_SEQUENCES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn check(database: TestDatabase, runtime: &tokio::runtime::Runtime, runs: u32) {
    let stage = std::cell::RefCell::new(runtime.block_on(Stage::set(database)));
    let mut runner = TestRunner::new(Runs {
        cases: sequences(runs),
        failure_persistence: None,
        ..Runs::default()
    });
    let played = runner.run(&prop::collection::vec(op(), 1..STEPS), |ops| {
        let play = std::panic::AssertUnwindSafe(|| {
            runtime.block_on(stage.borrow_mut().play(&ops));
        });
        match std::panic::catch_unwind(play) {
            Ok(()) => Ok(()),
            Err(_) => Err(TestCaseError::fail("the order did not do what the model says")),
        }
    });
    if let Err(fault) = played {
        panic!("{fault}");
    }
}

#[test]
fn an_order_does_what_the_model_says_on_sqlite() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    check(TestDatabase::sqlite(), &runtime, 200);
}

#[test]
fn an_order_does_what_the_model_says_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(TestDatabase::postgres());
    check(database, &runtime, 60);
}
