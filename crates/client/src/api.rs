//! The calls of a merchant's backend (spec 4.1–4.3), and any other of the service for whoever has a token.

use std::sync::Arc;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::Method;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::error::Error;
use crate::http::{Call, Http};
use crate::token::{Fetched, TokenCache};

/// What the service gave you. The secret belongs on a server, never in a page.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub publishable_key: String,
    pub client_id: String,
    pub client_secret: SecretString,
}

/// A connection to the service. Cheap to clone; clones share the token.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    language: &'static str,
}

struct Shared {
    base_url: String,
    application_uuid: String,
    basic: SecretString,
    http: Http,
    token: TokenCache,
}

/// What is to be paid, and where the payer and the news go.
#[derive(Clone, Debug)]
pub struct NewOrder {
    /// Your id of the order and the idempotency key: `order_` and a UUID, say.
    pub external_transaction_id: String,
    /// A stable id of the payer in your system.
    pub client_id: String,
    pub name: String,
    /// Whole kwanza.
    pub amount: i64,
    pub quantity: i64,
    pub urls: Urls,
}

#[derive(Clone, Debug)]
pub struct Urls {
    pub return_url: String,
    pub cancel_url: String,
    pub webhook_url: String,
}

/// An order as the service reports it (spec 2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub external_transaction_id: String,
    pub status: PaymentStatus,
    pub reference_number: String,
    pub amount: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaymentStatus {
    Pending,
    Confirmed,
    Cancelled,
}

impl PaymentStatus {
    pub fn code(self) -> &'static str {
        match self {
            Self::Pending => "PEN",
            Self::Confirmed => "CON",
            Self::Cancelled => "CAN",
        }
    }

    pub fn from_code(code: &str) -> Option<Self> {
        match code {
            "PEN" => Some(Self::Pending),
            "CON" => Some(Self::Confirmed),
            "CAN" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// The publishable key without its prefix (spec 2.1).
///
/// ```
/// assert_eq!(svc_client::application_uuid("pk_test_0b6f"), Some("0b6f"));
/// assert_eq!(svc_client::application_uuid("sk_test_0b6f"), None);
/// ```
pub fn application_uuid(publishable_key: &str) -> Option<&str> {
    publishable_key.strip_prefix("pk_test_").or_else(|| publishable_key.strip_prefix("pk_live_"))
}

/// Tries of one call; each is safe to repeat.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// What is asked for; the service may give less, and says so.
const TOKEN_SECONDS: u64 = 3_600;

impl Client {
    pub fn new(base_url: &str, credentials: Credentials) -> Result<Self, Error> {
        Self::with_timeout(base_url, credentials, None)
    }

    /// With another limit than twelve seconds for one exchange.
    pub fn with_timeout(
        base_url: &str,
        credentials: Credentials,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let Credentials { publishable_key, client_id, client_secret } = credentials;
        let uuid = application_uuid(&publishable_key).ok_or_else(|| {
            Error::Settings("the publishable key begins with pk_test_ or pk_live_".into())
        })?;
        let url = url::Url::parse(base_url).ok().filter(|url| url.scheme().starts_with("http"));
        let url = url.ok_or_else(|| {
            let like = "the address of the service is like http://127.0.0.1:8080";
            Error::Settings(format!("{like}, not {base_url:?}"))
        })?;
        if publishable_key.starts_with("pk_live_") && url.scheme() != "https" {
            let why = "a live key goes with an https address only: credentials are sent there";
            return Err(Error::Settings(format!("{why}, not to {base_url:?}")));
        }
        let pair = format!("{client_id}:{}", client_secret.expose_secret());
        let http = Http::new(&url)?;
        let shared = Shared {
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            application_uuid: uuid.to_owned(),
            basic: format!("Basic {}", STANDARD.encode(pair)).into(),
            http: match timeout {
                Some(timeout) => http.with_timeout(timeout),
                None => http,
            },
            token: TokenCache::default(),
        };
        Ok(Self { shared: Arc::new(shared), language: "pt" })
    }

    /// The same service, with messages in `pt` (the default), `en` or `fr`.
    pub fn speaking(&self, language: &'static str) -> Self {
        Self { language, ..self.clone() }
    }

    pub fn application_uuid(&self) -> &str {
        &self.shared.application_uuid
    }

    /// Creates an order, or finds the one that has this id with the same content. Its reference is all that
    /// the contract promises of the answer.
    pub async fn create_payment_order(&self, order: &NewOrder) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            reference_number: String,
        }
        let Urls { return_url, cancel_url, webhook_url } = &order.urls;
        let info = json!({
            "returnUrl": return_url, "cancelUrl": cancel_url, "webhookUrl": webhook_url,
        });
        let body = json!({
            "externalTransactionId": order.external_transaction_id,
            "clientId": order.client_id,
            "applicationUUID": self.shared.application_uuid,
            "name": order.name,
            "amount": order.amount,
            "quantity": order.quantity,
            "additionalInfo": info.to_string(),
        });
        let target = "/svcpartner/createPaymentOrder";
        let created: Created = self.call(Method::POST, target, Some(&body)).await?;
        reference(created.reference_number).map_err(|why| self.shared.http.malformed(why))
    }

    /// The state of an order: for when a webhook is late (spec 1).
    pub async fn payment_by_external_transaction(&self, id: &str) -> Result<Order, Error> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("externalTransactionId", id)
            .append_pair("applicationUUID", &self.shared.application_uuid)
            .finish();
        let target = format!("/svcpartner/paymentByExternalTransaction?{query}");
        let reply = self.call(Method::GET, &target, None).await?;
        read_order(reply).map_err(|why| self.shared.http.malformed(why))
    }

    /// Any call of this API: the `data` of its answer. A dead token is replaced once, a passing
    /// failure is tried again.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let mut tries = 1;
        let mut replaced = false;
        loop {
            let bearer = self.bearer().await;
            let outcome = match &bearer {
                Ok(bearer) => self.once(&method, target, body, bearer).await,
                Err(fault) => Err(fault.clone()),
            };
            match (outcome, bearer) {
                // Of the call, not of /token: there it means that the credentials are wrong.
                (Err(Error::Refused { status: 401, .. }), Ok(bearer)) if !replaced => {
                    replaced = true;
                    self.shared.token.forget(&bearer).await;
                }
                // Who is asked to stay away for longer leaves it to the caller when to come back.
                (Err(fault), _)
                    if fault.is_passing() && tries < TRIES && fault.retry_after() <= PAUSE_MAX =>
                {
                    tokio::time::sleep(fault.retry_after().max(PAUSE * tries)).await;
                    tries += 1;
                }
                (told, _) => return told,
            }
        }
    }

    async fn once<T: DeserializeOwned>(
        &self,
        method: &Method,
        target: &str,
        body: Option<&Value>,
        bearer: &str,
    ) -> Result<T, Error> {
        #[derive(Deserialize)]
        struct Envelope<T> {
            data: Option<T>,
        }
        let bytes = self
            .shared
            .http
            .send(Call {
                method: method.clone(),
                url: format!("{}{target}", self.shared.base_url),
                authorization: bearer,
                content_type: "application/json",
                language: self.language,
                body: body.map(Value::to_string).unwrap_or_default(),
            })
            .await?;
        let malformed = |why: &dyn std::fmt::Display| self.shared.http.malformed(why);
        let envelope: Envelope<T> =
            serde_json::from_slice(&bytes).map_err(|fault| malformed(&fault))?;
        envelope.data.ok_or_else(|| malformed(&"the envelope has no data"))
    }

    async fn bearer(&self) -> Result<Arc<str>, Error> {
        self.shared.token.bearer(|| self.fetch_token()).await
    }

    async fn fetch_token(&self) -> Result<Fetched, Error> {
        #[derive(Deserialize)]
        struct TokenReply {
            access_token: String,
            /// Not in the contract; where it says no number, the time asked for is taken.
            expires_in: Option<serde_json::Value>,
        }
        let bytes = self
            .shared
            .http
            .send(Call {
                method: Method::POST,
                url: format!("{}/token", self.shared.base_url),
                authorization: self.shared.basic.expose_secret(),
                content_type: "application/x-www-form-urlencoded",
                language: self.language,
                body: format!("grant_type=client_credentials&validity_period={TOKEN_SECONDS}"),
            })
            .await
            .map_err(|fault| match fault {
                // Where there is no /token there is another program, however alike its words.
                Error::Refused { status: status @ (404 | 405), retry_after, .. } => {
                    self.shared.http.foreign(status, retry_after)
                }
                fault => fault,
            })?;
        let malformed = |why: &dyn std::fmt::Display| self.shared.http.malformed(why);
        let reply: TokenReply =
            serde_json::from_slice(&bytes).map_err(|fault| malformed(&fault))?;
        // It becomes part of a header.
        if reply.access_token.is_empty()
            || !reply.access_token.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err(malformed(&"the token is not one"));
        }
        let seconds = reply.expires_in.and_then(|told| match told {
            serde_json::Value::String(digits) => digits.parse().ok(),
            number => number.as_u64(),
        });
        let seconds = seconds.unwrap_or(TOKEN_SECONDS);
        Ok(Fetched { access_token: reply.access_token, expires_in: Duration::from_secs(seconds) })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderReply {
    external_transaction_id: String,
    payment_status: String,
    reference_number: String,
    amount: i64,
}

fn read_order(reply: OrderReply) -> Result<Order, String> {
    let status = PaymentStatus::from_code(&reply.payment_status)
        .ok_or_else(|| format!("status {}", reply.payment_status))?;
    Ok(Order {
        external_transaction_id: reply.external_transaction_id,
        status,
        reference_number: reference(reply.reference_number)?,
        amount: reply.amount,
    })
}

fn reference(given: String) -> Result<String, &'static str> {
    match given.is_empty() {
        true => Err("the reference is empty"),
        false => Ok(given),
    }
}
