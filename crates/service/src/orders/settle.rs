//! A rail says something about money: confirm the order it is for, note it, or enter it among the
//! exceptions (spec 3). What the rail said is stored with its effect, once. Other money under an id that
//! the rail has used before is nobody's repetition: it is stored by a name of its own.

use super::{landed, stamp};
use crate::app::App;
use crate::domain::{Actor, AttemptId, Author, Dossier, Effect, Notice, Status, weigh};
use crate::store::{Receipt, Received, Reception, StoreError, Unreceived};

/// Two rails that speak at once are told one after the other; more is somebody's fault.
const TRIES: usize = 5;

pub async fn settle(app: &App, notice: Notice, request_id: &str) -> Result<Received, StoreError> {
    // Whatever ends this before it is stored, be it the caller who hangs up.
    let mut hearing = Hearing { app, heard: false };
    let told = receive(app, &notice, request_id).await;
    hearing.heard = !matches!(told, Err(StoreError::Unavailable(_) | StoreError::Broken(_)));
    let received = told?;
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
    Ok(received)
}

/// What was not heard the rail says again: until then no order ends for want of it.
struct Hearing<'a> {
    app: &'a App,
    heard: bool,
}

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        if !self.heard {
            self.app.awake.slept(&self.app.clock);
        }
    }
}

async fn receive(app: &App, notice: &Notice, request_id: &str) -> Result<Received, StoreError> {
    let mut id_is_reused = false;
    for _ in 0..TRIES {
        match try_settle(app, notice, id_is_reused, request_id).await? {
            Err(Unreceived::Changed) => {}
            Err(Unreceived::IdReused) => id_is_reused = true,
            Ok(received) => return Ok(received),
        }
    }
    Err(StoreError::Unavailable("the attempt kept changing".into()))
}

/// The order that a rail's word is about, and the attempt: a rail speaks of its own attempts only.
pub(super) async fn spoken_of(
    app: &App,
    notice: &Notice,
) -> Result<Option<(Dossier, Option<AttemptId>)>, StoreError> {
    let Some((reference, attempt)) = app.store.order_of(&notice.about).await? else {
        return Ok(None);
    };
    let Some(dossier) = app.store.dossier(&reference).await? else { return Ok(None) };
    let of = attempt.as_ref().and_then(|id| dossier.attempt(id)).map(|attempt| &attempt.rail);
    let is_its_own = of.is_none_or(|rail| *rail == notice.rail);
    Ok(is_its_own.then_some((dossier, attempt)))
}

async fn try_settle(
    app: &App,
    notice: &Notice,
    id_is_reused: bool,
    request_id: &str,
) -> Result<Reception, StoreError> {
    let (dossier, attempt) = spoken_of(app, notice).await?.unzip();
    let dossier = dossier.as_ref();
    let attempt = dossier.and_then(|d| d.attempt(attempt.flatten().as_ref()?));
    let by = Author { actor: Actor::Rail(notice.rail.clone()), request_id: request_id.to_owned() };
    let stamp = stamp(app, &by);
    let mut notice = notice.clone();
    let mut effect = weigh(&notice, dossier.map(|d| (d, attempt)), &stamp);
    if id_is_reused {
        let order = dossier.map(|d| &d.order.reference_number);
        notice.rail_payment_id = notice.own_name(order, attempt.map(|attempt| &attempt.id));
        effect = effect.of_reused_id();
    }
    let lane = match &effect {
        Effect::Confirm(change) => Some(change.event.lane.clone()),
        _ => None,
    };
    let reception = app
        .store
        .receive(Receipt {
            notice,
            id_is_reused,
            application: dossier.map(|d| d.order.application),
            reference_number: dossier.map(|d| d.order.reference_number.clone()),
            attempt: attempt.map(|attempt| attempt.id.clone()),
            effect,
            stamp,
        })
        .await?;
    if let (Ok(Received::Confirmed), Some(lane)) = (reception, lane) {
        landed(app, Status::Confirmed, lane);
    }
    Ok(reception)
}
