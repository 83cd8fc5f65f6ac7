//! A shop on a free port with a clock of its own, and one HTTP call.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use serde_json::{Value, json};
use svc_merchant::{Clock, Limits, Server, Settings, Shop};

use crate::service::FakeService;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
pub(crate) const PREVIOUS: &str = "whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
pub(crate) const CLIENT_SECRET: &str = "svcsec_canary";
/// When the shop opens; its clock stands still until a test moves it.
pub(crate) const OPENED_AT_MS: i64 = 1_800_000_000_000;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);

pub(crate) struct TestShop {
    pub(crate) address: SocketAddr,
    pub(crate) service: Arc<FakeService>,
    settings: Settings,
    now_ms: Arc<AtomicI64>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    folder: PathBuf,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl TestShop {
    pub(crate) fn open() -> Self {
        Self::open_with(|_| {})
    }

    /// With other settings than usual.
    pub(crate) fn open_with(change: impl FnOnce(&mut Settings)) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("svc-shop-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let service = FakeService::start();
        let mut settings = settings(&service.url(), folder.join("shop.db"));
        let now_ms = Arc::new(AtomicI64::new(OPENED_AT_MS));
        let shown = Arc::clone(&now_ms);
        settings.clock = Clock::of(move || shown.load(Ordering::Relaxed));
        change(&mut settings);
        let (address, stop, thread) = run(settings.clone());
        let is_greeted = settings.base_url == service.url();
        let (stop, thread) = (Some(stop), Some(thread));
        let shop = Self { address, service, settings, now_ms, stop, thread, folder };
        if is_greeted {
            // What a test counts begins after it.
            shop.wait_until("the greeting", |shop| *shop.service.greeted.lock().unwrap() > 0);
        }
        shop
    }

    pub(crate) fn advance(&self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).unwrap();
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Ended and opened again on the same data.
    pub(crate) fn reopen(&mut self) {
        self.close();
        let (address, stop, thread) = run(self.settings.clone());
        (self.address, self.stop, self.thread) = (address, Some(stop), Some(thread));
    }

    pub(crate) fn close(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("shop.db")
    }

    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    pub(crate) fn call(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        call(self.address, request, headers, body)
    }

    /// An order of one book; its id.
    pub(crate) fn order(&self) -> String {
        let answer = self.create(&json!({ "items": [{ "id": "livro-receitas", "quantity": 1 }] }));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["externalTransactionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn create(&self, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.call("POST /api/svc/create-order", &headers, body.to_string().as_bytes())
    }

    /// A webhook signed as the service signs it.
    pub(crate) fn webhook(&self, body: &str) -> Answer {
        self.webhook_signed(body.as_bytes(), &sign(SECRET, body.as_bytes()))
    }

    pub(crate) fn webhook_signed(&self, body: &[u8], signature: &str) -> Answer {
        self.call("POST /api/svc/webhook", &[("x-svc-content-token", signature)], body)
    }

    pub(crate) fn status(&self, id: &str) -> String {
        let sql = "select status from orders where external_transaction_id = ?1";
        self.database().query_row(sql, [id], |row| row.get(0)).unwrap()
    }

    pub(crate) fn stock(&self) -> i64 {
        let sql = "select free from stock where product = 'livro-receitas'";
        self.database().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(crate) fn happened(&self, id: &str, what: &str) -> i64 {
        let sql = "select count(*) from story where external_transaction_id = ?1 and what = ?2";
        self.database().query_row(sql, [id, what], |row| row.get(0)).unwrap()
    }

    pub(crate) fn waits_to_be_sent(&self, id: &str) -> bool {
        let sql = "select count(*) from to_fulfil where external_transaction_id = ?1";
        let count: i64 = self.database().query_row(sql, [id], |row| row.get(0)).unwrap();
        count == 1
    }

    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        #[expect(clippy::disallowed_methods, reason = "a test may look at its watch")]
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "{what} did not come");
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for TestShop {
    fn drop(&mut self) {
        self.close();
        // ./test searches what is left for secrets.
        if std::env::var_os("SVC_TEST_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

pub(crate) fn settings(base_url: &str, database: PathBuf) -> Settings {
    Settings {
        base_url: base_url.to_owned(),
        sdk_url: base_url.to_owned(),
        publishable_key: "pk_test_0b6f".into(),
        client_id: "svc_1".into(),
        client_secret: CLIENT_SECRET.to_owned().into(),
        webhook_secret: SECRET.to_owned().into(),
        webhook_secret_previous: Some(PREVIOUS.to_owned().into()),
        public_url: None,
        database,
        clock: Clock::system(),
        limits: Limits::default(),
    }
}

type Running = (SocketAddr, tokio::sync::oneshot::Sender<()>, std::thread::JoinHandle<()>);

/// On a thread and a runtime of its own, as a process would be.
fn run(settings: Settings) -> Running {
    let (told, address) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let shop = Shop::open(settings).unwrap();
            let server = Server::bind(shop, ([127, 0, 0, 1], 0).into()).await.unwrap();
            told.send(server.address()).unwrap();
            server
                .run(async {
                    let _ = stopped.await;
                })
                .await;
        });
    });
    (address.recv().unwrap(), stop, thread)
}

pub(crate) fn event(id: &str, status: &str) -> String {
    event_of(id, status, "REF1", 15_000)
}

pub(crate) fn event_of(id: &str, status: &str, reference: &str, amount: i64) -> String {
    json!({
        "event": "payment",
        "data": {
            "externalTransactionId": id, "paymentStatus": status, "referenceNumber": reference,
            "amount": amount,
        },
    })
    .to_string()
}

pub(crate) fn sign(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex::encode(hmac::sign(&key, body))
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

pub(crate) fn call(
    address: SocketAddr,
    request: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = format!("{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    // Whoever is refused early may find the door shut.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, text) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_ascii_lowercase(), text: text.to_owned() }
}
