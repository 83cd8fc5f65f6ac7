//! Creating an order, once for ever per external id (spec 4.2).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::domain::{
    EventId, ExternalTransactionId, NewOrder, Order, ReferenceNumber, Terms, UrlFault, after,
};
use crate::store::{Application, Created, PendingEvent, StoreError};

/// An order nobody chose an instrument for is given up after this long.
const UNCHOSEN_LIFE: SignedDuration = SignedDuration::from_mins(1_440);
/// A reference has 80 random bits: a second try is already a curiosity.
const REFERENCE_TRIES: usize = 3;

/// What a partner asks for, already checked.
pub struct OrderRequest {
    pub application: Arc<Application>,
    pub external_transaction_id: ExternalTransactionId,
    pub terms: Terms,
    pub request_id: String,
}

pub struct Creation {
    pub order: Order,
    /// The id was there already, with the same terms.
    pub replayed: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The id belongs to an order with other terms; the contract's names of the fields that differ.
    #[error("the id belongs to an order that differs in {}", .0.join(", "))]
    Conflict(Vec<&'static str>),
    /// Its application's webhooks may not go there.
    #[error("one of its URLs is refused: {0:?}")]
    Refused(UrlFault),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub async fn create(app: &App, request: OrderRequest) -> Result<Creation, CreateError> {
    if let Some(hosts) = &request.application.webhook_hosts {
        request.terms.additional_info.is_told_at(hosts).map_err(CreateError::Refused)?;
    }
    for _ in 0..REFERENCE_TRIES {
        let new = assign(app, &request, app.clock.now());
        let announced = new.event.as_ref().map(|event| event.lane.clone());
        match app.store.create_order(new).await? {
            Created::New(order) => {
                app.metrics.orders_created.increment(1);
                app.news.tell();
                if let Some(lane) = announced {
                    app.outbox_bell.ring(lane);
                }
                return Ok(Creation { order, replayed: false });
            }
            Created::Existing(order) => return replay(app, &request.terms, order),
            Created::ReferenceTaken => {}
        }
    }
    Err(StoreError::Unavailable("no free reference number was found".into()).into())
}

fn assign(app: &App, request: &OrderRequest, now: Timestamp) -> NewOrder {
    let new = NewOrder {
        application: request.application.id,
        external_transaction_id: request.external_transaction_id.clone(),
        reference_number: ReferenceNumber::assign(now, app.random.bytes()),
        terms: request.terms.clone(),
        created_at: now,
        expires_at: after(now, UNCHOSEN_LIFE),
        request_id: request.request_id.clone(),
        event: None,
    };
    match request.application.pending_event {
        PendingEvent::Creation => new.announced(EventId::assign(now, app.random.bytes())),
        PendingEvent::Instrument | PendingEvent::Never => new,
    }
}

fn replay(app: &App, asked: &Terms, order: Order) -> Result<Creation, CreateError> {
    let differences = asked.differences(&order.terms);
    if !differences.is_empty() {
        return Err(CreateError::Conflict(differences));
    }
    app.metrics.orders_replayed.increment(1);
    Ok(Creation { order, replayed: true })
}
