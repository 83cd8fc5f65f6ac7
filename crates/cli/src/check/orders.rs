//! Orders the merchant knows: where they come from, and what state they are in afterwards.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;

use super::Args;
use super::case::State;
use super::delivery::stranger;
use crate::http::{Exchange, Http};

/// How many a handler without a fault uses up.
pub(super) const ORDERS_NEEDED: usize = 6;
const PLACEHOLDER: &str = "{externalTransactionId}";
const TIMEOUT: Duration = Duration::from_secs(12);
/// A handler that queues its work gets so long to do it.
const SETTLING: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);
const NO_STATE: &str =
    "the status URL tells no PEN, CON or CAN; name the field that does with --status-field";
/// Where a state is looked for when no field is named.
const STATE_FIELDS: [&str; 6] = [
    "status",
    "paymentStatus",
    "data.status",
    "data.paymentStatus",
    "order.status",
    "order.paymentStatus",
];

#[derive(Clone, Debug)]
pub(super) struct Order {
    pub id: String,
    pub reference: String,
    pub amount: i64,
}

/// What the merchant says about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub state: State,
    /// How often it was fulfilled, if that is told.
    pub count: Option<u64>,
}

enum Source {
    Create {
        url: String,
        body: String,
    },
    Given(VecDeque<String>),
    /// Nobody knows them, and nobody is asked about them.
    MadeUp,
}

pub(super) struct Orders {
    http: Http,
    source: Source,
    status_url: Option<String>,
    status_field: Option<String>,
    count_field: String,
    amount: i64,
    /// Still pending, for the cases that must change nothing.
    pending: Option<Order>,
}

impl Orders {
    pub(super) fn new(args: &Args, http: Http) -> anyhow::Result<Self> {
        if args.status_url.as_ref().is_some_and(|url| !url.contains(PLACEHOLDER)) {
            bail!("--status-url needs {PLACEHOLDER} where the order's id goes");
        }
        let source = match (&args.create_url, args.orders.is_empty()) {
            (Some(url), _) => {
                Source::Create { url: url.to_string(), body: args.create_body.clone() }
            }
            (None, false) => Source::Given(args.orders.iter().cloned().collect()),
            (None, true) if args.status_url.is_some() => bail!(
                "with --status-url, say which orders: --create-url URL, or --order ID {ORDERS_NEEDED} times"
            ),
            (None, true) => Source::MadeUp,
        };
        if (1..ORDERS_NEEDED).contains(&args.orders.len()) {
            bail!("a check uses up {ORDERS_NEEDED} pending orders: give --order that many times");
        }
        Ok(Self {
            http,
            source,
            status_url: args.status_url.clone(),
            status_field: args.status_field.clone(),
            count_field: args.count_field.clone(),
            amount: args.amount,
            pending: None,
        })
    }

    /// Whether effects can be seen at all.
    pub(super) fn are_watched(&self) -> bool {
        self.status_url.is_some()
    }

    /// One that nothing was done to yet; `None` when those that were given are used up.
    pub(super) async fn fresh(&mut self) -> anyhow::Result<Option<Order>> {
        let mut order = match &mut self.source {
            Source::MadeUp => return Ok(Some(stranger(self.amount))),
            Source::Given(ids) => match ids.pop_front() {
                Some(id) => Order { id, ..stranger(self.amount) },
                None => return Ok(None),
            },
            Source::Create { url, body } => {
                let mut headers = HeaderMap::new();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let body = body.clone().into_bytes();
                let told = self.http.send(Method::POST, url, headers, body, TIMEOUT).await;
                created(&read(told, url)?, self.amount)?
            }
        };
        let Some(document) = self.document(&order.id).await? else { return Ok(Some(order)) };
        let standing = self.standing_in(&document)?;
        if standing.state == State::Other {
            bail!(NO_STATE);
        }
        if standing.state != State::Pending {
            bail!("order {} is {} already; give pending ones", order.id, standing.state.code());
        }
        order.amount = number(&document, &["amount", "data.amount"]).unwrap_or(order.amount);
        if let Some(reference) = text(&document, &["referenceNumber", "data.referenceNumber"]) {
            order.reference = reference.to_owned();
        }
        Ok(Some(order))
    }

    /// One that is still pending, the same as long as nothing has changed it.
    pub(super) async fn pending(&mut self) -> anyhow::Result<Option<Order>> {
        if self.pending.is_none() {
            self.pending = self.fresh().await?;
        }
        Ok(self.pending.clone())
    }

    /// The pending one was changed by something that should not have.
    pub(super) fn spoilt(&mut self) {
        self.pending = None;
    }

    /// What the merchant says of the order now.
    pub(super) async fn standing(&self, id: &str) -> anyhow::Result<Option<Standing>> {
        self.document(id).await?.map(|document| self.standing_in(&document)).transpose()
    }

    /// The same, but a change that is wanted is waited for a little.
    pub(super) async fn settled(
        &self,
        id: &str,
        wanted: State,
    ) -> anyhow::Result<Option<Standing>> {
        let deadline = tokio::time::Instant::now() + SETTLING;
        loop {
            let standing = self.standing(id).await?;
            let arrived = standing.is_none_or(|standing| standing.state == wanted);
            if arrived || tokio::time::Instant::now() > deadline {
                return Ok(standing);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whether the merchant knows this id at all.
    pub(super) async fn is_known(&self, id: &str) -> Option<bool> {
        let answer = self.http.get(&self.status_url_of(id)?, TIMEOUT).await.answer.ok()?;
        Some((200..300).contains(&answer.status))
    }

    async fn document(&self, id: &str) -> anyhow::Result<Option<Value>> {
        let Some(url) = self.status_url_of(id) else { return Ok(None) };
        let told = self.http.get(&url, TIMEOUT).await;
        read(told, &url).map(Some)
    }

    fn status_url_of(&self, id: &str) -> Option<String> {
        let escaped: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        Some(self.status_url.as_ref()?.replace(PLACEHOLDER, &escaped))
    }

    fn standing_in(&self, document: &Value) -> anyhow::Result<Standing> {
        let found = match &self.status_field {
            Some(field) => at(document, field).and_then(Value::as_str),
            None => text(document, &STATE_FIELDS),
        };
        let state = State::read(found.context(NO_STATE)?);
        let count = at(document, &self.count_field).and_then(|value| match value {
            Value::Array(items) => Some(items.len() as u64),
            other => other.as_u64(),
        });
        Ok(Standing { state, count })
    }
}

/// The order of a create-order answer.
fn created(document: &Value, amount: i64) -> anyhow::Result<Order> {
    let id = text(document, &["externalTransactionId", "data.externalTransactionId", "orderId"]);
    let id = id.context(
        "the create URL tells no externalTransactionId; create six orders and give them with --order",
    )?;
    let reference = text(document, &["referenceNumber", "data.referenceNumber"]);
    let mut order = Order { id: id.to_owned(), ..stranger(amount) };
    if let Some(reference) = reference {
        order.reference = reference.to_owned();
    }
    Ok(order)
}

/// The JSON of a 2xx. Anything else means that the merchant cannot be checked now.
fn read(told: Exchange, url: &str) -> anyhow::Result<Value> {
    let answer = told.answer.with_context(|| format!("{url} cannot be asked"))?;
    if !(200..300).contains(&answer.status) {
        let start: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
        bail!(
            "{url} answered {}: {start}\nis it the right address? (A --create-url must take the --create-body.)",
            answer.status
        );
    }
    serde_json::from_slice(&answer.body).with_context(|| format!("{url} did not answer JSON"))
}

fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(document, |value, key| value.get(key))
}

fn text<'a>(document: &'a Value, paths: &[&str]) -> Option<&'a str> {
    paths.iter().find_map(|path| at(document, path)?.as_str())
}

fn number(document: &Value, paths: &[&str]) -> Option<i64> {
    paths.iter().find_map(|path| at(document, path)?.as_i64())
}
