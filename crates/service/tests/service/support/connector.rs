//! An example connector: a process of an acquirer's that speaks our signed contract over HTTP, keeps
//! what it is asked and answers as told.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use svc_service::app::{App, Clock};
use svc_service::config::RailConfig;
use svc_service::rails::{ConnectorError, Rail};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

/// How a call is answered.
#[derive(Clone)]
pub(crate) enum Reply {
    Json(Value),
    /// It depends on what is asked.
    Of(fn(&Value) -> Reply),
    /// With this status and nothing sensible in it.
    Status(u16),
    Text(&'static str),
    /// The connection is closed instead.
    HangUp,
    /// Not before a permit is given; then by the JSON it is given meanwhile, or as accepted.
    Hang(Arc<Semaphore>),
}

/// Ends with the test.
pub(crate) struct TestConnector {
    address: SocketAddr,
    state: Arc<State>,
    server: JoinHandle<()>,
}

struct State {
    secret: String,
    replies: Mutex<HashMap<&'static str, Reply>>,
    /// What was asked with a right signature: path and body.
    calls: Mutex<Vec<(String, Value)>>,
    refused: Mutex<usize>,
    /// Payments that were not acknowledged.
    queue: Mutex<Vec<Value>>,
    came: Notify,
}

impl TestConnector {
    pub(crate) const NAME: &str = "acquirer";

    /// Offers all three methods, keeps a queue, takes back references, and accepts everything.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            secret: secret(7),
            replies: Mutex::default(),
            calls: Mutex::default(),
            refused: Mutex::default(),
            queue: Mutex::default(),
            came: Notify::new(),
        });
        let for_server = Arc::clone(&state);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&for_server);
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(move |request| {
                        let state = Arc::clone(&state);
                        async move { state.answer(request).await }
                    });
                    let io = TokioIo::new(stream);
                    let _ = Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
                });
            }
        });
        let connector = Self { address, state, server };
        connector.can(&json!({}));
        connector.will("start-push", accepted(&json!({})));
        let bank = json!({ "entity": "00348", "reference": "987654321" });
        connector.will("issue-reference", accepted(&bank));
        let code = json!({ "code": "AB12-CD34", "link": "https://wallet.example/AB12" });
        connector.will("start-code", accepted(&code));
        connector.will("revoke-reference", accepted(&json!({})));
        connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
        connector
    }

    pub(crate) fn config(&self) -> RailConfig {
        self.config_with(&self.state.secret)
    }

    /// As somebody configured it who has the wrong secret.
    pub(crate) fn config_with_another_secret(&self) -> RailConfig {
        self.config_with(&secret(8))
    }

    fn config_with(&self, secret: &str) -> RailConfig {
        RailConfig {
            name: Self::NAME.to_owned(),
            url: format!("http://{}/contract", self.address).parse().unwrap(),
            secret: secret.to_owned().into(),
            other_secret: None,
        }
    }

    /// As it is while another secret takes over from the connector's.
    pub(crate) fn config_taking_over(&self) -> RailConfig {
        let other_secret = Some(self.state.secret.clone().into());
        RailConfig { other_secret, ..self.config_with_another_secret() }
    }

    /// From now on a call of this path is answered so.
    pub(crate) fn will(&self, path: &'static str, reply: Reply) {
        self.state.replies.lock().unwrap().insert(path, reply);
    }

    /// Offers its methods with these terms: a list of code, min and max.
    pub(crate) fn offers(&self, methods: &Value) {
        self.can(&json!({ "methods": methods }));
    }

    /// What it tells of itself from now on.
    pub(crate) fn can(&self, more: &Value) {
        self.will("capabilities", Reply::Json(capabilities(more)));
    }

    pub(crate) fn enqueue(&self, payment: Value) {
        self.state.queue.lock().unwrap().push(payment);
    }

    pub(crate) fn queued(&self) -> usize {
        self.state.queue.lock().unwrap().len()
    }

    /// The bodies of all calls of this path.
    pub(crate) fn calls(&self, path: &str) -> Vec<Value> {
        let calls = self.state.calls.lock().unwrap();
        calls.iter().filter(|(called, _)| called == path).map(|(_, body)| body.clone()).collect()
    }

    pub(crate) fn refused(&self) -> usize {
        *self.state.refused.lock().unwrap()
    }

    /// Waits until a path was called so often.
    pub(crate) async fn wait_for(&self, path: &str, count: usize) -> Vec<Value> {
        super::patiently(async {
            loop {
                let came = self.state.came.notified();
                let calls = self.calls(path);
                if calls.len() >= count {
                    return calls;
                }
                came.await;
            }
        })
        .await
    }

    /// The headers of a notice it sends us.
    pub(crate) fn signed(&self, body: &str) -> Vec<(&'static str, String)> {
        signed(&self.state.secret, body)
    }

    pub(crate) fn signed_wrongly(&self, body: &str) -> Vec<(&'static str, String)> {
        signed(&secret(8), body)
    }

    /// The service asks what it can do, as it does now and then.
    pub(crate) async fn asked_by(app: &App) -> Result<(), ConnectorError> {
        match &**app.rails.named(Self::NAME).unwrap() {
            Rail::Connector(connector) => connector.refresh(app.clock.now()).await,
            Rail::Simulator(_) => unreachable!("it is a connector"),
        }
    }
}

impl Drop for TestConnector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl State {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, &'static str> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| "broken off")?.to_bytes();
        if Webhook::new(&self.secret).unwrap().verify(&body, &head.headers).is_err() {
            *self.refused.lock().unwrap() += 1;
            return Ok(Response::builder().status(401).body(Full::default()).unwrap());
        }
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let path = head.uri.path().strip_prefix("/contract/").unwrap().to_owned();
        self.calls.lock().unwrap().push((path.clone(), asked.clone()));
        self.came.notify_waiters();
        match self.reply(&path, &asked) {
            Reply::Json(body) => Ok(Response::new(body.to_string().into())),
            Reply::Text(body) => Ok(Response::new(body.into())),
            Reply::Status(status) => {
                Ok(Response::builder().status(status).body("sorry".into()).unwrap())
            }
            Reply::HangUp | Reply::Of(_) => Err("hangs up"),
            Reply::Hang(gate) => {
                let _open = gate.acquire().await;
                Ok(Response::new(match self.reply(&path, &asked) {
                    Reply::Json(body) => body.to_string().into(),
                    _ => r#"{"answer":"accepted","railId":"slow"}"#.into(),
                }))
            }
        }
    }

    fn reply(&self, path: &str, asked: &Value) -> Reply {
        match self.replies.lock().unwrap().get(path) {
            Some(Reply::Of(choose)) => return choose(asked),
            Some(reply) => return reply.clone(),
            None => {}
        }
        let mut queue = self.queue.lock().unwrap();
        match path {
            "drain" => Reply::Json(json!({ "payments": *queue })),
            "ack" => {
                queue.retain(|payment| payment["railPaymentId"] != asked["railPaymentId"]);
                Reply::Json(json!({ "answer": "accepted" }))
            }
            _ => Reply::Status(404),
        }
    }
}

fn accepted(more: &Value) -> Reply {
    let mut body = json!({ "answer": "accepted", "railId": "rail-7" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Reply::Json(body)
}

fn capabilities(more: &Value) -> Value {
    let mut body = json!({
        "methods": [
            { "code": "FPMCXEXPRSS", "min": 1, "max": 30_000_000 },
            { "code": "FPSOLPGEXT" },
            { "code": "FPSOLPG" },
            { "code": "FPUNHEARDOF" },
        ],
        "canRevoke": true, "canQuery": true, "hasQueue": true, "somethingNew": 1,
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn secret(byte: u8) -> String {
    format!("whsec_{}", STANDARD.encode([byte; 32]))
}

fn signed(secret: &str, body: &str) -> Vec<(&'static str, String)> {
    let at = Clock::system().now().as_second();
    let signature = Webhook::new(secret).unwrap().sign("msg_1", at, body.as_bytes()).unwrap();
    vec![
        ("content-type", "application/json".to_owned()),
        ("webhook-id", "msg_1".to_owned()),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", signature),
    ]
}
