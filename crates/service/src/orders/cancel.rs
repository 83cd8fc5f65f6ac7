//! Cancelling an order (spec 3): final, and only while nobody has paid.

use super::{Request, commit, stamp};
use crate::app::App;
use crate::domain::{CancelReason, Order, Status};
use crate::store::StoreError;

/// The status the order has now: cancelled, or what it was settled as before.
pub async fn cancel(
    app: &App,
    order: Order,
    reason: CancelReason,
    request: &Request,
) -> Result<Status, StoreError> {
    let status = order.status;
    let Ok(pending) = order.pending() else { return Ok(status) };
    let change = pending.cancel(reason, stamp(app, request));
    Ok(commit(app, change).await?.unwrap_or(Status::Cancelled))
}
