//! The payer chooses how to pay: an attempt is stored, then its rail is called.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use super::read_dossier;
use crate::app::{App, Limited};
use crate::domain::{
    AttemptId, AttemptState, Author, BankReference, Dossier, EventId, Instrument, Opening, Order,
    PUSH_WINDOW, PayRefusal, PaymentAttempt, PaymentMethod, PhoneNumber, Reason, ReferenceNumber,
    Step, after,
};
use crate::rails::{Accepted, Answer, Given, How, Rail, Simulator, Start};
use crate::store::{NewAttempt, PendingEvent, Started, Stepped, StoreError};

/// How the payer wants to pay.
#[derive(Clone, Debug)]
pub enum Choice {
    Push(PhoneNumber),
    Reference { life: SignedDuration },
    Code,
}

impl Choice {
    pub fn method(&self) -> PaymentMethod {
        match self {
            Self::Push(_) => PaymentMethod::ExpressWallet,
            Self::Reference { .. } => PaymentMethod::BankReference,
            Self::Code => PaymentMethod::Direct,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PayError {
    #[error(transparent)]
    Refused(#[from] PayRefusal),
    #[error("no rail offers this method for this amount")]
    NotOffered,
    #[error("this telephone was asked too often")]
    TooOften(Limited),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A code of the own wallet can be approved for this long.
const CODE_LIFE: SignedDuration = SignedDuration::from_mins(15);
/// Of whatever a rail gives out: the longest life of a bank reference, and a day.
const DEADLINE_MAX: SignedDuration = SignedDuration::from_hours(31 * 24);
/// Of a request on a telephone; then its rail is asked.
const PUSH_DEADLINE_MAX: SignedDuration = SignedDuration::from_mins(10);
/// When a call whose end nobody saw is asked about.
const CALL_LOST_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// A quick rail is waited for; a slow one answers while the payer reads.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between tries to store what a rail answered: half a minute in all.
const STORE_PAUSES: [Duration; 6] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(10),
    Duration::from_secs(15),
];
/// Of half a minute each.
const TRIES_UNHEARD: usize = 120;
/// Somebody else's attempt, or a number that is taken.
const TRIES: usize = 8;

/// The order with the attempt that is under way, new or not.
pub async fn pay(
    app: &App,
    reference: &ReferenceNumber,
    choice: &Choice,
    by: &Author,
) -> Result<Dossier, PayError> {
    let mut counted = false;
    for _ in 0..TRIES {
        let dossier = read_dossier(app, reference).await?;
        if dossier.open(choice.method(), app.clock.now())? == Opening::Show {
            return Ok(dossier);
        }
        let rail = app.rails.offering(choice.method(), dossier.order.terms.amount);
        let rail = Arc::clone(rail.ok_or(PayError::NotOffered)?);
        // A simulated one reaches nobody.
        if let (Choice::Push(phone), Rail::Connector(_), false) = (choice, &*rail, counted) {
            app.limits.push(phone).map_err(PayError::TooOften)?;
            counted = true;
        }
        let (new, start) = prepare(app, &dossier.order, &rail, choice, by);
        // The payer may close the window or click twice, which ends this request: an attempt that is
        // stored is called all the same, and its answer is stored.
        let begun = app.rail_calls.spawn(begin(app.clone(), rail, dossier.order, new, start));
        let Ok(begun) = tokio::time::timeout(ANSWER_TIMEOUT, begun).await else {
            // The rail is slow: whoever asks is shown what is stored so far.
            return Ok(read_dossier(app, reference).await?);
        };
        match begun.map_err(|_| StoreError::Unavailable("the call ended early".into()))?? {
            Started::New => return Ok(read_dossier(app, reference).await?),
            Started::Lost | Started::ReferenceTaken => {}
        }
    }
    Err(StoreError::Unavailable("the order kept changing".into()).into())
}

async fn begin(
    app: App,
    rail: Arc<Rail>,
    order: Order,
    new: NewAttempt,
    start: Start,
) -> Result<Started, StoreError> {
    let attempt = new.attempt.clone();
    match app.store.start_attempt(new).await {
        Ok(Started::New) => {
            call(app, rail, order, attempt, start).await;
            Ok(Started::New)
        }
        Err(fault) => {
            // It may be stored, by a commit whose end nobody heard. No rail was called, and none will be.
            let not_begun = attempt.refused(Reason::RailDown, app.clock.now());
            let (calls, app) = (app.rail_calls.clone(), app.clone());
            calls.spawn(async move { keep_long(&app, not_begun).await });
            Err(fault)
        }
        not_new => not_new,
    }
}

fn prepare(
    app: &App,
    order: &Order,
    rail: &Rail,
    choice: &Choice,
    by: &Author,
) -> (NewAttempt, Start) {
    let now = app.clock.now();
    let (how, instrument, life) = match choice {
        Choice::Push(phone) => {
            let instrument = Instrument::Push {
                phone_masked: phone.masked(),
                phone_sealed: app.keys.seal(&phone.e164(), app.random.bytes()),
            };
            (How::Push(phone.clone()), instrument, PUSH_WINDOW)
        }
        Choice::Reference { life } => {
            let kept = BankReference::draw(Simulator::ENTITY, app.random.bytes())
                .expect("the entity has five digits");
            (How::Reference(kept.clone()), Instrument::Reference(Some(kept)), *life)
        }
        Choice::Code => (How::Code, Instrument::Code(None), CODE_LIFE),
    };
    let after = |time: SignedDuration| after(now, time);
    let attempt = PaymentAttempt {
        id: AttemptId::assign(app.random.bytes()),
        application: order.application,
        reference_number: order.reference_number.clone(),
        rail: rail.name().to_owned(),
        instrument,
        state: AttemptState::Submitted,
        reason: None,
        rail_id: None,
        created_at: now,
        deadline: after(life),
        due_at: Some(after(CALL_LOST_AFTER)),
        polls: 0,
    };
    let start = Start {
        attempt: attempt.id.clone(),
        amount: order.terms.amount,
        label: order.terms.name.as_str().to_owned(),
        deadline: attempt.deadline,
        now,
        how,
    };
    (NewAttempt { attempt, request_id: by.request_id.clone() }, start)
}

/// What the rail answers is stored, whoever still waits for it.
async fn call(app: App, rail: Arc<Rail>, order: Order, attempt: PaymentAttempt, start: Start) {
    let answer = rail.start(&start).await;
    let now = app.clock.now();
    let step = match answer {
        Answer::Accepted(accepted) => live(&app, &order, &attempt, accepted),
        Answer::Refused(reason) => attempt.refused(reason, now),
        Answer::Unknown => attempt.unknown(now),
    };
    let lane = step.event.as_ref().map(|event| event.lane.clone());
    let given = (step.rail_id.clone(), step.instrument.clone());
    let stored = match keep(&app, step).await {
        Ok(Stepped::ReferenceTaken) => {
            tracing::error!(
                rail = rail.name(),
                attempt = attempt.id.as_str(),
                order = order.reference_number.as_str(),
                "a rail issued a reference that is another's"
            );
            // At the rail it lives, and whoever still has it from the other order would pay this one.
            let (rail_id, instrument) = given;
            let withdrawn = attempt.given_up(Reason::Config, now);
            keep(&app, Step { rail_id, instrument, ..withdrawn }).await
        }
        stored => stored,
    };
    app.news.tell();
    match (stored, lane) {
        (Ok(Stepped::Done { announced: true }), Some(lane)) => app.outbox_bell.ring(lane),
        (Ok(Stepped::Lost), _) => tracing::warn!(
            attempt = attempt.id.as_str(),
            "a rail answered after its attempt had ended, or its answer was stored before"
        ),
        (Ok(_), _) => {}
        // The attempt is due again in a minute, and then its rail is asked.
        (Err(fault), _) => tracing::warn!(%fault, "a rail's answer could not be stored"),
    }
}

/// The number a rail chose is known to nobody else: a store that is away for a moment is waited for.
async fn keep(app: &App, mut step: Step) -> Result<Stepped, StoreError> {
    let mut pauses = STORE_PAUSES.into_iter();
    loop {
        // Who reads the feed no longer reckons with an id of half a minute ago.
        if let Some(event) = &mut step.event {
            event.id = EventId::assign(app.clock.now(), app.random.bytes());
        }
        let stored = app.store.step(step.clone()).await;
        match stored {
            Err(StoreError::Unavailable(_)) => match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return stored,
            },
            // Meanwhile it was asked about, in vain: now it is known.
            Ok(Stepped::Lost) if ![step.from, step.to].contains(&AttemptState::Unknown) => {
                step.from = AttemptState::Unknown;
            }
            stored => return stored,
        }
    }
}

/// A database that comes back after a longer time may bring what was stored unheard: its payer would have to wait
/// for a rail that was never asked.
async fn keep_long(app: &App, step: Step) {
    for _ in 0..TRIES_UNHEARD {
        match keep(app, step.clone()).await {
            Err(StoreError::Unavailable(_)) => {}
            _ => return,
        }
    }
    tracing::error!(
        attempt = step.attempt.as_str(),
        "the store was away for too long: if this attempt is there, no rail has heard of it"
    );
}

/// The instrument can be paid now: the moment the merchant hears of `PEN`.
fn live(app: &App, order: &Order, attempt: &PaymentAttempt, accepted: Accepted) -> Step {
    let now = app.clock.now();
    // Whatever a rail writes: no order lives for years, nobody holds a telephone for an hour, and what is given
    // now is not over yet.
    let latest = match accepted.given {
        Given::Push => after(now, PUSH_DEADLINE_MAX),
        Given::Reference(_) | Given::Code(_) => after(now, DEADLINE_MAX),
    };
    let told = accepted.deadline.filter(|told| *told > now);
    let deadline = told.unwrap_or(attempt.deadline).min(latest);
    let (to, instrument, due_at) = match accepted.given {
        Given::Push => (AttemptState::AwaitingPayer, attempt.instrument.clone(), Some(deadline)),
        Given::Reference(bank) => (AttemptState::Issued, Instrument::Reference(Some(bank)), None),
        Given::Code(code) => (AttemptState::Issued, Instrument::Code(Some(code)), Some(deadline)),
    };
    let known = app.directory.known();
    let told_now = known
        .application_by_id(order.application)
        .is_some_and(|application| application.pending_event == PendingEvent::Instrument);
    let event =
        told_now.then(|| order.pending_event(EventId::assign(now, app.random.bytes()), now));
    Step {
        rail_id: Some(accepted.rail_id),
        instrument,
        deadline,
        due_at,
        event,
        forecast: accepted.forecast,
        ..attempt.step(to, now)
    }
}
