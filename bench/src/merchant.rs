//! A merchant that writes down everything it hears, for drills.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Router, body::Bytes};
use serde_json::Value;
use tokio::sync::watch;

/// One delivery, in the order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// `webhook-id`.
    pub id: String,
    pub order: String,
    pub status: String,
    pub body: Bytes,
}

pub(crate) struct Merchant {
    address: std::net::SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    answers: watch::Sender<bool>,
}

#[derive(Clone)]
struct Ears {
    heard: Arc<Mutex<Vec<Heard>>>,
    answering: watch::Receiver<bool>,
}

/// One that can be connected to and does not answer.
pub(crate) struct Silent {
    address: std::net::SocketAddr,
    listener: tokio::net::TcpListener,
}

impl Silent {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// It hears whatever was said to it meanwhile, too.
    pub(crate) fn speak(self) -> Merchant {
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let (answers, answering) = watch::channel(true);
        let ears = Ears { heard: Arc::clone(&heard), answering };
        let routes = Router::new().route("/hook", post(hook)).with_state(ears);
        tokio::spawn(async move { axum::serve(self.listener, routes).await });
        Merchant { address: self.address, heard, answers }
    }
}

impl Merchant {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Ok(Silent::start().await?.speak())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Whether it answers. What comes while it does not is heard once it does again, if anybody still waits.
    pub(crate) fn answer(&self, answers: bool) {
        self.answers.send_replace(answers);
    }

    /// Deliveries of an event that was heard before.
    pub(crate) fn repeated(&self) -> u64 {
        let heard = self.heard.lock().expect("no holder panics");
        let ids: HashSet<_> = heard.iter().map(|event| &event.id).collect();
        (heard.len() - ids.len()) as u64
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("no holder panics").clone()
    }
}

async fn hook(State(mut ears): State<Ears>, headers: HeaderMap, body: Bytes) -> StatusCode {
    // The merchant is gone: so is this.
    let _ = ears.answering.wait_for(|answers| *answers).await;
    let Ok(event) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    ears.heard.lock().expect("no holder panics").push(Heard {
        id: id.to_owned(),
        order: text(&event["data"]["externalTransactionId"]),
        status: text(&event["data"]["paymentStatus"]),
        body,
    });
    StatusCode::OK
}
