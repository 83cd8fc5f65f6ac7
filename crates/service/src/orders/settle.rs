//! Money has come: confirm the order it is for, or enter it among the exceptions (spec 3).

use super::{Request, commit, stamp};
use crate::app::App;
use crate::domain::{Order, Proof, Refusal, Status};
use crate::store::{ExceptionKind, NewException, StoreError};

/// What a payment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Confirmed,
    /// The order stays as it is; an operator decides about the money.
    Exception(ExceptionKind),
}

pub async fn settle(
    app: &App,
    order: Order,
    proof: &Proof,
    request: &Request,
) -> Result<Settled, StoreError> {
    let decided = order.clone().pending().and_then(|open| open.confirm(proof, stamp(app, request)));
    let refusal = match decided {
        Ok(change) => match commit(app, change).await? {
            None => return Ok(Settled::Confirmed),
            Some(status) => Refusal::AlreadySettled(status),
        },
        Err(refusal) => refusal,
    };
    let kind = match refusal {
        Refusal::AmountDiffers { .. } => ExceptionKind::Mismatch,
        Refusal::AlreadySettled(Status::Confirmed) => ExceptionKind::Excess,
        Refusal::AlreadySettled(_) => ExceptionKind::Late,
    };
    app.store
        .record_exception(NewException {
            kind,
            application: Some(order.application),
            reference_number: Some(order.reference_number),
            rail: request.actor.to_string(),
            rail_payment_id: proof.rail_payment_id.clone(),
            amount: proof.amount.get(),
            detail: refusal.to_string(),
            at: app.clock.now(),
        })
        .await?;
    Ok(Settled::Exception(kind))
}
