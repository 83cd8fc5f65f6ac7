//! The rules of the service as pure values: no I/O, no clock, no async (spec 2, 3, 5.3, 6).

mod additional_info;
mod attempt;
mod bank_reference;
mod chaos;
mod destination;
mod dossier;
mod environment;
mod event;
mod ids;
mod luanda;
mod method;
mod moment;
mod money;
mod notice;
mod order;
mod person;
mod phone;
mod rail_word;
mod retry;
mod status;
mod terms;
mod text;
mod webhook_hosts;
mod words;

pub use additional_info::{AdditionalInfo, AdditionalInfoError, UrlFault};
pub use attempt::{
    AttemptId, AttemptState, Forecast, Instrument, OrderLives, PUSH_WINDOW, PaymentAttempt, Step,
    WalletCode,
};
pub use bank_reference::{BankReference, NotABankReference};
pub use chaos::{Chaos, Disturbance};
pub use destination::{UrlIssue, UrlRules, is_public_address};
pub use dossier::{Deadline, Dossier, Leaving, Opening, PayRefusal, TRIES_PER_METHOD_MAX};
pub use environment::{Environment, PublishableKey, UnknownEnvironment};
pub use event::{Event, EventId, Lane, Signer, sign, sign_standard};
pub use ids::{
    ApplicationId, ApplicationUuid, ClientId, ExternalTransactionId, IdIssue, PartnerId,
    ReferenceNumber,
};
pub use luanda::{luanda, luanda_midnight};
pub use method::PaymentMethod;
pub use moment::{Steady, after, before};
pub use money::{Centimos, Kwanza, MoneyIssue, Quantity};
pub use notice::{About, Effect, ExceptionKind, Notice, weigh};
pub use order::{
    Actor, Author, CancelReason, Change, NewOrder, OnlyIf, Order, Pending, Proof, Refusal, Stamp,
    Standing,
};
pub use person::{Login, NotALogin, Permission, Role, may};
pub use phone::{NotAPhone, PhoneNumber};
pub use rail_word::{Reason, Word};
pub use retry::{DELIVERIES_MIN, Failure, RETRY_HORIZON, Retry, next_retry};
pub use status::Status;
pub use terms::Terms;
pub use text::{Label, PayerId, TextIssue};
pub use webhook_hosts::{NotHosts, WebhookHosts};
pub(crate) use words::words;
