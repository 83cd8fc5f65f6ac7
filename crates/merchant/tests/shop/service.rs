//! A payment service with one token, which takes every order and tells what it was told to.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What happens when somebody calls, before the answer: `/token`, or the id of an order to make.
type Hook = Box<dyn Fn(&str) + Send>;

#[derive(Default)]
pub(crate) struct FakeService {
    address: Option<SocketAddr>,
    /// What a query answers; pending if nothing is set.
    pub(crate) states: Mutex<HashMap<String, &'static str>>,
    pub(crate) refusing: Mutex<bool>,
    /// So many answers to come are lost on the way.
    pub(crate) losing: Mutex<u32>,
    pub(crate) before_answer: Mutex<Option<Hook>>,
    pub(crate) created: Mutex<Vec<Value>>,
    /// The ids of orders that were asked about.
    pub(crate) queried: Mutex<Vec<String>>,
    /// How often a shop that opened asked whether it is known.
    pub(crate) greeted: Mutex<u32>,
    /// The token it gave is dead.
    pub(crate) forgetful: Mutex<bool>,
    /// What its messages are to be written in, of every call.
    pub(crate) languages: Mutex<HashSet<String>>,
    /// Orders that it never heard of.
    pub(crate) unknown: Mutex<HashSet<String>>,
}

impl FakeService {
    pub(crate) fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().ok();
        let service = Arc::new(Self { address, ..Self::default() });
        let shared = Arc::clone(&service);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let service = Arc::clone(&shared);
                std::thread::spawn(move || service.serve(&stream));
            }
        });
        service
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address.unwrap())
    }

    pub(crate) fn times_queried(&self, id: &str) -> usize {
        self.queried.lock().unwrap().iter().filter(|one| *one == id).count()
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).ok()? == 0 {
                    return None;
                }
            }
            let lower = head.to_ascii_lowercase();
            let field =
                |name| lower.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let length = field("content-length:").and_then(|length| length.parse().ok());
            let language = field("accept-language:").unwrap_or_default().to_owned();
            self.languages.lock().unwrap().insert(language);
            let mut body = Vec::new();
            reader.by_ref().take(length.unwrap_or(0)).read_to_end(&mut body).ok()?;
            let (status, reply) = self.answer(head.split_whitespace().nth(1)?, &body);
            if self.loses() {
                return None;
            }
            let text = reply.to_string();
            let length = text.len();
            // In one piece, so that nobody waits for an acknowledgement of half of it.
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n{text}");
            (&mut &*stream).write_all(answer.as_bytes()).ok()?;
        }
    }

    fn loses(&self) -> bool {
        let mut left = self.losing.lock().unwrap();
        let loses = *left > 0;
        *left = left.saturating_sub(1);
        loses
    }

    fn tell(&self, what: &str) {
        if let Some(hook) = &*self.before_answer.lock().unwrap() {
            hook(what);
        }
    }

    fn answer(&self, target: &str, body: &[u8]) -> (u16, Value) {
        if target == "/token" {
            self.tell("/token");
            return (200, json!({ "access_token": "T", "expires_in": 3600 }));
        }
        if std::mem::take(&mut *self.forgetful.lock().unwrap()) {
            self.tell("a dead token");
            return (401, json!({ "code": 401, "error": "invalid_token", "message": "No." }));
        }
        if *self.refusing.lock().unwrap() {
            return (422, json!({ "code": 422, "error": "invalid_body", "message": "No." }));
        }
        if target.starts_with("/svcpartner/events?") {
            *self.greeted.lock().unwrap() += 1;
            return (200, json!({ "code": 200, "data": { "events": [], "hasMore": false } }));
        }
        let query = target.split_once("externalTransactionId=").map(|(_, rest)| rest);
        let id = match query {
            Some(rest) => rest.split('&').next().unwrap_or_default().to_owned(),
            None => {
                let asked: Value = serde_json::from_slice(body).unwrap();
                let id = asked["externalTransactionId"].as_str().unwrap().to_owned();
                self.created.lock().unwrap().push(asked);
                self.tell(&id);
                id
            }
        };
        if query.is_some() {
            self.queried.lock().unwrap().push(id.clone());
            if self.unknown.lock().unwrap().contains(&id) {
                return (404, json!({ "code": 404, "error": "order_not_found", "message": "No." }));
            }
        }
        let state = self.states.lock().unwrap().get(&id).copied().unwrap_or("PEN");
        let created = self.created.lock().unwrap();
        let asked = created.iter().find(|one| one["externalTransactionId"] == id.as_str());
        let amount = asked.map_or(json!(0), |one| one["amount"].clone());
        let data = json!({
            "externalTransactionId": id, "paymentStatus": state, "referenceNumber": "REF1",
            "amount": amount,
        });
        (200, json!({ "code": 200, "message": "OK", "data": data }))
    }
}
