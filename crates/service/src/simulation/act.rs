//! What a payer, a rail or time would do to an order.

use jiff::SignedDuration;

use crate::app::App;
use crate::domain::{
    About, Author, CancelReason, Notice, Order, PaymentAttempt, PhoneNumber, Reason,
    ReferenceNumber, Word,
};
use crate::orders::{self, Choice, PayError};
use crate::rails::{Simulator, payment_id};
use crate::store::StoreError;

const REFERENCE_LIFE: SignedDuration = SignedDuration::from_mins(1_440);

#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Confirm,
    Decline,
    Cancel,
    Expire,
    Pending,
}

impl Outcome {
    pub(crate) const WORDS: &str = "confirm, decline, cancel, expire, pending";

    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "confirm" => Some(Self::Confirm),
            "decline" => Some(Self::Decline),
            "cancel" => Some(Self::Cancel),
            "expire" => Some(Self::Expire),
            "pending" => Some(Self::Pending),
            _ => None,
        }
    }
}

/// Does to the order what a payer, a rail or time would; a settled order stays as it is.
pub(crate) async fn act(
    app: &App,
    order: Order,
    outcome: Outcome,
    request_id: String,
) -> Result<(), StoreError> {
    if order.clone().pending().is_err() {
        return Ok(());
    }
    let reference = order.reference_number.clone();
    let payer = Author::payer(&request_id);
    match outcome {
        Outcome::Confirm => {
            // For an attempt in flight this is its answer; else the order is paid directly.
            let dossier = app.store.dossier(&reference).await?;
            let word = Word::Paid(order.terms.amount.into());
            let notice = match dossier.as_ref().and_then(|d| d.in_flight()) {
                Some(attempt) => answer_to(attempt, word),
                None => direct_payment(app, reference, word),
            };
            orders::settle(app, notice, &request_id).await?;
        }
        Outcome::Decline => decline(app, &order, &payer).await?,
        Outcome::Pending => {
            let choice = Choice::Reference { life: REFERENCE_LIFE };
            match orders::pay(app, &reference, &choice, &payer).await {
                // An attempt is under way, or it is too late: the order is what it is.
                Ok(_)
                | Err(PayError::Refused(_) | PayError::NotOffered | PayError::TooOften(_)) => {}
                Err(PayError::Store(fault)) => return Err(fault),
            }
        }
        Outcome::Cancel => {
            orders::cancel(app, &reference, CancelReason::Payer, &payer).await?;
        }
        Outcome::Expire => orders::expire_now(app, &reference).await?,
    }
    Ok(())
}

/// The attempt in flight is refused; if there is none, one is made for it.
async fn decline(app: &App, order: &Order, payer: &Author) -> Result<(), StoreError> {
    const REFUSED_BY_PAYER: &str = "900003000";
    let phone = PhoneNumber::parse(REFUSED_BY_PAYER).expect("a number of the simulator");
    let reference = &order.reference_number;
    let dossier = match orders::pay(app, reference, &Choice::Push(phone), payer).await {
        Ok(dossier) => Some(dossier),
        Err(PayError::Refused(_) | PayError::NotOffered | PayError::TooOften(_)) => {
            app.store.dossier(reference).await?
        }
        Err(PayError::Store(fault)) => return Err(fault),
    };
    let Some(attempt) = dossier.as_ref().and_then(|d| d.in_flight()) else { return Ok(()) };
    let word = Word::Refused(Reason::PayerRefused);
    // Whatever its number was going to do, it does not.
    app.store.forget_forecasts(&attempt.id).await?;
    orders::settle(app, answer_to(attempt, word), &payer.request_id).await?;
    Ok(())
}

/// Should the simulator say it too, it is the same news.
fn answer_to(attempt: &PaymentAttempt, word: Word) -> Notice {
    Notice::of(attempt, payment_id(&attempt.id), word, "simulate")
}

fn direct_payment(app: &App, order: ReferenceNumber, word: Word) -> Notice {
    Notice {
        rail: Simulator::NAME.to_owned(),
        rail_payment_id: format!("sim_{}", hex::encode(app.random.bytes::<12>())),
        about: About::Order(order),
        word,
        raw: b"simulate".to_vec(),
    }
}
