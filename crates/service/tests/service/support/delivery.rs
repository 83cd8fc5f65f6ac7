//! A dispatcher on a standing clock: tests move time and drain it, and never sleep.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use svc_service::app::{App, Clock};
use svc_service::config::Config;
use svc_service::credentials::{self, Issued};
use svc_service::domain::*;
use svc_service::orders;
use svc_service::store::{Created, EventRecord, LeaseToken};
use svc_service::webhook::Dispatcher;

use super::{TestDatabase, at, events_of, payment_of, random};

/// Everything between a committed event and its delivery, on one database.
pub(crate) struct TestDelivery {
    pub(crate) app: App,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) database: Arc<TestDatabase>,
}

/// A merchant with one application and somewhere to send webhooks to.
pub(crate) struct Shop {
    pub(crate) application: ApplicationId,
    pub(crate) issued: Issued,
    pub(crate) webhook_url: String,
}

impl Shop {
    pub(crate) fn webhook_secret(&self) -> &str {
        self.issued.application.webhook_secret.expose_secret()
    }
}

impl TestDelivery {
    pub(crate) async fn start(database: TestDatabase) -> Self {
        Self::start_with(database, |_| {}).await
    }

    pub(crate) async fn start_with(
        database: TestDatabase,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        Self::start_on(database.into(), Clock::standing(at(0)), adjust).await
    }

    /// By the world's time, for verifiers that look at their own watch.
    pub(crate) async fn start_on_time(database: TestDatabase) -> Self {
        Self::start_on(database.into(), Clock::system(), |_| {}).await
    }

    /// Another dispatcher on the same database, with a clock of its own.
    pub(crate) async fn beside(&self) -> Self {
        Self::start_on(Arc::clone(&self.database), Clock::standing(at(0)), |_| {}).await
    }

    /// All of it gone but the database, and opened again.
    pub(crate) async fn restarted(self) -> Self {
        let database = Arc::clone(&self.database);
        drop(self);
        Self::start_on(database, Clock::standing(at(0)), |_| {}).await
    }

    async fn start_on(
        database: Arc<TestDatabase>,
        clock: Clock,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config::sandbox(([127, 0, 0, 1], 0).into());
        config.private_webhook_targets = true;
        adjust(&mut config);
        let app = App::open_at(config, &database.database(), clock).await.unwrap();
        let dispatcher = Dispatcher::new(app.clone()).unwrap();
        Self { app, dispatcher, database }
    }

    pub(crate) async fn shop(&self, webhook_url: &str) -> Shop {
        let issued = credentials::create_partner(&self.app, "Loja").await.unwrap();
        let known = self.app.directory.refresh(&self.app.store).await.unwrap();
        let uuid = issued.application.publishable_key.application_uuid();
        let application = known.application(uuid).unwrap().id;
        Shop { application, issued, webhook_url: webhook_url.to_owned() }
    }

    /// An order of the shop; `announced` ones have a `PEN` event.
    pub(crate) async fn order(&self, shop: &Shop, id: &str, announced: bool) -> Order {
        let now = self.app.clock.now();
        let mut new = super::new_order(shop.application.0, id);
        let info = serde_json::json!({
            "returnUrl": "https://a.ao/ok", "cancelUrl": "https://a.ao/no",
            "webhookUrl": shop.webhook_url,
        });
        let rules = UrlRules { private_targets: true, ..UrlRules::default() };
        new.terms.additional_info = AdditionalInfo::parse(&info.to_string(), &rules).unwrap();
        new.created_at = now;
        if announced {
            new = new.announced(EventId::assign(now, random()));
        }
        match self.app.store.create_order(new).await.unwrap() {
            Created::New(order) => order,
            other => panic!("expected a new order, got {other:?}"),
        }
    }

    /// An order that was paid: its `CON` event is due now.
    pub(crate) async fn paid_order(&self, shop: &Shop, id: &str) -> Order {
        let order = self.order(shop, id, false).await;
        self.pay(&order).await;
        order
    }

    pub(crate) async fn pay(&self, order: &Order) {
        orders::settle(&self.app, payment_of(order), "req-pay").await.unwrap();
    }

    pub(crate) async fn drain(&mut self) {
        self.dispatcher.drain().await.unwrap();
    }

    /// Moves the clock to what is due next and delivers it; false when nothing is queued.
    pub(crate) async fn step(&mut self) -> bool {
        let Some(due) = self.dispatcher.next_due().await.unwrap() else { return false };
        self.advance_to(due);
        self.drain().await;
        true
    }

    pub(crate) fn advance_to(&self, to: Timestamp) {
        let ahead = to.duration_since(self.app.clock.now());
        self.app.clock.advance(ahead.max(SignedDuration::ZERO));
    }

    pub(crate) fn advance_s(&self, seconds: i64) {
        self.app.clock.advance(SignedDuration::from_secs(seconds));
    }

    /// The only event of an order.
    pub(crate) async fn event(&self, order: &Order) -> EventRecord {
        let mut events = events_of(&self.app.store, order).await;
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    pub(crate) fn lease(&self) -> LeaseToken {
        LeaseToken::assign(self.app.random.bytes())
    }

    /// As if whoever holds a lease had died long ago.
    pub(crate) async fn expire_leases(&self) {
        self.database.sql("update outbox set lease_until_ms = 1 where lease_until_ms > 1").await;
    }
}
