//! What goes in and out of the store about paying: attempts, notices, and what is due.

use jiff::{SignedDuration, Timestamp};

use super::portable::Cells;
use super::records::{order, read_reference};
use super::{Result, StoreError};
use crate::domain::{
    ApplicationId, AttemptId, AttemptState, BankReference, CancelReason, Centimos, Dossier, Effect,
    ExceptionKind, Instrument, Notice, OnlyIf, PaymentAttempt, PaymentMethod, Reason,
    ReferenceNumber, Stamp, WalletCode, Word, after,
};

/// An attempt about to be made; its rail is called once this is stored.
#[derive(Clone, Debug)]
pub struct NewAttempt {
    pub attempt: PaymentAttempt,
    pub request_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    New,
    /// The order is no longer as it was when this was decided: look again.
    Lost,
    /// The bank reference is another's, or was until lately: draw another one.
    ReferenceTaken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    Done {
        /// The `PEN` event went into the outbox.
        announced: bool,
    },
    /// The attempt is no longer in the state this step begins in.
    Lost,
    /// The rail gave a reference that belongs to another attempt: nothing was written.
    ReferenceTaken,
}

/// A notice and what it was found to mean.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub notice: Notice,
    /// It has a name of its own by now, because its id is of other money.
    pub id_is_reused: bool,
    pub application: Option<ApplicationId>,
    pub reference_number: Option<ReferenceNumber>,
    pub attempt: Option<AttemptId>,
    pub effect: Effect,
    /// Its event id also tells this call from another with the same notice.
    pub stamp: Stamp,
}

/// What became of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Confirmed,
    /// Taken note of; the order stays as it is.
    Noted,
    Exception(ExceptionKind),
    /// The same news again.
    Duplicate,
}

impl Received {
    pub const OUTCOMES: [&str; 3] = [APPLIED, EXCEPTION, DUPLICATE];

    /// To which of the three sums it counts: together they are all that was received.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Confirmed | Self::Noted => APPLIED,
            Self::Exception(_) => EXCEPTION,
            Self::Duplicate => DUPLICATE,
        }
    }
}

/// Why nothing was stored of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreceived {
    /// The attempt moved on meanwhile: look again.
    Changed,
    /// The rail's id is of other money.
    IdReused,
}

pub type Reception = std::result::Result<Received, Unreceived>;

/// What is known under a rail's id.
#[derive(Clone, Debug)]
pub struct Known {
    pub amount: Centimos,
    pub reference_number: Option<String>,
    pub attempt: Option<String>,
}

impl Known {
    /// Whether news of this order, by this attempt, may be the same news. What was for nobody and is for an
    /// order now is not, nor the other way round, nor is what another attempt brought.
    pub fn is_of(&self, order: Option<&ReferenceNumber>, attempt: Option<&AttemptId>) -> bool {
        let same_order = match (order, &self.reference_number) {
            (Some(order), Some(known)) => order.as_str() == known,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let same_attempt = match (attempt, &self.attempt) {
            (Some(attempt), Some(known)) => attempt.as_str() == known,
            _ => true,
        };
        same_order && same_attempt
    }

    fn is_repeated_by(&self, receipt: &Receipt) -> bool {
        self.amount == receipt.notice.word.amount()
            && self.is_of(receipt.reference_number.as_ref(), receipt.attempt.as_ref())
    }
}

/// Whether a notice is news, by what is known under its id and kind.
pub(super) enum Heard {
    Never,
    Before,
    /// The id is of other money.
    Otherwise,
}

impl Receipt {
    pub(super) fn was_heard(&self, known: Option<&Known>, was_reversed: bool) -> Heard {
        match known {
            Some(known) if known.is_repeated_by(self) => Heard::Before,
            Some(_) => Heard::Otherwise,
            // What was reversed before we heard of it pays nothing, however often it comes and whatever has
            // become of its order: it has a name of its own.
            None if was_reversed && !self.id_is_reused && self.notice.word.is_payment() => {
                Heard::Otherwise
            }
            None => Heard::Never,
        }
    }

    /// What was stored for it, when the call that did so is repeated.
    pub(super) fn as_stored(&self, outcome: &str, exception: Option<&str>) -> Received {
        match (&self.effect, exception.and_then(ExceptionKind::from_text)) {
            (_, Some(kind)) => Received::Exception(kind),
            (Effect::Confirm(_), None) if outcome == APPLIED => Received::Confirmed,
            _ => Received::Noted,
        }
    }
}

pub(super) const APPLIED: &str = "applied";
const EXCEPTION: &str = "exception";
const DUPLICATE: &str = "duplicate";

/// How long a bank reference that died is kept from being given out again.
pub(super) const REFERENCE_REST: SignedDuration = SignedDuration::from_hours(180 * 24);

/// When a reference that dies now may be given out again.
pub(super) fn free_at_ms(at: Timestamp) -> i64 {
    after(at, REFERENCE_REST).as_millisecond()
}

/// The reason inside a word, for its column.
pub(super) fn reason_of(word: &Word) -> Option<String> {
    match word {
        Word::Refused(reason) => Some(reason.to_text()),
        Word::Paid(_) | Word::Unconfirmed | Word::Reversed(_) => None,
    }
}

/// Whether by this attempt money may be moving, or waits for an operator: no cancellation then, and no other
/// attempt. A code past its deadline is one whose rail is being asked. In SQL.
pub(super) fn unsettled(attempt: &str, at_ms: &str) -> String {
    let code = PaymentMethod::Direct.code();
    format!(
        "({attempt}.state in ('submitted', 'awaiting_payer', 'unknown', 'held')
          or {attempt}.state = 'issued' and {attempt}.method = '{code}'
              and {attempt}.due_at_ms is not null and {attempt}.deadline_at_ms <= {at_ms})"
    )
}

/// Whether an order is not as it must be for an end that nobody asked for: it has another deadline than the one
/// that was seen or, where none is given, something that could be paid. In SQL.
pub(super) fn has_changed(order: &str, deadline_ms: &str) -> String {
    format!(
        "({order}.expires_at_ms <> {deadline_ms} or {deadline_ms} is null and exists (
             select 1 from payment_attempts p
             where p.reference_number = {order}.reference_number and p.state = 'issued'))"
    )
}

/// The deadline that must still be so, for that.
pub(super) fn deadline_ms(only_if: OnlyIf) -> Option<i64> {
    match only_if {
        OnlyIf::DeadlineIs(at) => Some(at.as_millisecond()),
        OnlyIf::NothingIsPayable => None,
    }
}

/// How a withdrawal is entered that may be planned for later: then it is begun now. One that is begun or done
/// is not begun again. In SQL.
pub(super) const SOONER: &str = "on conflict (attempt_id) do update
    set since_ms = excluded.since_ms, due_at_ms = excluded.due_at_ms
    where withdrawals.due_at_ms is not null and withdrawals.since_ms > excluded.since_ms";

pub(super) const ATTEMPT_COLUMNS: &str = "id, application_id, reference_number, method, rail, \
     state, reason, rail_id, phone_masked, phone_sealed, entity, bank_reference, code, link, \
     created_at_ms, deadline_at_ms, due_at_ms, polls";

/// An attempt by its columns; none where a join found none.
pub(super) fn attempt(cells: &mut Cells) -> Result<Option<PaymentAttempt>> {
    let Some(id) = cells.maybe_text()? else { return Ok(None) };
    let corrupt = || StoreError::Corrupt(format!("attempt {id}"));
    let application = ApplicationId(cells.integer()?);
    let reference_number = read_reference(&cells.text()?)?;
    let method = PaymentMethod::from_code(&cells.text()?).ok_or_else(corrupt)?;
    Ok(Some(PaymentAttempt {
        id: read_attempt_id(&id)?,
        application,
        reference_number,
        rail: cells.text()?,
        state: AttemptState::from_text(&cells.text()?).ok_or_else(corrupt)?,
        reason: cells.maybe_text()?.as_deref().map(Reason::from_text),
        rail_id: cells.maybe_text()?,
        instrument: instrument(method, cells)?.ok_or_else(corrupt)?,
        created_at: cells.time()?,
        deadline: cells.time()?,
        due_at: cells.maybe_time()?,
        polls: u32::try_from(cells.integer()?).map_err(|_| corrupt())?,
    }))
}

/// None if the columns are not of this method.
fn instrument(method: PaymentMethod, cells: &mut Cells) -> Result<Option<Instrument>> {
    let phone = (cells.maybe_text()?, cells.maybe_bytes()?);
    let bank = (cells.maybe_text()?, cells.maybe_text()?);
    let code = (cells.maybe_text()?, cells.maybe_text()?);
    Ok(match (method, phone, bank, code) {
        (PaymentMethod::ExpressWallet, (Some(phone_masked), Some(phone_sealed)), ..) => {
            Some(Instrument::Push { phone_masked, phone_sealed })
        }
        (PaymentMethod::ExpressWallet, ..) => None,
        (PaymentMethod::BankReference, _, (Some(entity), Some(number)), _) => {
            BankReference::parse(&entity, &number)
                .ok()
                .map(|bank| Instrument::Reference(Some(bank)))
        }
        (PaymentMethod::BankReference, ..) => Some(Instrument::Reference(None)),
        (PaymentMethod::Direct, .., (code, link)) => {
            Some(Instrument::Code(code.zip(link).map(|(code, link)| WalletCode { code, link })))
        }
    })
}

/// An instrument as the columns of an attempt hold it.
#[derive(Default)]
pub(super) struct InstrumentColumns<'a> {
    pub phone_masked: Option<&'a str>,
    pub phone_sealed: Option<&'a [u8]>,
    pub entity: Option<&'a str>,
    pub bank_reference: Option<&'a str>,
    pub code: Option<&'a str>,
    pub link: Option<&'a str>,
}

impl<'a> InstrumentColumns<'a> {
    pub(super) fn of(instrument: &'a Instrument) -> Self {
        match instrument {
            Instrument::Push { phone_masked, phone_sealed } => Self {
                phone_masked: Some(phone_masked),
                phone_sealed: Some(phone_sealed),
                ..Self::default()
            },
            Instrument::Reference(reference) => Self {
                entity: reference.as_ref().map(BankReference::entity),
                bank_reference: reference.as_ref().map(BankReference::number),
                ..Self::default()
            },
            Instrument::Code(code) => Self {
                code: code.as_ref().map(|code| code.code.as_str()),
                link: code.as_ref().map(|code| code.link.as_str()),
                ..Self::default()
            },
        }
    }
}

/// The columns of an order that only paying needs, beside `ORDER_COLUMNS`.
pub(super) const DOSSIER_COLUMNS: &str = "cancel_requested, closing_at_ms, settled_at_ms";

/// An order by all these columns; its attempts are rows of their own.
pub(super) fn dossier(cells: &mut Cells) -> Result<Dossier> {
    let order = order(cells)?;
    let reason = |text: String| {
        CancelReason::from_text(&text).ok_or_else(|| StoreError::Corrupt(format!("reason {text}")))
    };
    Ok(Dossier {
        order,
        cancel_requested: cells.maybe_text()?.map(reason).transpose()?,
        closing_since: cells.maybe_time()?,
        settled_at: cells.maybe_time()?,
        attempts: Vec::new(),
    })
}

pub(super) fn read_attempt_id(text: &str) -> Result<AttemptId> {
    AttemptId::parse(text).ok_or_else(|| StoreError::Corrupt(format!("attempt {text}")))
}
