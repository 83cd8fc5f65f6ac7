//! The sandbox disturbs webhooks on purpose, so that merchants see what their handler does.

use jiff::Timestamp;
use serde_json::Value;

use super::limits::EXCHANGE_TIMEOUT;
use super::sender::{Outcome, Sender, Times};
use super::signature::signature_headers;
use crate::app::App;
use crate::domain::{
    ApplicationId, Chaos, Disturbance, Environment, EventId, Failure, ReferenceNumber,
};
use crate::store::{Claimed, EventFilter, Verdict};

/// What this application asked for, if this is a sandbox.
pub(super) fn chaos(app: &App, application: ApplicationId) -> Option<Chaos> {
    match app.environment {
        Environment::Production => None,
        Environment::Sandbox => {
            app.directory.known().application_by_id(application).and_then(|a| a.chaos.clone())
        }
    }
}

/// An attempt that is not made, and what follows from it; `None` lets it go.
pub(super) fn prevent(chaos: &Chaos, event: &Claimed, now: Timestamp) -> Option<Prevented> {
    match chaos.disturb(&name(&event.body), event.attempt, event.created_at, now) {
        Disturbance::None => None,
        Disturbance::Lost => {
            let outcome = Outcome::failed(Failure::Connect, "chaos: this attempt was lost");
            Some(Prevented { outcome, verdict: None })
        }
        Disturbance::Delayed { until } => {
            let outcome = Outcome::failed(Failure::Connect, "chaos: the event is delayed");
            Some(Prevented { outcome, verdict: Some(Verdict::RetryAt(until)) })
        }
    }
}

pub(super) struct Prevented {
    pub outcome: Outcome,
    /// Unless the schedule decides.
    pub verdict: Option<Verdict>,
}

/// What comes after an event was delivered: itself once more, or the one before it.
pub(super) async fn follow_up(app: &App, sender: &Sender, chaos: &Chaos, event: &Claimed) {
    if chaos.duplicate {
        send(app, sender, event, &event.id, &event.body).await;
    }
    if chaos.reorder
        && let Some((id, body)) = older(app, event).await
    {
        send(app, sender, event, &id, &body).await;
    }
}

async fn send(app: &App, sender: &Sender, event: &Claimed, id: &EventId, body: &[u8]) {
    let at = app.clock.now();
    let known = app.directory.application(&app.store, event.lane.application).await;
    let Ok(Some(application)) = known else { return };
    if let Ok(headers) = signature_headers(app, &application, id, body, at) {
        // Whatever comes of it: it was never promised.
        let until = app.clock.steady().after(EXCHANGE_TIMEOUT);
        let times = Times { clock: &app.clock, at, until };
        sender.post(&event.webhook_url, event.attempt, headers, body.to_vec(), times).await;
    }
}

/// The event of this order before this one.
async fn older(app: &App, event: &Claimed) -> Option<(EventId, Vec<u8>)> {
    let text = serde_json::from_slice::<Value>(&event.body).ok()?;
    let reference = ReferenceNumber::parse(text["data"]["referenceNumber"].as_str()?).ok()?;
    let filter = EventFilter { reference_number: Some(reference), ..EventFilter::default() };
    let all = app.store.events(filter, 10).await.ok()?;
    let before = all.into_iter().find(|other| other.id < event.id)?;
    Some((before.id, before.body))
}

/// The event by what the merchant knows of it, which is the same in every run of a test.
fn name(body: &[u8]) -> String {
    let text = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let part = |key: &str| text["data"][key].as_str().unwrap_or_default().to_owned();
    format!("{} {}", part("externalTransactionId"), part("paymentStatus"))
}
