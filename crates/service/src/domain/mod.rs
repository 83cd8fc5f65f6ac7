//! The rules of the service as pure values: no I/O, no clock, no async (spec 2, 3, 5.3, 6).

mod additional_info;
mod destination;
mod environment;
mod event;
mod ids;
mod method;
mod money;
mod order;
mod retry;
mod text;

pub use additional_info::{AdditionalInfo, AdditionalInfoError};
pub use destination::{UrlIssue, UrlRules, is_public_address};
pub use environment::{Environment, PublishableKey, UnknownEnvironment};
pub use event::{Event, EventId, Lane, payment_event_body, sign, sign_standard};
pub use ids::{
    ApplicationId, ApplicationUuid, ClientId, ExternalTransactionId, IdIssue, PartnerId,
    ReferenceNumber,
};
pub use method::PaymentMethod;
pub use money::{Kwanza, MoneyIssue, Quantity};
pub use order::{
    Actor, CancelReason, Change, NewOrder, Order, Pending, Proof, Refusal, Stamp, Status, Terms,
};
pub use retry::{ATTEMPTS_MIN, RETRY_HORIZON, Retry, next_retry};
pub use text::{Label, PayerId, TextIssue};
