//! An order and the only two ways it can end (spec 2.3, 3).

use jiff::Timestamp;

use super::words::words;
use super::{
    ApplicationId, AttemptId, AttemptState, Centimos, Event, EventId, ExternalTransactionId,
    Kwanza, ReferenceNumber, Status, Terms, event::Subject,
};

/// An order that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    pub application: ApplicationId,
    pub external_transaction_id: ExternalTransactionId,
    pub reference_number: ReferenceNumber,
    pub terms: Terms,
    pub created_at: Timestamp,
    /// With no live instrument, the order is cancelled at this moment.
    pub expires_at: Timestamp,
    /// Who asked, in the words of our logs.
    pub request_id: String,
    /// The `PEN` event, for applications that want it at creation.
    pub event: Option<Event>,
}

impl NewOrder {
    /// The same order, announced to its merchant the moment it is stored.
    pub fn announced(mut self, id: EventId) -> Self {
        let subject = Subject {
            application: self.application,
            external_transaction_id: &self.external_transaction_id,
            reference_number: &self.reference_number,
            terms: &self.terms,
        };
        self.event = Some(Event::new(id, Status::Pending, subject, self.created_at));
        self
    }
}

/// An order as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub application: ApplicationId,
    pub external_transaction_id: ExternalTransactionId,
    pub reference_number: ReferenceNumber,
    pub terms: Terms,
    pub status: Status,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What a merchant is told of an order as often as it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub reference_number: ReferenceNumber,
    pub status: Status,
    pub amount: Kwanza,
}

impl From<NewOrder> for Order {
    fn from(new: NewOrder) -> Self {
        Self {
            application: new.application,
            external_transaction_id: new.external_transaction_id,
            reference_number: new.reference_number,
            terms: new.terms,
            status: Status::Pending,
            created_at: new.created_at,
            expires_at: new.expires_at,
        }
    }
}

impl Order {
    /// The `PEN` event: the order has an instrument that can be paid.
    pub fn pending_event(&self, id: EventId, at: Timestamp) -> Event {
        Event::new(id, Status::Pending, self.subject(), at)
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            application: self.application,
            external_transaction_id: &self.external_transaction_id,
            reference_number: &self.reference_number,
            terms: &self.terms,
        }
    }

    /// The door to every transition: a settled order has none.
    pub fn pending(self) -> Result<Pending, Refusal> {
        match self.status {
            Status::Pending => Ok(Pending(self)),
            Status::Confirmed | Status::Cancelled => Err(Refusal::AlreadySettled(self.status)),
        }
    }
}

/// An order known to be pending; only this can be confirmed or cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending(Order);

/// A rail's word that the money is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub rail: String,
    /// The rail's own id of the payment.
    pub rail_payment_id: String,
    pub amount: Centimos,
    /// What was paid with, if the rail says.
    pub attempt: Option<AttemptId>,
}

words! {
    pub enum CancelReason {
        Payer = "payer",
        Expired = "expired",
        Partner = "partner",
        Operator = "operator",
    }
}

/// Who is behind a change, for the audit row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    Payer,
    Operator(String),
    /// Somebody who signs in for a partner.
    User(String),
    Rail(String),
    Service,
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Payer => f.write_str("payer"),
            Self::Operator(name) => write!(f, "operator:{name}"),
            Self::User(name) => write!(f, "user:{name}"),
            Self::Rail(name) => write!(f, "rail:{name}"),
            Self::Service => f.write_str("service"),
        }
    }
}

/// Who wants a change, as the audit row will tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    pub actor: Actor,
    pub request_id: String,
}

impl Author {
    /// What the service does of its own accord.
    pub fn service() -> Self {
        Self { actor: Actor::Service, request_id: String::new() }
    }

    pub fn payer(request_id: &str) -> Self {
        Self { actor: Actor::Payer, request_id: request_id.to_owned() }
    }

    /// Whoever may run commands on the machine. The name is what they say: it is not that of somebody who
    /// has signed in, whose login has no slash.
    pub fn command_line(name: Option<&str>) -> Self {
        let told = name.map_or_else(|| "cli".to_owned(), |name| format!("cli/{name}"));
        Self { actor: Actor::Operator(told), request_id: String::new() }
    }
}

/// When, by whom and under which ids a change happens: what the pure rules cannot invent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub at: Timestamp,
    pub actor: Actor,
    pub event_id: EventId,
    pub request_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the order is already {}", .0.code())]
    AlreadySettled(Status),
    #[error("expected {} kwanza, {paid} were paid", expected.get())]
    AmountDiffers { expected: Kwanza, paid: Centimos },
}

/// A transition, complete with the audit row and the event that must be stored with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub reference_number: ReferenceNumber,
    pub to: Status,
    /// Why, for the audit row: the rail payment or the reason of the cancellation.
    pub cause: String,
    /// The attempt that brought the money.
    pub paid_by: Option<AttemptId>,
    /// The exception whose money is taken for the full amount: it is resolved with this change.
    pub accepts: Option<i64>,
    /// Why it was cancelled, if it was.
    pub reason: Option<CancelReason>,
    /// Nobody asked for it: what must still be so.
    pub only_if: Option<OnlyIf>,
    pub stamp: Stamp,
    pub event: Event,
}

/// What an end that we decide ourselves depends on: a payer may begin to pay while it is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlyIf {
    DeadlineIs(Timestamp),
    /// No code and no reference that could be paid.
    NothingIsPayable,
}

impl Change {
    /// What becomes of references and codes that could still be paid.
    pub fn closes_as(&self) -> AttemptState {
        match self.reason {
            Some(CancelReason::Expired) => AttemptState::Expired,
            _ => AttemptState::Revoked,
        }
    }
}

impl Pending {
    /// `CON` is final: the proof says which rail vouches for the money.
    pub fn confirm(self, proof: &Proof, stamp: Stamp) -> Result<Change, Refusal> {
        let expected = self.0.terms.amount;
        if proof.amount != expected.into() {
            return Err(Refusal::AmountDiffers { expected, paid: proof.amount });
        }
        let cause = format!("paid by {} as {}", proof.rail, proof.rail_payment_id);
        let change = self.change(Status::Confirmed, cause, stamp);
        Ok(Change { paid_by: proof.attempt.clone(), ..change })
    }

    /// An operator takes another amount for the full one, and says why.
    pub fn accept(self, exception: i64, why: &str, stamp: Stamp) -> Change {
        let change = self.change(Status::Confirmed, format!("accepted: {why}"), stamp);
        Change { accepts: Some(exception), ..change }
    }

    /// `CAN` is final too; later money goes to the exceptions ledger.
    pub fn cancel(self, reason: CancelReason, stamp: Stamp) -> Change {
        let cause = format!("cancelled: {}", reason.as_str());
        Change { reason: Some(reason), ..self.change(Status::Cancelled, cause, stamp) }
    }

    /// Its time is over, by the deadline that was seen.
    pub fn expire(self, stamp: Stamp) -> Change {
        let only_if = Some(OnlyIf::DeadlineIs(self.0.expires_at));
        Change { only_if, ..self.cancel(CancelReason::Expired, stamp) }
    }

    /// Its payer has gone.
    pub fn abandon(self, stamp: Stamp) -> Change {
        let only_if = Some(OnlyIf::NothingIsPayable);
        Change { only_if, ..self.cancel(CancelReason::Payer, stamp) }
    }

    fn change(self, to: Status, cause: String, stamp: Stamp) -> Change {
        let order = self.0;
        let event = Event::new(stamp.event_id.clone(), to, order.subject(), stamp.at);
        Change {
            reference_number: order.reference_number,
            to,
            cause,
            paid_by: None,
            accepts: None,
            reason: None,
            only_if: None,
            stamp,
            event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AdditionalInfo, Label, PayerId, Quantity, UrlRules};
    use proptest::prelude::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn terms(amount: i64) -> Terms {
        let info = r#"{"returnUrl":"https://a.ao/ok","cancelUrl":"https://a.ao/no","webhookUrl":"https://a.ao/hook"}"#;
        Terms {
            payer_id: PayerId::parse("user-1").unwrap(),
            name: Label::parse("Livro").unwrap(),
            amount: Kwanza::parse(amount).unwrap(),
            quantity: Quantity::parse(1).unwrap(),
            additional_info: AdditionalInfo::parse(info, &UrlRules::default()).unwrap(),
        }
    }

    fn order(status: Status) -> Order {
        Order {
            application: ApplicationId(1),
            external_transaction_id: ExternalTransactionId::parse("order_1").unwrap(),
            reference_number: ReferenceNumber::assign(at(1), [7; 10]),
            terms: terms(15_000),
            status,
            created_at: at(1),
            expires_at: at(2),
        }
    }

    fn stamp() -> Stamp {
        Stamp {
            at: at(5),
            actor: Actor::Service,
            event_id: EventId::assign(at(5), [1; 10]),
            request_id: "req".into(),
        }
    }

    fn proof(amount: i64) -> Proof {
        Proof {
            rail: "wallet".into(),
            rail_payment_id: "r1".into(),
            amount: Kwanza::parse(amount).unwrap().into(),
            attempt: None,
        }
    }

    #[test]
    fn a_confirmation_carries_the_event_of_its_new_state() {
        let change =
            order(Status::Pending).pending().unwrap().confirm(&proof(15_000), stamp()).unwrap();
        assert_eq!(change.to, Status::Confirmed);
        assert_eq!(change.event.status, Status::Confirmed);
        assert_eq!(change.event.webhook_url, "https://a.ao/hook");
        assert!(String::from_utf8(change.event.body).unwrap().contains(r#""paymentStatus":"CON""#));
    }

    #[test]
    fn a_settled_order_has_no_way_out() {
        for status in [Status::Confirmed, Status::Cancelled] {
            assert_eq!(order(status).pending(), Err(Refusal::AlreadySettled(status)));
        }
    }

    #[test]
    fn differing_fields_are_named_as_in_the_contract() {
        let (mut other, base) = (terms(15_000), terms(15_000));
        assert!(base.differences(&other).is_empty());
        other.amount = Kwanza::parse(1).unwrap();
        other.name = Label::parse("Outro").unwrap();
        assert_eq!(base.differences(&other), ["name", "amount"]);
    }

    proptest! {
        #[test]
        fn only_the_exact_amount_confirms(paid in 1i64..30_000) {
            let result = order(Status::Pending).pending().unwrap().confirm(&proof(paid), stamp());
            prop_assert_eq!(result.is_ok(), paid == 15_000);
        }

        #[test]
        fn a_centimo_more_or_less_is_another_amount(off in -200i64..200) {
            let proof = Proof { amount: Centimos::new(1_500_000 + off), ..proof(15_000) };
            let result = order(Status::Pending).pending().unwrap().confirm(&proof, stamp());
            prop_assert_eq!(result.is_ok(), off == 0);
        }
    }
}
