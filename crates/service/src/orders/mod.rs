//! The only room that changes an order, one file per verb.

mod abandon;
mod answer;
mod cancel;
mod create;
mod due;
mod expire;
mod follow;
mod pay;
mod reconcile;
mod resolve;
mod settle;
mod withdraw;

pub use answer::{AnswerError, Answered, Found, answer};
pub use cancel::{Cancelling, cancel};
pub use create::{CreateError, Creation, OrderRequest, create};
pub use due::{begin_due, next_due, run_due};
pub use expire::{expire, expire_now};
pub use pay::{Choice, PayError, pay};
pub use reconcile::{Finding, ReconcileError, Reconciliation, Verdict, reconcile};
pub use resolve::{Resolution, ResolveError, is_held_for, resolve};
pub use settle::settle;

use crate::app::App;
use crate::domain::{Author, Change, Dossier, EventId, Lane, ReferenceNumber, Stamp, Status};
use crate::store::{Committed, StoreError};

async fn read_dossier(app: &App, reference: &ReferenceNumber) -> Result<Dossier, StoreError> {
    app.store.dossier(reference).await?.ok_or(StoreError::Unknown("the order"))
}

fn stamp(app: &App, by: &Author) -> Stamp {
    let at = app.clock.now();
    Stamp {
        at,
        actor: by.actor.clone(),
        event_id: EventId::assign(at, app.random.bytes()),
        request_id: by.request_id.clone(),
    }
}

/// What became of a change that was committed, or was not.
enum Landed {
    Done,
    Lost(Status),
    Refused,
}

/// Status, audit row and event at once; the dispatcher is told when they are durable.
async fn commit(app: &App, change: Change) -> Result<Landed, StoreError> {
    let (to, lane) = (change.to, change.event.lane.clone());
    match app.store.commit(change).await? {
        Committed::Done => {
            landed(app, to, lane);
            Ok(Landed::Done)
        }
        Committed::Lost(status) => Ok(Landed::Lost(status)),
        Committed::Refused => Ok(Landed::Refused),
        // It was read a moment ago, and orders are never deleted.
        Committed::NoSuchOrder => Err(StoreError::Unknown("the order")),
    }
}

fn landed(app: &App, to: Status, lane: Lane) {
    app.metrics.transition(to);
    app.outbox_bell.ring(lane);
    app.news.tell();
}
