//! Orders on a standing clock, paid by rails: tests go from one due moment to the next, and never
//! sleep.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use svc_service::app::{App, Clock};
use svc_service::config::Config;
use svc_service::credentials::{self, Issued};
use svc_service::domain::*;
use svc_service::orders::{self, Choice, OrderRequest, PayError};
use svc_service::store::{Application, ExceptionFilter, ExceptionRecord};

use super::{TestDatabase, at, events_of};

/// A shop, its orders and everything that happens to them by the clock.
pub(crate) struct TestPaying {
    pub(crate) app: App,
    pub(crate) issued: Issued,
    pub(crate) application: Arc<Application>,
    pub(crate) database: TestDatabase,
}

/// Seconds since the order was made, the state of its last attempt and its status, as they became.
pub(crate) type Seen = (i64, &'static str, &'static str);

pub(crate) fn push(phone: &str) -> Choice {
    Choice::Push(PhoneNumber::parse(phone).unwrap())
}

pub(crate) fn reference(minutes: i64) -> Choice {
    Choice::Reference { life: SignedDuration::from_mins(minutes) }
}

impl TestPaying {
    pub(crate) async fn start(database: TestDatabase) -> Self {
        Self::start_with(database, |_| {}).await
    }

    pub(crate) async fn start_with(
        database: TestDatabase,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config::sandbox(([127, 0, 0, 1], 0).into());
        adjust(&mut config);
        let clock = Clock::standing(at(0));
        let app = App::open_at(config, &database.database(), clock).await.unwrap();
        let issued = credentials::create_partner(&app, "Loja").await.unwrap();
        let known = app.directory.refresh(&app.store).await.unwrap();
        let uuid = issued.application.publishable_key.application_uuid();
        let application = Arc::clone(known.application(uuid).unwrap());
        Self { app, issued, application, database }
    }

    /// The service is started again, at the time it is.
    pub(crate) async fn restarted(self, adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::sandbox(([127, 0, 0, 1], 0).into());
        adjust(&mut config);
        let Self { app: ended, issued, application, database } = self;
        let clock = Clock::standing(ended.clock.now());
        drop(ended);
        let app = App::open_at(config, &database.database(), clock).await.unwrap();
        Self { app, issued, application, database }
    }

    pub(crate) async fn order(&self, id: &str, amount: i64) -> Order {
        self.order_for(&self.application, id, amount).await
    }

    pub(crate) async fn order_for(
        &self,
        application: &Arc<Application>,
        id: &str,
        amount: i64,
    ) -> Order {
        let mut terms = super::new_order(application.id.0, id).terms;
        terms.amount = Kwanza::parse(amount).unwrap();
        let request = OrderRequest {
            application: Arc::clone(application),
            external_transaction_id: ExternalTransactionId::parse(id).unwrap(),
            terms,
            request_id: "req-create".into(),
        };
        orders::create(&self.app, request).await.unwrap().order
    }

    /// The payer chooses; the order as it is after the rail has answered.
    pub(crate) async fn pay(&self, order: &Order, choice: &Choice) -> Dossier {
        self.try_pay(order, choice).await.unwrap()
    }

    pub(crate) async fn try_pay(
        &self,
        order: &Order,
        choice: &Choice,
    ) -> Result<Dossier, PayError> {
        orders::pay(&self.app, &order.reference_number, choice, &payer()).await
    }

    pub(crate) async fn cancel(&self, order: &Order) -> orders::Cancelling {
        let reference = &order.reference_number;
        orders::cancel(&self.app, reference, CancelReason::Payer, &payer()).await.unwrap()
    }

    pub(crate) async fn dossier(&self, order: &Order) -> Dossier {
        self.app.store.dossier(&order.reference_number).await.unwrap().unwrap()
    }

    pub(crate) async fn last_attempt(&self, order: &Order) -> PaymentAttempt {
        self.dossier(order).await.attempts.pop().unwrap()
    }

    /// State of the last attempt and status of the order.
    pub(crate) async fn stands(&self, order: &Order) -> (&'static str, &'static str) {
        let dossier = self.dossier(order).await;
        let state = dossier.attempts.last().map_or("", |attempt| attempt.state.as_str());
        (state, dossier.order.status.code())
    }

    /// Goes from one due moment to the next until so many seconds after the order was made, and
    /// tells what changed when.
    pub(crate) async fn timeline(&self, order: &Order, until_s: i64) -> Vec<Seen> {
        let end = order.created_at.saturating_add(SignedDuration::from_secs(until_s)).unwrap();
        let mut seen: Vec<Seen> = Vec::new();
        loop {
            self.run_due().await;
            let now = self.app.clock.now();
            let (state, status) = self.stands(order).await;
            if seen.last().is_none_or(|last| (last.1, last.2) != (state, status)) {
                let after = now.duration_since(order.created_at);
                assert_eq!(after.subsec_nanos(), 0, "at a whole second");
                seen.push((after.as_secs(), state, status));
            }
            if now >= end {
                return seen;
            }
            let next = orders::next_due(&self.app).await.unwrap();
            self.advance_to(next.map_or(end, |next| next.min(end)));
        }
    }

    /// All that is due now, and what becomes due by it.
    pub(crate) async fn run_due(&self) {
        for _ in 0..10 {
            orders::run_due(&self.app).await.unwrap();
            let next = orders::next_due(&self.app).await.unwrap();
            if next.is_none_or(|next| next > self.app.clock.now()) {
                return;
            }
        }
        panic!("something that is due stays so");
    }

    /// Every due moment on the way to so many seconds from now.
    pub(crate) async fn pass_s(&self, seconds: i64) {
        self.pass(SignedDuration::from_secs(seconds)).await;
    }

    pub(crate) async fn pass(&self, time: SignedDuration) {
        let end = self.app.clock.now().saturating_add(time).unwrap();
        loop {
            self.run_due().await;
            if self.app.clock.now() >= end {
                return;
            }
            let next = orders::next_due(&self.app).await.unwrap();
            self.advance_to(next.map_or(end, |next| next.min(end)));
        }
    }

    fn advance_to(&self, to: Timestamp) {
        self.app.clock.advance(to.duration_since(self.app.clock.now()));
    }

    /// A word of a rail about an attempt.
    pub(crate) fn notice(&self, attempt: &PaymentAttempt, id: &str, word: Word) -> Notice {
        Notice {
            rail: attempt.rail.clone(),
            rail_payment_id: id.to_owned(),
            about: About::Attempt(attempt.id.clone()),
            word,
            raw: b"raw".to_vec(),
        }
    }

    /// The events of an order in the outbox, oldest first.
    pub(crate) async fn events(&self, order: &Order) -> Vec<&'static str> {
        let events = events_of(&self.app.store, order).await;
        events.iter().map(|event| event.status.code()).collect()
    }

    /// The ledger of an order, oldest first: kind and centimos.
    pub(crate) async fn exceptions(&self, order: &Order) -> Vec<(&'static str, i64)> {
        let entries = self.ledger(order).await;
        entries.iter().map(|entry| (entry.kind.as_str(), entry.amount.get())).collect()
    }

    pub(crate) async fn ledger(&self, order: &Order) -> Vec<ExceptionRecord> {
        let filter = ExceptionFilter {
            reference_number: Some(order.reference_number.clone()),
            resolved_too: true,
            ..ExceptionFilter::default()
        };
        let mut entries = self.app.store.exceptions(filter, 20).await.unwrap();
        entries.reverse();
        entries
    }

    /// So many words of rails were received, and each is accounted for: applied, a duplicate, or in
    /// the ledger.
    pub(crate) async fn accounted_for(&self, notices: i64) {
        let applied = self.database.count("receipts where outcome = 'applied'").await;
        let excepted = self.database.count("receipts where outcome = 'exception'").await;
        let duplicates = "select cast(coalesce(sum(duplicates), 0) as bigint) from receipts";
        let duplicates = self.database.number(duplicates).await;
        assert_eq!(applied + excepted + duplicates, notices, "received");
        assert_eq!(self.database.count("exceptions").await, excepted, "in the ledger");
        let metrics = self.app.metrics.render();
        for (outcome, stored) in
            [("applied", applied), ("exception", excepted), ("duplicate", duplicates)]
        {
            let line = format!("svc_rail_notices_total{{outcome=\"{outcome}\"}} {stored}\n");
            assert!(metrics.contains(&line), "{outcome}: {stored}\n{metrics}");
        }
    }
}

fn payer() -> Author {
    Author { actor: Actor::Payer, request_id: "req-pay".into() }
}
