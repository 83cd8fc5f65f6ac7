//! A rail that is a process of its own, spoken to over signed HTTP.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use url::Url;

use super::wire::{
    AckRequest, AnswerReply, AttemptRequest, CapabilitiesReply, DrainReply, DrainRequest, Listing,
    NoRequest, NotAuthentic, Signature, StartRequest, StatementReply, StatementRequest, is_secret,
    notice, sign, verify,
};
use super::{Answer, Capabilities, Line, Outcome, Start};
use crate::config::RailConfig;
use crate::domain::{Instrument, Notice, PaymentAttempt};
use crate::tls;

/// A rail may hold a call while the payer decides; ours does not wait for that, only for the rail
/// to take note.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shorter than most servers wait: a call on a connection that is just closed would be one nobody knows the end of.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A day of some 300,000 payments.
const LISTING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Payments that a queue is asked for at once; the others come the next time.
const DRAINED_MAX: usize = 10_000;
/// Questions one connector is asked at once. One that hangs keeps this many tasks, not thousands.
const QUESTIONS_MAX: usize = 32;
/// Until whoever found all lines busy looks again: the more did so, the later, or thousands that wait for a
/// rail that hangs would leave no time for anything else.
const TURN: SignedDuration = SignedDuration::from_secs(2);
const TURN_MAX: SignedDuration = SignedDuration::from_mins(5);
/// So many questions in a row that get no answer are no absence.
const LOST_MAX: u32 = 1;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConnectorError {
    #[error("the secret of rail {0} must be whsec_ and base64, as \"svc keygen --rail\" prints it")]
    Secret(String),
    #[error(
        "the other secret of rail {0} must be whsec_ and base64; take it out, or give the right one"
    )]
    OtherSecret(String),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the connector did not answer: {0}")]
    Silent(String),
    #[error("the connector answered something else than it should: {0}")]
    Strange(String),
    /// It hears us, and does not take this one.
    #[error("the connector refuses it: status {0}")]
    Refused(u16),
}

/// Since when it has answered what it can do. One question that is lost is no absence: it says again what was
/// not heard, and where one in ten is lost no order would end.
#[derive(Default)]
struct Heard {
    since: Option<Timestamp>,
    in_vain: u32,
}

impl Heard {
    fn asked(&mut self, has_answered: bool, now: Timestamp) {
        if has_answered {
            self.since.get_or_insert(now);
            self.in_vain = 0;
            return;
        }
        self.in_vain = self.in_vain.saturating_add(1);
        if self.in_vain > LOST_MAX {
            self.since = None;
        }
    }
}

pub struct Connector {
    name: String,
    url: Url,
    /// One, or two while one takes over from the other: calls are signed with both, notices with either.
    secrets: Vec<SecretString>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    capabilities: RwLock<Option<Arc<Capabilities>>>,
    heard: Mutex<Heard>,
    /// No call of another node, or of an earlier life, has the same id.
    run: String,
    calls: AtomicU64,
    questions: Arc<Semaphore>,
    /// Questions that were not asked since a line was last free.
    turned_away: AtomicU32,
}

impl Connector {
    /// `run` is of this node's present life.
    pub(super) fn new(config: &RailConfig, run: &str) -> Result<Self, ConnectorError> {
        let secrets: Vec<_> =
            std::iter::once(&config.secret).chain(&config.other_secret).cloned().collect();
        if !is_secret(&config.secret) {
            return Err(ConnectorError::Secret(config.name.clone()));
        }
        if !config.other_secret.iter().all(is_secret) {
            return Err(ConnectorError::OtherSecret(config.name.clone()));
        }
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client(tls::trust_store())?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(connector);
        Ok(Self {
            name: config.name.clone(),
            url: config.url.clone(),
            secrets,
            client,
            capabilities: RwLock::new(None),
            heard: Mutex::default(),
            run: run.to_owned(),
            calls: AtomicU64::new(0),
            questions: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            turned_away: AtomicU32::new(0),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn capabilities(&self) -> Option<Arc<Capabilities>> {
        self.capabilities.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn line(&self) -> Line {
        match Arc::clone(&self.questions).try_acquire_owned() {
            Ok(held) => {
                self.turned_away.store(0, Ordering::Relaxed);
                Line::Slow(held)
            }
            Err(_) => self.busy(),
        }
    }

    pub(super) fn spare_line(&self) -> Line {
        if self.questions.available_permits() <= QUESTIONS_MAX / 2 {
            return self.busy();
        }
        self.line()
    }

    fn busy(&self) -> Line {
        let before = self.turned_away.fetch_add(1, Ordering::Relaxed);
        let turns = i32::try_from(before as usize / QUESTIONS_MAX).unwrap_or(i32::MAX);
        Line::Busy(TURN.saturating_mul(turns.saturating_add(1)).min(TURN_MAX))
    }

    /// Asks what the rail can do; what was known stays until it answers.
    pub async fn refresh(&self, now: Timestamp) -> Result<(), ConnectorError> {
        let answered = self.call::<_, CapabilitiesReply>("capabilities", &NoRequest {}).await;
        self.heard().asked(answered.is_ok(), now);
        let known = Some(Arc::new(answered?.read()));
        *self.capabilities.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    pub(super) fn heard_since(&self) -> Option<Timestamp> {
        self.heard().since
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No answer, or one that makes no sense, is `Unknown`: the rail may have done it.
    pub(super) async fn start(&self, start: &Start) -> Answer {
        let (path, request) = StartRequest::of(start);
        match self.call::<_, AnswerReply>(path, &request).await {
            Ok(reply) => {
                let answer = reply.answer(&start.how);
                if let Answer::Unknown = answer {
                    tracing::warn!(rail = self.name, path, "a rail's answer says nothing");
                }
                answer
            }
            Err(fault) => {
                tracing::warn!(rail = self.name, %fault, "an attempt may or may not have started");
                Answer::Unknown
            }
        }
    }

    pub(super) async fn query(&self, attempt: &PaymentAttempt) -> Outcome {
        let asked = self.call::<_, AnswerReply>("query", &about(attempt)).await;
        asked.map_or(Outcome::Unknown, AnswerReply::outcome)
    }

    pub(super) async fn revoke(&self, attempt: &PaymentAttempt) -> bool {
        let asked = self.call::<_, AnswerReply>("revoke-reference", &about(attempt)).await;
        asked.is_ok_and(|reply| reply.is_accepted())
    }

    pub async fn drain(&self) -> Result<Listing, ConnectorError> {
        let asked = DrainRequest { limit: DRAINED_MAX };
        let reply: DrainReply = self.call_up_to(LISTING_BYTES_MAX, "drain", &asked).await?;
        Ok(reply.read(&self.name))
    }

    pub async fn ack(&self, rail_payment_id: &str, kind: &str) -> Result<(), ConnectorError> {
        let _: AnswerReply = self.call("ack", &AckRequest { rail_payment_id, kind }).await?;
        Ok(())
    }

    pub async fn statement(&self, date: Date) -> Result<Listing, ConnectorError> {
        let asked = StatementRequest { date: date.to_string() };
        let reply: StatementReply = self.call_up_to(LISTING_BYTES_MAX, "statement", &asked).await?;
        Ok(reply.read(&self.name))
    }

    /// A notice of this connector, if its signature is right; then `None` if it makes no sense.
    pub fn receive(
        &self,
        given: &Signature<'_>,
        raw: &[u8],
    ) -> Result<Option<Notice>, NotAuthentic> {
        verify(&self.secrets, given, raw)?;
        Ok(notice(&self.name, raw))
    }

    async fn call<Asked: Serialize, Reply: DeserializeOwned>(
        &self,
        path: &str,
        asked: &Asked,
    ) -> Result<Reply, ConnectorError> {
        self.call_up_to(ANSWER_BYTES_MAX, path, asked).await
    }

    async fn call_up_to<Asked: Serialize, Reply: DeserializeOwned>(
        &self,
        bytes_max: usize,
        path: &str,
        asked: &Asked,
    ) -> Result<Reply, ConnectorError> {
        let silent = |why: String| ConnectorError::Silent(format!("{}: {why}", self.url));
        let strange = |why: &dyn std::fmt::Display| ConnectorError::Strange(why.to_string());
        let body = serde_json::to_vec(asked).map_err(|fault| silent(fault.to_string()))?;
        let request = self.request(path, body).map_err(|fault| silent(fault.to_string()))?;
        let exchange = async {
            let answered = self.client.request(request).await;
            let answer = answered.map_err(|fault| silent(deepest(&fault)))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), bytes_max);
            let bytes = body.collect().await.map_err(|fault| silent(deepest(&*fault)))?.to_bytes();
            match status.as_u16() {
                200..=299 => {}
                // Of the caller, not of what is called for.
                status @ (401 | 403 | 408 | 429) => {
                    return Err(strange(&format!("status {status}")));
                }
                status @ 400..=499 => return Err(ConnectorError::Refused(status)),
                status => return Err(strange(&format!("status {status}"))),
            }
            serde_json::from_slice(&bytes).map_err(|fault| strange(&fault))
        };
        match tokio::time::timeout(CALL_TIMEOUT, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(silent("no answer in time".into())),
        }
    }

    fn request(
        &self,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let id = format!("call_{}_{number}", self.run);
        let at = real_time();
        let signature = sign(&self.secrets, &id, at, &body).unwrap_or_default();
        Request::builder()
            .method(Method::POST)
            .uri(format!("{}/{path}", self.url.as_str().trim_end_matches('/')))
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", at.as_second())
            .header("webhook-signature", signature)
            .body(Full::new(Bytes::from(body)))
    }
}

/// The real reason is the last of the causes.
fn deepest(fault: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(fault), |fault| fault.source());
    causes.last().map_or_else(String::new, ToString::to_string)
}

/// Connectors live in real time, whatever the clock of a sandbox says.
#[expect(clippy::disallowed_methods, reason = "a signature towards another process is of its time")]
fn real_time() -> Timestamp {
    Timestamp::now()
}

fn about(attempt: &PaymentAttempt) -> AttemptRequest<'_> {
    let reference = match &attempt.instrument {
        Instrument::Reference(reference) => reference.as_ref(),
        Instrument::Push { .. } | Instrument::Code(_) => None,
    };
    AttemptRequest {
        attempt_id: attempt.id.as_str(),
        rail_id: attempt.rail_id.as_deref(),
        entity: reference.map(crate::domain::BankReference::entity),
        reference: reference.map(crate::domain::BankReference::number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_find_it_busy_the_later_they_look_again() {
        let config = RailConfig {
            name: "acquirer".into(),
            url: "http://127.0.0.1:9/".parse().unwrap(),
            secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
            other_secret: None,
        };
        let connector = Connector::new(&config, "run").unwrap();
        let line = |held: &mut Vec<_>| match connector.line() {
            Line::Slow(permit) => held.push(permit),
            line => panic!("{line:?}"),
        };
        let busy = || match connector.line() {
            Line::Busy(after) => after,
            line => panic!("{line:?}"),
        };
        let mut held = Vec::new();
        (0..QUESTIONS_MAX).for_each(|_| line(&mut held));
        let looks: Vec<_> = (0..20_000).map(|_| busy()).collect();
        assert!(looks.is_sorted() && looks[0] == TURN && looks[19_999] == TURN_MAX, "{looks:?}");
        held.pop();
        line(&mut held);
        assert_eq!(busy(), TURN, "it has answered");
    }
}
