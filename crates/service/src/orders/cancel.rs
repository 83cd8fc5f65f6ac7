//! Cancelling an order (spec 3): final, and never while money may be moving.

use super::{Landed, commit, read_dossier, stamp};
use crate::app::App;
use crate::domain::{Author, CancelReason, Change, Order, Pending, ReferenceNumber, Stamp, Status};
use crate::store::StoreError;

/// What became of a wish to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelling {
    /// Cancelled, or what it was settled as before.
    Settled(Status),
    /// It waits for the attempt in flight; should that be paid, the order is paid.
    Waits,
}

/// The attempt in flight may end, and another begin, while we look.
const TRIES: usize = 5;

pub async fn cancel(
    app: &App,
    reference: &ReferenceNumber,
    reason: CancelReason,
    by: &Author,
) -> Result<Cancelling, StoreError> {
    for _ in 0..TRIES {
        let dossier = read_dossier(app, reference).await?;
        let status = dossier.order.status;
        let Ok(pending) = dossier.order.clone().pending() else {
            return Ok(Cancelling::Settled(status));
        };
        match commit(app, pending.cancel(reason, stamp(app, by))).await? {
            Landed::Done => return Ok(Cancelling::Settled(Status::Cancelled)),
            Landed::Lost(status) => return Ok(Cancelling::Settled(status)),
            Landed::Refused => {}
        }
        let waits = dossier.cancel_requested.is_some()
            || app.store.request_cancel(reference, reason, stamp(app, by)).await?;
        if waits {
            return Ok(Cancelling::Waits);
        }
    }
    Err(StoreError::Unavailable("the order kept changing".into()))
}

/// Ends an order by what was seen of it, which nobody asked for. False if a payer has begun something since: then
/// it is to be looked at once more.
pub(super) async fn lapse(
    app: &App,
    order: Order,
    by: &Author,
    end: impl FnOnce(Pending, Stamp) -> Change,
) -> Result<bool, StoreError> {
    let Ok(pending) = order.pending() else { return Ok(true) };
    match commit(app, end(pending, stamp(app, by))).await? {
        Landed::Done | Landed::Lost(_) => Ok(true),
        Landed::Refused => Ok(false),
    }
}
