//! A merchant's webhook endpoint: a real server on a real socket that keeps what it is sent and
//! answers as told, and the payer that makes something be sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::http::call;
use crate::support::merchant::{Merchant, reference};
use crate::support::{PATIENCE, until};

/// One request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// Empty when it did not come.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value.trim())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

type Answer = dyn Fn(&Received) -> (u16, String) + Send + Sync;

pub(crate) struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// Each request is answered as `answer` says, on a thread of its own.
    pub(crate) fn start(
        answer: impl Fn(&Received) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a free port can be had"), answer)
    }

    /// The same on a socket that is there already.
    pub(crate) fn on(
        listener: TcpListener,
        answer: impl Fn(&Received) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("it has an address");
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (kept, answer): (_, Arc<Answer>) = (Arc::clone(&received), Arc::new(answer));
        // Both end with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &kept, &*answer));
            }
        });
        Self { address, received }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/api/svc/webhook", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("nobody fails inside").clone()
    }

    /// Waits until so many requests have come.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Received> {
        until("the webhooks have come", PATIENCE, || {
            Some(self.received()).filter(|received| received.len() >= count)
        })
    }
}

/// One request per connection is enough here.
fn serve(stream: &TcpStream, kept: &Mutex<Vec<Received>>, answer: &Answer) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut received = Received { head, body: Vec::new() };
    // A GET has none.
    let length = received.header("content-length").parse().unwrap_or(0);
    reader.take(length).read_to_end(&mut received.body).ok()?;
    kept.lock().expect("nobody fails inside").push(received.clone());
    let (status, text) = answer(&received);
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status} said\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{text}"
    );
    (&mut &*stream).write_all(answer.as_bytes()).ok()
}

/// An order whose webhooks go to the receiver; its reference number.
pub(crate) fn order(merchant: &Merchant, id: &str, webhook_url: &str) -> String {
    let created = merchant.create_with(&merchant.token(), id, webhook_url);
    reference(&created.expect("the server answers"))
}

/// The payer pays.
pub(crate) fn pay(merchant: &Merchant, id: &str) {
    let token = merchant.token();
    let headers = format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
    let body = json!({
        "applicationUUID": merchant.application_uuid,
        "externalTransactionId": id,
        "outcome": "confirm",
    });
    let answer = call(&merchant.base_url, "POST /sandbox/simulate", &headers, &body.to_string())
        .expect("the server answers");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["data"]["paymentStatus"], "CON", "{answer:?}");
}

/// `x-svc-content-token` as a merchant computes it.
pub(crate) fn content_token(secret: &str, body: &[u8]) -> String {
    use aws_lc_rs::hmac;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::sign(&key, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
