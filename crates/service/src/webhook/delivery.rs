//! One attempt: sign, POST, decide what follows from the answer.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::breaker::Told;
use super::chaos;
use super::lanes::Held;
use super::sender::{Outcome, Sender, Times};
use super::signature::signature_headers;
use crate::app::{App, caught};
use crate::domain::{Chaos, Failure, Lane, Retry, Steady, UrlIssue, after, next_retry};
use crate::store::{Claimed, DeliveryAttempt, Verdict};

/// An attempt that is over, and what the store must know of it.
pub(super) struct Delivery {
    pub lane: Lane,
    pub told: Told,
    /// Its destination wants to be left alone for a while.
    pub asks_for_time: bool,
    pub attempt: DeliveryAttempt,
    /// What chaos sends after it.
    pub follow_up: Option<(Chaos, Claimed)>,
}

pub(super) async fn deliver(app: &App, sender: &Sender, held: Held) -> Delivery {
    let until = held.until();
    let Held { mut event, lease, .. } = held;
    let at = app.clock.now();
    if event.attempt == 1 {
        let lag = at.duration_since(event.created_at).as_secs_f64();
        app.metrics.webhook_first_attempt_lag.record(lag.max(0.0));
    }
    let watch = app.clock.stopwatch();
    let chaos = chaos::chaos(app, event.lane.application);
    let prevented = chaos.as_ref().and_then(|chaos| chaos::prevent(chaos, &event, at));
    let asked = prevented.is_none();
    let (outcome, forced) = match prevented {
        Some(prevented) => (prevented.outcome, prevented.verdict),
        None => {
            // Only chaos sends the same bytes again.
            let body = match &chaos {
                Some(_) => event.body.clone(),
                None => std::mem::take(&mut event.body),
            };
            // Whatever one merchant's answer does to us, the others' webhooks go on.
            let outcome = caught(attempt(app, sender, &event, body, at, until)).await;
            let broken = |_| Outcome::failed(Failure::Broken, "the service failed; see its log");
            (outcome.unwrap_or_else(broken), None)
        }
    };
    let follow_up = chaos.filter(|_| outcome.failure.is_none()).map(|chaos| (chaos, event.clone()));
    let verdict = forced.unwrap_or_else(|| decide(app, &outcome, &event));
    let Claimed { id, lane, attempt: number, failures, queued_at, .. } = event;
    let took = watch.elapsed();
    app.metrics.webhook_attempt(outcome.failure, took);
    if verdict == Verdict::Exhausted {
        tracing::warn!(event = id.as_str(), "a webhook was tried to the end of its schedule");
    }
    let refused_again = failures > 0 && outcome.http_status.is_some_and(is_refusal);
    let attempt = DeliveryAttempt {
        event: id,
        lease,
        number,
        at,
        queued_at,
        latency_ms: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
        http_status: outcome.http_status,
        error: outcome.error,
        answer_start: outcome.answer_start,
        verdict,
    };
    let told = match outcome.failure {
        None => Told::Taken,
        Some(_) if !asked || refused_again => Told::Nothing,
        Some(_) => Told::Failed,
    };
    let asks_for_time = outcome.failure.is_some() && outcome.retry_after > Some(Duration::ZERO);
    Delivery { lane, told, asks_for_time, attempt, follow_up }
}

/// The destination is there and does not want this one; it may want others.
fn is_refusal(status: u16) -> bool {
    (400..500).contains(&status) && ![408, 429].contains(&status)
}

async fn attempt(
    app: &App,
    sender: &Sender,
    event: &Claimed,
    body: Vec<u8>,
    at: Timestamp,
    until: Steady,
) -> Outcome {
    let Claimed { id, lane, webhook_url, attempt: number, .. } = event;
    let application = match app.directory.application(&app.store, lane.application).await {
        Ok(Some(application)) => application,
        Ok(None) => return Outcome::failed(Failure::Unsigned, "its application is not known"),
        Err(fault) => return Outcome::failed(Failure::Unsigned, fault.to_string()),
    };
    // Hosts may have been named since the order was made.
    if application.webhook_hosts.as_ref().is_some_and(|hosts| !hosts.includes(webhook_url)) {
        return Outcome::failed(Failure::Refused, format!("the URL {}", UrlIssue::NotNamed));
    }
    match signature_headers(app, &application, id, &body, at) {
        Ok(headers) => {
            let times = Times { clock: &app.clock, at, until };
            sender.post(webhook_url, *number, headers, body, times).await
        }
        Err(why) => Outcome::failed(Failure::Unsigned, why.to_string()),
    }
}

fn decide(app: &App, outcome: &Outcome, event: &Claimed) -> Verdict {
    let Some(failure) = outcome.failure else { return Verdict::Delivered };
    let now = app.clock.now();
    let waited = Duration::try_from(now.duration_since(event.queued_at)).unwrap_or_default();
    let dice = f64::from(u32::from_be_bytes(app.random.bytes())) / f64::from(u32::MAX);
    match next_retry(failure, event.failures + 1, waited, outcome.retry_after, dice) {
        Retry::Exhausted => Verdict::Exhausted,
        Retry::After(delay) => {
            let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
            // Sent before its time, in vain, it keeps that time: what a merchant that has come back refuses is not
            // sent in a circle. Unless it asks for more time, which ends all sending before time.
            let next = match outcome.retry_after {
                None if event.due_at > now => event.due_at,
                None => after(now, delay),
                Some(_) => after(now, delay).max(event.due_at),
            };
            Verdict::RetryAt(next)
        }
    }
}
