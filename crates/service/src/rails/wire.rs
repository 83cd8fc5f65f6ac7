//! The contract on the wire, for connectors that are processes of their own (docs/rails.md).
//!
//! Both directions are signed as Standard Webhooks are, with a secret of the connector's own.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::header::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Accepted, Answer, Capabilities, Given, How, MethodTerms, Outcome, Start};
use crate::domain::{
    About, AttemptId, BankReference, Centimos, Kwanza, Notice, PaymentMethod, Reason, WalletCode,
    Word, sign_standard,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartRequest<'a> {
    attempt_id: &'a str,
    amount: i64,
    currency: &'static str,
    label: &'a str,
    deadline: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<String>,
    /// Kept for this attempt, should the rail let us choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
}

impl<'a> StartRequest<'a> {
    pub(super) fn of(start: &'a Start) -> (&'static str, Self) {
        let (path, phone, reference) = match &start.how {
            How::Push(phone) => ("start-push", Some(phone.e164()), None),
            How::Reference(kept) => ("issue-reference", None, Some(kept.number())),
            How::Code => ("start-code", None, None),
        };
        let request = Self {
            attempt_id: start.attempt.as_str(),
            amount: start.amount.get(),
            currency: CURRENCY,
            label: &start.label,
            deadline: start.deadline.to_string(),
            phone,
            reference,
        };
        (path, request)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttemptRequest<'a> {
    pub attempt_id: &'a str,
    pub rail_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckRequest<'a> {
    pub rail_payment_id: &'a str,
    /// A payment and its reversal may have one id.
    pub kind: &'a str,
}

#[derive(Serialize)]
pub(super) struct StatementRequest {
    pub date: String,
}

#[derive(Serialize)]
pub(super) struct DrainRequest {
    pub limit: usize,
}

#[derive(Serialize)]
pub(super) struct NoRequest {}

/// `accepted`, `refused` or `unknown`; whatever else is unknown too.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnswerReply {
    answer: String,
    rail_id: Option<String>,
    reason: Option<String>,
    entity: Option<String>,
    reference: Option<String>,
    code: Option<String>,
    link: Option<String>,
    deadline: Option<String>,
    rail_payment_id: Option<String>,
    amount: Option<Box<RawValue>>,
    currency: Option<String>,
}

impl AnswerReply {
    fn reason(&self) -> Reason {
        Reason::from_text(self.reason.as_deref().unwrap_or("other"))
    }

    /// What it gives must be what was asked for, else nobody knows what the rail did.
    pub(super) fn answer(self, how: &How) -> Answer {
        match self.answer.as_str() {
            "refused" => Answer::Refused(self.reason()),
            "accepted" => self.accepted(how).map_or(Answer::Unknown, Answer::Accepted),
            _ => Answer::Unknown,
        }
    }

    fn accepted(self, how: &How) -> Option<Accepted> {
        let given = match how {
            How::Push(_) => Given::Push,
            // Only the rail knows its entity: without it nobody could pay.
            How::Reference(kept) => Given::Reference(
                BankReference::parse(
                    self.entity.as_deref()?,
                    self.reference.as_deref().unwrap_or(kept.number()),
                )
                .ok()?,
            ),
            How::Code => Given::Code(WalletCode {
                code: readable(self.code?, CODE_BYTES_MAX)?,
                link: readable(self.link?, LINK_BYTES_MAX).filter(|link| opens_a_wallet(link))?,
            }),
        };
        let deadline = match self.deadline {
            Some(text) => Some(text.parse::<Timestamp>().ok()?),
            None => None,
        };
        let rail_id = readable(self.rail_id?, ID_BYTES_MAX)?;
        Some(Accepted { rail_id, given, deadline, forecast: Vec::new() })
    }

    pub(super) fn outcome(self) -> Outcome {
        match self.answer.as_str() {
            "refused" => Outcome::Refused(self.reason()),
            "accepted" => {
                let id = self.rail_payment_id.and_then(|id| readable(id, ID_BYTES_MAX));
                match (id, amount(self.amount.as_deref(), self.currency.as_deref())) {
                    (Some(rail_payment_id), Some(amount)) => {
                        Outcome::Paid { rail_payment_id, amount }
                    }
                    _ => Outcome::Unknown,
                }
            }
            _ => Outcome::Unknown,
        }
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.answer == "accepted"
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CapabilitiesReply {
    methods: Vec<MethodReply>,
    #[serde(default)]
    can_revoke: bool,
    #[serde(default)]
    can_query: bool,
    #[serde(default)]
    has_queue: bool,
}

#[derive(Deserialize)]
struct MethodReply {
    code: String,
    min: Option<i64>,
    max: Option<i64>,
}

impl CapabilitiesReply {
    /// Methods we do not know are not offered.
    pub(super) fn read(self) -> Capabilities {
        let terms = |reply: MethodReply| {
            let method = PaymentMethod::from_code(&reply.code)?;
            let (min, max) = (reply.min.unwrap_or(1), reply.max.unwrap_or(Kwanza::MAX));
            Some(MethodTerms { method, min, max })
        };
        Capabilities {
            methods: self.methods.into_iter().filter_map(terms).collect(),
            can_revoke: self.can_revoke,
            can_query: self.can_query,
            has_queue: self.has_queue,
        }
    }
}

/// What a connector sends us, or keeps in its queue.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NoticeBody {
    rail_payment_id: String,
    attempt_id: Option<String>,
    entity: Option<String>,
    reference: Option<String>,
    kind: String,
    amount: Option<Box<RawValue>>,
    currency: Option<String>,
    reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct DrainReply {
    payments: Vec<Box<RawValue>>,
}

impl DrainReply {
    /// What cannot be read stays in the queue, and is told each time.
    pub(super) fn read(self, rail: &str) -> Listing {
        let listing = Listing::read(rail, self.payments);
        if !listing.unread.is_empty() {
            let unread = listing.unread.len();
            tracing::error!(rail, unread, "payments in the queue of a rail cannot be read");
        }
        listing
    }
}

/// What a rail says of several payments at once.
#[derive(Debug, Default)]
pub struct Listing {
    pub notices: Vec<Notice>,
    /// Lines that say nothing we understand, as they came.
    pub unread: Vec<String>,
}

impl Listing {
    fn read(rail: &str, lines: Vec<Box<RawValue>>) -> Self {
        let mut read = Self::default();
        for line in lines {
            match notice(rail, line.get().as_bytes()) {
                Some(notice) => read.notices.push(notice),
                None => read.unread.push(line.get().to_owned()),
            }
        }
        read
    }

    /// The ids of what was not understood, where it has one.
    pub fn unread_ids(&self) -> impl Iterator<Item = String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Id {
            rail_payment_id: String,
        }
        let id = |line: &String| serde_json::from_str(line).ok().map(|id: Id| id.rail_payment_id);
        self.unread.iter().filter_map(id)
    }
}

/// Its lines are what notices are.
#[derive(Deserialize)]
pub(super) struct StatementReply {
    lines: Vec<Box<RawValue>>,
}

impl StatementReply {
    pub(super) fn read(self, rail: &str) -> Listing {
        Listing::read(rail, self.lines)
    }
}

/// Of everything that is paid here.
const CURRENCY: &str = "AOA";
const ID_BYTES_MAX: usize = 128;
const CODE_BYTES_MAX: usize = 256;
const LINK_BYTES_MAX: usize = 2_048;

/// What a rail writes is kept by both engines, and shown to people.
fn readable(text: String, bytes_max: usize) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= bytes_max;
    (fits && !text.chars().any(char::is_control)).then_some(text)
}

/// An address of the web or of an app, and nothing that runs in our page.
fn opens_a_wallet(link: &str) -> bool {
    const RUN_HERE: [&str; 4] = ["javascript", "data", "vbscript", "blob"];
    url::Url::parse(link).is_ok_and(|link| !RUN_HERE.contains(&link.scheme()))
}

/// A notice from its bytes, which are kept.
pub(super) fn notice(rail: &str, raw: &[u8]) -> Option<Notice> {
    let body: NoticeBody = serde_json::from_slice(raw).ok()?;
    let id = readable(body.rail_payment_id, ID_BYTES_MAX)?;
    // As programs write it whose fields are always there.
    let attempt = body.attempt_id.filter(|id| !id.is_empty());
    let about = match (&attempt, &body.entity, &body.reference) {
        (Some(attempt), _, _) => About::Attempt(AttemptId::parse(attempt)?),
        (None, Some(entity), Some(number)) => {
            About::Reference(BankReference::parse(entity, number).ok()?)
        }
        _ => return None,
    };
    let amount = || amount(body.amount.as_deref(), body.currency.as_deref());
    let word = Word::read(&body.kind, amount, body.reason.as_deref())?;
    Some(Notice { rail: rail.to_owned(), rail_payment_id: id, about, word, raw: raw.to_vec() })
}

/// Rails send amounts as texts and as numbers; both are read digit by digit. Other money is not ours to count.
fn amount(written: Option<&RawValue>, currency: Option<&str>) -> Option<Centimos> {
    if currency.is_some_and(|currency| currency != CURRENCY) {
        return None;
    }
    Centimos::parse(written?.get().trim_matches('"'))
}

/// The three headers of a signed message.
pub struct Signature<'a> {
    id: &'a str,
    timestamp: &'a str,
    signature: &'a str,
}

impl<'a> Signature<'a> {
    pub fn of(headers: &'a HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        Some(Self {
            id: text("webhook-id")?,
            timestamp: text("webhook-timestamp")?,
            signature: text("webhook-signature")?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature is missing or wrong")]
pub struct NotAuthentic;

/// Whether others cannot guess it: as the standard has it, 24 bytes at least.
pub(super) fn is_secret(secret: &SecretString) -> bool {
    const BYTES_MIN: usize = 24;
    let wrapped = secret.expose_secret().strip_prefix("whsec_");
    let bytes = wrapped.and_then(|text| STANDARD.decode(text).ok());
    bytes.is_some_and(|bytes| bytes.len() >= BYTES_MIN)
}

/// With each of the secrets; whoever knows one of them finds its signature.
pub(super) fn sign(
    secrets: &[SecretString],
    id: &str,
    at: Timestamp,
    body: &[u8],
) -> Option<String> {
    let one = |secret: &SecretString| sign_standard(secret.expose_secret(), id, at, body);
    Some(secrets.iter().map(one).collect::<Option<Vec<_>>>()?.join(" "))
}

/// A repeated message is authentic too: it is told apart by the payment's id, not by its age.
pub(super) fn verify(
    secrets: &[SecretString],
    given: &Signature<'_>,
    body: &[u8],
) -> Result<(), NotAuthentic> {
    let at = given.timestamp.parse().ok().and_then(|s| Timestamp::from_second(s).ok());
    let expected = at.and_then(|at| sign(secrets, given.id, at, body)).ok_or(NotAuthentic)?;
    let is_right = |one: &str| {
        expected.split(' ').any(|right| {
            aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), right.as_bytes())
                .is_ok()
        })
    };
    if given.signature.split(' ').any(is_right) { Ok(()) } else { Err(NotAuthentic) }
}
