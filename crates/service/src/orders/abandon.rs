//! The payer closed the window. If nothing was begun that could still be paid, the order ends.

use jiff::SignedDuration;

use super::cancel;
use crate::app::App;
use crate::domain::{Actor, Author, CancelReason, Leaving, ReferenceNumber};
use crate::store::StoreError;

/// A page that is open asks for news every few seconds.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// What becomes of a code at its deadline is known a moment later.
const AFTER_A_CODE: SignedDuration = SignedDuration::from_secs(10);

pub(super) async fn abandon(
    app: &App,
    reference: &ReferenceNumber,
    nonce: &str,
) -> Result<(), StoreError> {
    let now = app.clock.now();
    let left_at = app.store.visit(reference, nonce).await?.and_then(|visit| visit.left_at);
    let heard_since = now.saturating_sub(HEARD_WITHIN).unwrap_or(now);
    // The payer may have come back by another window, which gives up the order when it is left.
    let open_elsewhere = app.store.is_open_elsewhere(reference, nonce, heard_since).await?;
    if let Some(left_at) = left_at.filter(|_| !open_elsewhere)
        && let Some(dossier) = app.store.dossier(reference).await?
    {
        match dossier.when_left(now) {
            Leaving::Stay => {}
            Leaving::Wait { until } => {
                let due = until.saturating_add(AFTER_A_CODE).unwrap_or(until);
                return app.store.visit_left(reference, nonce, left_at, due).await;
            }
            Leaving::GiveUp => {
                let request = Author { actor: Actor::Payer, request_id: String::new() };
                cancel(app, reference, CancelReason::Payer, &request).await?;
            }
        }
    }
    app.store.visit_ended(reference, nonce).await
}
