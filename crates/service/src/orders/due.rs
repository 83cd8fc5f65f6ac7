//! What the clock brings: deadlines, attempts to follow, simulated rails, queues to read.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use super::abandon::abandon;
use super::expire::expire;
use super::follow::follow;
use super::settle;
use super::withdraw::withdraw;
use crate::app::{App, joined};
use crate::domain::{ReferenceNumber, after};
use crate::rails::{Connector, ConnectorError};
use crate::store::{Due, DueWork, StoreError};

/// Taken from the store at once; whatever is due stays there until it is done.
const BATCH: usize = 256;
/// How often a rail's queue is read.
const QUEUE_PERIOD: SignedDuration = SignedDuration::from_secs(60);
/// Acknowledgements in a row that a connector does not hear: then it is left alone.
const UNHEARD_MAX: usize = 3;

/// Does all that is due, in the order of its time, and waits for what connectors are asked.
pub async fn run_due(app: &App) -> Result<(), StoreError> {
    let mut questions = JoinSet::new();
    let done = work_off_all(app, &mut questions).await;
    questions.join_all().await;
    done
}

/// The same without waiting: a connector that hangs holds up no deadline. Its questions go on beside.
pub async fn begin_due(app: &App) -> Result<(), StoreError> {
    let mut questions = JoinSet::new();
    let done = work_off_all(app, &mut questions).await;
    questions.detach_all();
    done
}

async fn work_off_all(app: &App, questions: &mut JoinSet<()>) -> Result<(), StoreError> {
    loop {
        let due = app.store.due(app.clock.now(), BATCH).await?;
        app.awake.look(&app.clock);
        let mut failed = 0;
        // Deadlines next to each other are of different orders: done together, they share commits.
        let deadlines =
            |one: &Due, next: &Due| one.deadline().is_some() && next.deadline().is_some();
        for stretch in due.chunk_by(deadlines) {
            let outcomes = match stretch {
                [one] => vec![work_off(app, one, questions).await],
                many => expire_together(app, many).await,
            };
            // What is due besides deadlines may take its time.
            if outcomes.iter().any(Result::is_ok) {
                app.awake.look(&app.clock);
            }
            let faults = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
            failed += faults.inspect(|fault| warn(fault)).count();
        }
        // What failed is still there, and would be taken again and again.
        if due.len() < BATCH || failed == due.len() {
            return Ok(());
        }
    }
}

async fn expire_together(app: &App, deadlines: &[Due]) -> Vec<Result<(), StoreError>> {
    // Tasks that go on when we are ended: an order is not left between its two steps.
    let begin = |reference: &ReferenceNumber| {
        let (app, reference) = (app.clone(), reference.clone());
        tokio::spawn(async move { expire(&app, &reference).await })
    };
    let expiring: Vec<_> = deadlines.iter().filter_map(Due::deadline).map(begin).collect();
    let mut outcomes = Vec::with_capacity(expiring.len());
    for task in expiring {
        outcomes.push(joined(task.await).flatten());
    }
    outcomes
}

fn warn(fault: &StoreError) {
    tracing::warn!(%fault, "something due could not be done; it is tried again");
}

/// When there is next something to do.
pub async fn next_due(app: &App) -> Result<Option<Timestamp>, StoreError> {
    let first = app.store.due(Timestamp::MAX, 1).await?;
    Ok(first.first().map(|due| due.at))
}

async fn work_off(app: &App, due: &Due, questions: &mut JoinSet<()>) -> Result<(), StoreError> {
    match &due.work {
        DueWork::Order(reference) => expire(app, reference).await,
        DueWork::Attempt { id, reference_number } => {
            let question = follow(app, id, reference_number, due.at).await?;
            beside(questions, question);
            Ok(())
        }
        DueWork::Visit { reference_number, nonce } => abandon(app, reference_number, nonce).await,
        DueWork::Forecast { id, notice } => {
            // The effect first: should we end between the two, the notice is a duplicate.
            settle(app, notice.clone(), "").await?;
            app.store.forget_forecast(*id).await
        }
        DueWork::Withdrawal { id, reference_number } => {
            beside(questions, withdraw(app, id, reference_number, due.at).await?);
            Ok(())
        }
        DueWork::Queue { rail } => {
            beside(questions, read_queue(app, rail, due.at).await?);
            Ok(())
        }
    }
}

fn beside(
    questions: &mut JoinSet<()>,
    question: Option<impl Future<Output = Result<(), StoreError>> + Send + 'static>,
) {
    if let Some(question) = question {
        questions.spawn(async move {
            if let Err(fault) = question.await {
                warn(&fault);
            }
        });
    }
}

/// Takes the reading of a queue, to be done beside everything else.
async fn read_queue(
    app: &App,
    name: &str,
    due_at: Timestamp,
) -> Result<Option<impl Future<Output = Result<(), StoreError>> + use<>>, StoreError> {
    let next = after(app.clock.now(), QUEUE_PERIOD);
    if !app.store.take_queue(name, due_at, next).await? {
        return Ok(None);
    }
    let Some(rail) = app.rails.named(name).cloned() else { return Ok(None) };
    // One at a time for each rail and period, whatever else it is asked.
    let app = app.clone();
    Ok(Some(async move {
        match rail.connector() {
            Some(connector) => drain(&app, connector).await,
            None => Ok(()),
        }
    }))
}

async fn drain(app: &App, rail: &Connector) -> Result<(), StoreError> {
    let listing = match rail.drain().await {
        Ok(listing) => listing,
        Err(fault) => {
            tracing::warn!(rail = rail.name(), %fault, "the queue of a rail could not be read");
            return Ok(());
        }
    };
    // All are stored first: a rail that is slow to hear of it delays nobody's order.
    let mut stored = Vec::with_capacity(listing.notices.len());
    // A rail that forgets by the id alone would forget what we did not store, too.
    let mut kept: HashSet<_> = listing.unread_ids().collect();
    for notice in listing.notices {
        let (id, kind) = (notice.rail_payment_id.clone(), notice.word.kind());
        match settle(app, notice, "").await {
            Ok(_) => stored.push((id, kind)),
            Err(fault) => {
                warn(&fault);
                kept.insert(id);
            }
        }
    }
    let mut unheard = 0;
    for (id, kind) in stored.iter().filter(|(id, _)| !kept.contains(id)) {
        match rail.ack(id, kind).await {
            Ok(()) => unheard = 0,
            Err(fault) => {
                tracing::warn!(rail = rail.name(), %fault, "a payment could not be acknowledged");
                // One that it refuses must not stand for ever before those behind it.
                unheard = if matches!(fault, ConnectorError::Refused(_)) { 0 } else { unheard + 1 };
            }
        }
        // It does not hear us: the next reading finds the others again.
        if unheard == UNHEARD_MAX {
            break;
        }
    }
    Ok(())
}
