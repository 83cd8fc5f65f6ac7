//! A rail says something about money: confirm the order it is for, note it, or enter it among the
//! exceptions (spec 3). What the rail said is stored with its effect, once.

use super::{landed, stamp};
use crate::app::App;
use crate::domain::{Actor, Author, Effect, Lane, Notice, Status, weigh};
use crate::store::{Receipt, Received, StoreError};

/// Two rails that speak at once are told one after the other; more is somebody's fault.
const TRIES: usize = 5;

pub async fn settle(app: &App, notice: Notice, request_id: &str) -> Result<Received, StoreError> {
    for _ in 0..TRIES {
        match try_settle(app, &notice, request_id).await? {
            Received::Changed => {}
            received => {
                app.metrics.rail_notice(received);
                app.news.tell();
                if let Received::Exception(kind) = received {
                    tracing::warn!(
                        kind = kind.as_str(),
                        rail = notice.rail,
                        rail_payment_id = notice.rail_payment_id,
                        "a payment fits no order: see svc exception list"
                    );
                }
                return Ok(received);
            }
        }
    }
    Err(StoreError::Unavailable("the attempt kept changing".into()))
}

async fn try_settle(app: &App, notice: &Notice, request_id: &str) -> Result<Received, StoreError> {
    let found = app.store.order_of(&notice.about).await?;
    let (dossier, attempt) = match found {
        Some((reference, attempt)) => (app.store.dossier(&reference).await?, attempt),
        None => (None, None),
    };
    let known = dossier.as_ref().and_then(|d| d.attempt(attempt.as_ref()?));
    // A rail speaks of its own attempts only.
    let attempt = known.filter(|attempt| attempt.rail == notice.rail);
    let dossier = dossier.as_ref().filter(|_| known.is_none() || attempt.is_some());
    let request =
        Author { actor: Actor::Rail(notice.rail.clone()), request_id: request_id.to_owned() };
    let stamp = stamp(app, &request);
    let effect = weigh(notice, dossier.map(|d| (d, attempt)), &stamp);
    let lane = match &effect {
        Effect::Confirm(change) => Some(Lane::of(change.application, &change.event.webhook_url)),
        _ => None,
    };
    let received = app
        .store
        .receive(Receipt {
            notice: notice.clone(),
            application: dossier.map(|d| d.order.application),
            reference_number: dossier.map(|d| d.order.reference_number.clone()),
            attempt: attempt.map(|attempt| attempt.id.clone()),
            effect,
            stamp,
        })
        .await?;
    if let (Received::Confirmed, Some(lane)) = (received, lane) {
        landed(app, Status::Confirmed, lane);
    }
    Ok(received)
}
