//! What goes in and out of the store beside the domain's own values.

use jiff::Timestamp;

use super::portable::Cells;
use super::{Result, StoreError};
use crate::domain::{
    AdditionalInfo, ApplicationId, ApplicationUuid, Author, Chaos, ClientId, ExternalTransactionId,
    Kwanza, Label, Order, PartnerId, PayerId, Quantity, ReferenceNumber, Standing, Status, Terms,
    WebhookHosts, words,
};

/// What became of an insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    New(Order),
    /// The id was there first, with these terms and this state.
    Existing(Order),
    /// Another order has the same reference number; try another one.
    ReferenceTaken,
}

/// The same, told to whoever has the new order.
pub(super) enum Inserted {
    New,
    Existing(Order),
    ReferenceTaken,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    Done,
    /// Somebody settled the order first, as this.
    Lost(Status),
    /// Not as things stand: what is to be cancelled may still be paid or waits for an operator, or what
    /// is to be accepted was resolved by somebody else.
    Refused,
    NoSuchOrder,
}

words! {
    pub enum PartnerState {
        Active = "active",
        Disabled = "disabled",
    }
}

impl PartnerState {
    pub(super) fn read(text: &str) -> Result<Self> {
        Self::from_text(text).ok_or_else(|| StoreError::Corrupt(format!("partner state {text}")))
    }
}

words! {
    /// When an application hears of `PEN`.
    pub enum PendingEvent {
        Instrument = "instrument",
        Creation = "creation",
        Never = "never",
    }
}

impl PendingEvent {
    pub(super) fn read(text: &str) -> Result<Self> {
        Self::from_text(text).ok_or_else(|| StoreError::Corrupt(format!("pending_event {text}")))
    }
}

#[derive(Clone, Debug)]
pub struct Partner {
    pub id: PartnerId,
    pub name: String,
    pub client_id: ClientId,
    pub state: PartnerState,
    pub secret_hash: Vec<u8>,
    pub previous_secret: Option<(Vec<u8>, Timestamp)>,
    pub epoch: i64,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Application {
    pub id: ApplicationId,
    pub partner: PartnerId,
    pub uuid: ApplicationUuid,
    pub name: String,
    pub webhook_secret: Vec<u8>,
    pub previous_webhook_secret: Option<PreviousWebhookSecret>,
    pub pending_event: PendingEvent,
    /// `None`: webhooks may go to any public host.
    pub webhook_hosts: Option<WebhookHosts>,
    /// How the sandbox disturbs its webhooks.
    pub chaos: Option<Chaos>,
    pub created_at: Timestamp,
}

/// A webhook secret on its way out.
#[derive(Clone, Debug)]
pub struct PreviousWebhookSecret {
    pub sealed: Vec<u8>,
    /// Until then it, and not its successor, makes the signature of spec 5.3.
    pub switch_at: Timestamp,
    /// Until then it signs beside its successor where there is room for two.
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewPartner {
    pub name: String,
    pub client_id: ClientId,
    pub secret_hash: Vec<u8>,
    /// A partner is born with one application.
    pub application: NewApplication,
    pub at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewApplication {
    pub partner: ClientId,
    pub name: String,
    pub uuid: ApplicationUuid,
    pub sealed_webhook_secret: Vec<u8>,
    pub pending_event: PendingEvent,
    pub at: Timestamp,
}

/// A new secret (hashed or sealed) and how long the one before stays good.
#[derive(Clone, Debug)]
pub struct Rotation {
    pub secret: Vec<u8>,
    /// `None`: it is forgotten at once, whatever time it is elsewhere.
    pub previous_until: Option<Timestamp>,
    pub at: Timestamp,
    pub by: Author,
}

/// A new webhook secret (sealed) and how it takes over.
#[derive(Clone, Debug)]
pub struct WebhookRotation {
    pub secret: Vec<u8>,
    pub switch_at: Timestamp,
    /// As in `Rotation`.
    pub previous_until: Option<Timestamp>,
    pub at: Timestamp,
    pub by: Author,
}

/// Everything the service knows about who may call, read in one transaction.
#[derive(Clone, Debug)]
pub struct Directory {
    pub version: i64,
    pub partners: Vec<Partner>,
    pub applications: Vec<Application>,
}

/// The columns of an order, in the order every `select` names them.
pub(super) const ORDER_COLUMNS: &str = "reference_number, application_id, external_transaction_id, \
     status, amount, quantity, payer_id, name, additional_info, created_at_ms, expires_at_ms";

/// An order by its columns: checked on the way in, asserted on the way out.
pub(super) fn order(cells: &mut Cells) -> Result<Order> {
    let reference = cells.text()?;
    let corrupt = || StoreError::Corrupt(format!("order {reference}"));
    Ok(Order {
        reference_number: read_reference(&reference)?,
        application: ApplicationId(cells.integer()?),
        external_transaction_id: ExternalTransactionId::parse(cells.text()?)
            .map_err(|_| corrupt())?,
        status: read_status(&cells.text()?)?,
        terms: Terms {
            amount: Kwanza::parse(cells.integer()?).map_err(|_| corrupt())?,
            quantity: Quantity::parse(cells.integer()?).map_err(|_| corrupt())?,
            payer_id: PayerId::parse(cells.text()?).map_err(|_| corrupt())?,
            name: Label::parse(cells.text()?).map_err(|_| corrupt())?,
            additional_info: AdditionalInfo::restore(cells.text()?),
        },
        created_at: cells.time()?,
        expires_at: cells.time()?,
    })
}

pub(super) fn read_reference(text: &str) -> Result<ReferenceNumber> {
    ReferenceNumber::parse(text).map_err(|_| StoreError::Corrupt(format!("reference {text}")))
}

pub(super) fn read_standing(reference: &str, status: &str, amount: i64) -> Result<Standing> {
    let amount =
        Kwanza::parse(amount).map_err(|_| StoreError::Corrupt(format!("amount of {reference}")))?;
    Ok(Standing {
        reference_number: read_reference(reference)?,
        status: read_status(status)?,
        amount,
    })
}

pub(super) fn read_status(code: &str) -> Result<Status> {
    Status::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("status {code}")))
}
