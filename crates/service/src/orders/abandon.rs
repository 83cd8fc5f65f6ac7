//! The payer closed the window. If nothing was begun that could still be paid, the order ends.

use jiff::{SignedDuration, Timestamp};

use super::cancel::lapse;
use crate::app::App;
use crate::domain::{Author, Leaving, Pending, ReferenceNumber, after, before};
use crate::store::StoreError;

/// A page that is hidden is silent, and one whose browser was killed says nothing: after this nobody waits
/// for it.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// From a page to the first word of its script, on a slow network. One without scripts is waited for as long.
const SCRIPT_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// A payer, or a page that asks for news, who found no service tries again.
const COMES_BACK_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// Until it is looked again whether another window is still there.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(60);
/// A rail is asked about a code at its deadline; until it is looked whether it has answered.
const AFTER_A_CODE: SignedDuration = SignedDuration::from_secs(10);

pub(super) async fn abandon(
    app: &App,
    reference: &ReferenceNumber,
    nonce: &str,
) -> Result<(), StoreError> {
    let left_at = app.store.visit(reference, nonce).await?.and_then(|visit| visit.left_at);
    let Some(left_at) = left_at else { return app.store.visit_ended(reference, nonce).await };
    match give_up_or_wait(app, reference, nonce, left_at).await? {
        Some(due) => app.store.visit_due(reference, nonce, left_at, due).await,
        None => app.store.visit_ended(reference, nonce).await,
    }
}

/// When to look again; `None`: there is nothing more to do.
async fn give_up_or_wait(
    app: &App,
    reference: &ReferenceNumber,
    nonce: &str,
    left_at: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(dossier) = app.store.dossier(reference).await? else { return Ok(None) };
    let (awake_since, now) = (app.awake.look(&app.clock), app.clock.now());
    let found_again = after(awake_since, COMES_BACK_WITHIN);
    match dossier.when_left(now) {
        Leaving::Stay => Ok(None),
        Leaving::Wait { until } => Ok(Some(after(until, AFTER_A_CODE))),
        // Who loaded the page again, or had another one open, found nobody here until a moment ago.
        Leaving::GiveUp if left_at < awake_since && now < found_again => Ok(Some(found_again)),
        // The payer came back by another window.
        Leaving::GiveUp if is_open_elsewhere(app, reference, nonce, now).await? => {
            Ok(Some(after(now, LOOK_AGAIN)))
        }
        Leaving::GiveUp => {
            let ended = lapse(app, dossier.order, &Author::payer(""), Pending::abandon).await?;
            Ok((!ended).then(|| after(now, LOOK_AGAIN)))
        }
    }
}

async fn is_open_elsewhere(
    app: &App,
    reference: &ReferenceNumber,
    nonce: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (heard, loaded) = (before(now, HEARD_WITHIN), before(now, SCRIPT_WITHIN));
    app.store.is_open_elsewhere(reference, nonce, heard, loaded).await
}
