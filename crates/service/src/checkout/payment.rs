//! A payment as the SDK hands it to the merchant's callbacks (spec 2.5).

use jiff::Timestamp;
use serde_json::json;

use crate::domain::{AttemptState, Dossier, Instrument, PaymentMethod};

pub(super) fn payment(dossier: &Dossier, now: Timestamp) -> String {
    let order = &dossier.order;
    let accepted = dossier.attempts.iter().find(|attempt| attempt.state == AttemptState::Accepted);
    // While money may be moving, nobody is handed something else to pay.
    let payable = dossier.newest_live(now).filter(|_| !dossier.may_be_moving(now));
    let told = accepted.or(payable);
    let method = told
        .or(dossier.attempts.last())
        .map_or(PaymentMethod::Direct, |attempt| attempt.instrument.method());
    // Pages of merchants read these paths whatever was pending.
    let mut data = json!({ "paymentReference": "", "entity": { "number": "", "name": "" } });
    match told.map(|attempt| (&attempt.instrument, attempt.deadline)) {
        Some((Instrument::Reference(Some(bank)), deadline)) => {
            data["paymentReference"] = bank.number().into();
            data["entity"]["number"] = bank.entity().into();
            data["expiresAt"] = deadline.to_string().into();
        }
        Some((Instrument::Code(Some(_)), deadline)) => {
            data["expiresAt"] = deadline.to_string().into();
        }
        _ => {}
    }
    json!({
        "orderId": order.external_transaction_id.as_str(),
        "externalTransactionId": order.external_transaction_id.as_str(),
        "referenceNumber": order.reference_number.as_str(),
        "paymentStatus": order.status.code(),
        "method": method.code(),
        "amount": order.terms.amount.get(),
        "currency": "AOA",
        "createdAt": order.created_at.to_string(),
        "data": data,
    })
    .to_string()
}
