//! The payer closed the window. If nothing was begun that could still be paid, the order ends.

use super::cancel;
use crate::app::App;
use crate::domain::{Actor, Author, CancelReason, ReferenceNumber};
use crate::store::StoreError;

pub(super) async fn abandon(
    app: &App,
    reference: &ReferenceNumber,
    nonce: &str,
) -> Result<(), StoreError> {
    let left = app.store.visit(reference, nonce).await?.is_some_and(|v| v.left_at.is_some());
    let dossier = app.store.dossier(reference).await?;
    if left && dossier.is_some_and(|dossier| dossier.may_be_abandoned()) {
        let request = Author { actor: Actor::Payer, request_id: String::new() };
        cancel(app, reference, CancelReason::Payer, &request).await?;
    }
    app.store.visit_ended(reference, nonce).await
}
