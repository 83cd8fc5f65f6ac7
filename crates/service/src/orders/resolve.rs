//! An operator deals with money that fits no order, and says why.

use super::{Landed, cancel, commit, read_dossier, stamp};
use crate::app::App;
use crate::domain::{AttemptState, Author, CancelReason, Order, Reason, ReferenceNumber, Status};
use crate::store::{ExceptionFilter, ExceptionRecord, Resolved, StoreError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Another amount is taken for the full one: the order is paid.
    Accept,
    /// The money went back. An order that was held for it is cancelled.
    Refund,
    /// Nothing is to be done.
    Dismiss,
}

#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("there is no exception {0}")]
    NotFound(i64),
    #[error("it was resolved already by {by}: {resolution}")]
    Already { by: String, resolution: String },
    #[error("only money that a pending order is held for can be accepted: refund or dismiss this")]
    NotAcceptable,
    #[error("the order is held for it: accept it or refund it")]
    Held,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub async fn resolve(
    app: &App,
    id: i64,
    resolution: Resolution,
    by: &Author,
    why: &str,
) -> Result<ExceptionRecord, ResolveError> {
    let exception = find(app, id).await?;
    if let Some(Resolved { by, resolution, .. }) = exception.resolved {
        return Err(ResolveError::Already { by, resolution });
    }
    let first = match (resolution, held(app, &exception).await?) {
        (Resolution::Accept, Some(order)) => accept(app, order, id, why, by).await?,
        (Resolution::Accept, None) => return Err(ResolveError::NotAcceptable),
        (Resolution::Dismiss, Some(_)) => return Err(ResolveError::Held),
        (Resolution::Dismiss, None) => close(app, id, format!("dismissed: {why}"), by).await?,
        (Resolution::Refund, None) => close(app, id, format!("refunded: {why}"), by).await?,
        (Resolution::Refund, Some(order)) => {
            let order = &order.reference_number;
            give_up_held(app, order).await?;
            // Before the order ends: an entry left open beside an order that has would invite a second refund.
            let first = close(app, id, format!("refunded: {why}"), by).await?;
            if first {
                cancel(app, order, CancelReason::Operator, by).await?;
            }
            first
        }
    };
    let exception = find(app, id).await?;
    match &exception.resolved {
        Some(_) if first => Ok(exception),
        // Another operator was quicker.
        Some(Resolved { by, resolution, .. }) => {
            Err(ResolveError::Already { by: by.clone(), resolution: resolution.clone() })
        }
        None => Err(ResolveError::NotAcceptable),
    }
}

async fn find(app: &App, id: i64) -> Result<ExceptionRecord, ResolveError> {
    let filter = ExceptionFilter { id: Some(id), resolved_too: true, ..Default::default() };
    app.store.exceptions(filter, 1).await?.pop().ok_or(ResolveError::NotFound(id))
}

/// Whether the order of this exception waits for its decision: then its money is taken or goes back.
pub fn is_held_for(exception: &ExceptionRecord, order: &Order) -> bool {
    exception.resolved.is_none() && is_held(exception, order)
}

fn is_held(exception: &ExceptionRecord, order: &Order) -> bool {
    exception.kind.holds_order() && order.status == Status::Pending
}

/// The pending order that waits for this decision.
async fn held(app: &App, exception: &ExceptionRecord) -> Result<Option<Order>, StoreError> {
    let Some(reference) = &exception.reference_number else { return Ok(None) };
    let order = app.store.order_by_reference(reference).await?;
    Ok(order.filter(|order| is_held(exception, order)))
}

/// Order and exception in one transaction: an entry left open would invite a refund of what is paid.
/// Whether we were the first.
async fn accept(
    app: &App,
    order: Order,
    exception: i64,
    why: &str,
    by: &Author,
) -> Result<bool, ResolveError> {
    let pending = order.pending().map_err(|_| ResolveError::NotAcceptable)?;
    let landed = commit(app, pending.accept(exception, why, stamp(app, by))).await?;
    Ok(matches!(landed, Landed::Done))
}

/// The entry alone. Whether we were the first.
async fn close(app: &App, id: i64, resolution: String, by: &Author) -> Result<bool, ResolveError> {
    let (at, by) = (app.clock.now(), by.actor.to_string());
    Ok(app.store.resolve_exception(id, Resolved { at, by, resolution }).await?)
}

/// The attempt is over: its money went back.
async fn give_up_held(app: &App, reference: &ReferenceNumber) -> Result<(), ResolveError> {
    let dossier = read_dossier(app, reference).await?;
    for attempt in dossier.attempts.iter().filter(|a| a.state == AttemptState::Held) {
        let refunded = Reason::Other("refunded".into());
        app.store.step(attempt.given_up(refunded, app.clock.now())).await?;
    }
    Ok(())
}
