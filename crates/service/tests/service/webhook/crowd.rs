//! Many orders at once, created and settled as the service does it, and dice to disturb them with.

use std::sync::Arc;

use svc_service::app::App;
use svc_service::credentials;
use svc_service::domain::*;
use svc_service::orders::{self, Cancelling, OrderRequest};
use svc_service::store::{Application, EventRecord, PendingEvent, Received};
use tokio::task::JoinSet;

use crate::support::{events_of, new_order, payment_of};

/// An application and where its webhooks go.
#[derive(Clone)]
pub(super) struct Stall {
    pub(super) application: Arc<Application>,
    terms: Terms,
}

/// A stall whose orders are announced when they are created, or never.
pub(super) async fn stall(app: &App, webhook_url: &str, pending_event: PendingEvent) -> Stall {
    let partner = credentials::create_partner(app, "Loja").await.unwrap();
    let issued = credentials::create_application(app, &partner.client_id, "Loja", pending_event)
        .await
        .unwrap();
    let known = app.directory.refresh(&app.store).await.unwrap();
    let application = known.application(issued.publishable_key.application_uuid()).unwrap();
    let info = serde_json::json!({
        "returnUrl": "https://a.ao/ok", "cancelUrl": "https://a.ao/no", "webhookUrl": webhook_url,
    });
    let rules = UrlRules { private_targets: true, ..UrlRules::default() };
    let mut terms = new_order(application.id.0, "order").terms;
    terms.additional_info = AdditionalInfo::parse(&info.to_string(), &rules).unwrap();
    Stall { application: Arc::clone(application), terms }
}

pub(super) async fn create(app: App, stall: Stall, id: String) -> Order {
    let request = OrderRequest {
        application: stall.application,
        external_transaction_id: ExternalTransactionId::parse(&id).unwrap(),
        terms: stall.terms,
        request_id: "req-create".to_owned(),
    };
    orders::create(&app, request).await.unwrap().order
}

/// Pays or cancels, after so many others had their turn.
pub(super) async fn settle(app: App, order: Order, to: Status, turns: u64) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    let request = Author { actor: Actor::Service, request_id: "req-settle".to_owned() };
    if to == Status::Cancelled {
        let reference = &order.reference_number;
        let outcome = orders::cancel(&app, reference, CancelReason::Payer, &request).await.unwrap();
        assert_eq!(outcome, Cancelling::Settled(Status::Cancelled));
        return;
    }
    let received = orders::settle(&app, payment_of(&order), "req-settle").await.unwrap();
    assert_eq!(received, Received::Confirmed);
}

/// The events of an order, its announcement first: on a standing clock ids do not tell that.
pub(super) async fn told(app: &App, order: &Order) -> Vec<EventRecord> {
    let mut events = events_of(&app.store, order).await;
    events.sort_by_key(|event| event.status != Status::Pending);
    events
}

/// So many paid orders, which nobody announced.
pub(super) async fn pay_many(app: &App, stall: &Stall, name: &str, count: usize) {
    let mut paying = JoinSet::new();
    for number in 0..count {
        let (app, stall, id) = (app.clone(), stall.clone(), format!("{name}_{number}"));
        paying.spawn(async move {
            let order = create(app.clone(), stall, id).await;
            settle(app, order, Status::Confirmed, 0).await;
        });
    }
    paying.join_all().await;
}
