//! An order whose time has come: no longer offered, then cancelled. A payment that is on its way
//! wins until the very end.

use jiff::{SignedDuration, Timestamp};

use super::cancel::{Cancelling, cancel, lapse};
use crate::app::App;
use crate::domain::{
    Author, CancelReason, Deadline, Dossier, Environment, Pending, ReferenceNumber, after,
};
use crate::store::StoreError;

/// A rail that is away cannot tell of money; it is waited for so long.
const RAIL_WAITED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// For money that was paid in time and is on its way.
const GRACE: SignedDuration = SignedDuration::from_mins(10);
const SANDBOX_GRACE: SignedDuration = SignedDuration::from_secs(5);

pub async fn expire(app: &App, reference: &ReferenceNumber) -> Result<(), StoreError> {
    let grace = match app.environment {
        Environment::Sandbox => SANDBOX_GRACE,
        Environment::Production => GRACE,
    };
    expire_after(app, reference, grace).await
}

/// The same at once, without the grace: what the sandbox calls `expire`.
pub async fn expire_now(app: &App, reference: &ReferenceNumber) -> Result<(), StoreError> {
    let now = app.clock.now();
    app.store.postpone(reference, None, now, Some(now)).await?;
    expire_after(app, reference, SignedDuration::ZERO).await
}

async fn expire_after(
    app: &App,
    reference: &ReferenceNumber,
    grace: SignedDuration,
) -> Result<(), StoreError> {
    let Some(dossier) = app.store.dossier(reference).await? else { return Ok(()) };
    let (awake_since, now) = (app.awake.look(&app.clock), app.clock.now());
    let heard_since = awake_since.max(rails_heard_since(app, &dossier, now));
    let deadline = dossier.order.expires_at;
    if now < deadline {
        return Ok(());
    }
    match dossier.at_deadline(now, grace, heard_since) {
        None => Ok(()),
        Some(Deadline::Close { until }) => {
            app.store.postpone(reference, Some(deadline), until, Some(now)).await
        }
        Some(Deadline::Cancel(reason)) => {
            let by = Author::service();
            let has_ended = match reason {
                CancelReason::Expired => lapse(app, dossier.order, &by, Pending::expire).await?,
                // Somebody has wished for it, whatever was begun since.
                _ => cancel(app, reference, reason, &by).await? != Cancelling::Waits,
            };
            if !has_ended {
                // An attempt slipped in, and may give the order more time; if not, we are here again.
                app.store.postpone(reference, Some(deadline), after(now, GRACE), None).await?;
            }
            Ok(())
        }
    }
}

/// Since when all rails of what was issued could have told of a payment.
fn rails_heard_since(app: &App, dossier: &Dossier, now: Timestamp) -> Timestamp {
    let rails = dossier.issued().filter_map(|attempt| app.rails.named(&attempt.rail));
    let since = rails.map(|rail| rail.heard_since().unwrap_or(now)).max();
    let latest = after(dossier.closing_since.unwrap_or(now), RAIL_WAITED_FOR);
    since.map_or(Timestamp::MIN, |since| since.min(latest))
}
