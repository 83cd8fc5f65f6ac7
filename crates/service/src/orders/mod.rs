//! The only room that changes an order, one file per verb.

mod cancel;
mod create;
mod settle;

pub use cancel::cancel;
pub use create::{CreateError, Creation, OrderRequest, create};
pub use settle::{Settled, settle};

use crate::app::App;
use crate::domain::{Actor, Change, EventId, Lane, Stamp, Status};
use crate::store::{Committed, StoreError};

/// Who wants a change, as the audit row will tell.
pub struct Request {
    pub actor: Actor,
    pub request_id: String,
}

fn stamp(app: &App, request: &Request) -> Stamp {
    let at = app.clock.now();
    Stamp {
        at,
        actor: request.actor.clone(),
        event_id: EventId::assign(at, app.random.bytes()),
        request_id: request.request_id.clone(),
    }
}

/// Status, audit row and event at once; the dispatcher is told when they are durable. The status
/// somebody else was quicker with, if that is so.
async fn commit(app: &App, change: Change) -> Result<Option<Status>, StoreError> {
    let (to, lane) = (change.to, Lane::of(change.application, &change.event.webhook_url));
    match app.store.commit(change).await? {
        Committed::Done => {
            app.metrics.transition(to);
            app.outbox_bell.ring(lane);
            Ok(None)
        }
        Committed::Lost(status) => Ok(Some(status)),
        // It was read a moment ago, and orders are never deleted.
        Committed::NoSuchOrder => Err(StoreError::Unknown("the order")),
    }
}
