//! Raw requests to a real service: it answers, never with a fault of its own, and tells no secret.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::ExposeSecret;
use svc_service::app::App;
use svc_service::config::Config;
use svc_service::credentials;
use svc_service::server::Server;
use svc_service::store::Database;

/// Between two parts of an answer.
const PATIENCE: Duration = Duration::from_millis(100);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Stand in the corpus for what is another in every run.
const BASIC: &str = "{basic}";
const TOKEN: &str = "{token}";
const UUID: &str = "{uuid}";

struct Service {
    address: SocketAddr,
    basic: String,
    token: String,
    uuid: String,
    secrets: [String; 2],
}

static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);

/// Sends the bytes as they are, as the whole of what the caller has to say.
pub(crate) fn send(data: &[u8]) {
    let service = &*SERVICE;
    let answer = service.exchange(&service.filled(data));
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    // Whoever does not finish a request may be left without an answer; HTTP/2 is answered in kind.
    if !line.starts_with(b"HTTP/1") {
        return;
    }
    let line = String::from_utf8_lossy(line);
    let status: u16 = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    assert!((200..500).contains(&status), "answered {line}");
    let text = String::from_utf8_lossy(&answer);
    for secret in &service.secrets {
        assert!(!text.contains(secret.as_str()), "a secret is told");
    }
}

/// Removes what the service stored.
pub(crate) fn clean_up() {
    let _ = std::fs::remove_dir_all(directory());
}

fn directory() -> PathBuf {
    std::env::temp_dir().join(format!("svc_fuzz_{}", std::process::id()))
}

impl Service {
    fn start() -> Self {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async {
                std::fs::create_dir_all(directory()).expect("a directory");
                let url = format!("sqlite:{}", directory().join("svc.db").display());
                let config = Config::sandbox(([127, 0, 0, 1], 0).into());
                let database = Database::parse(&url).expect("a database URL");
                let app = App::open(config, &database).await.expect("a database");
                let issued = credentials::create_partner(&app, "Loja").await.expect("a partner");
                let server = Server::bind(app).await.expect("a free port");
                let _ = tell.send((server.address(), issued));
                let ended = server.run(std::future::pending()).await;
                panic!("the service ended: {ended:?}");
            });
        });
        let (address, issued) = told.recv().expect("the service starts");
        let secret = issued.client_secret.expose_secret();
        let mut service = Self {
            address,
            basic: BASIC.into(),
            token: TOKEN.into(),
            uuid: issued.application.publishable_key.application_uuid().as_str().to_owned(),
            secrets: [secret.to_owned(), issued.application.webhook_secret.expose_secret().into()],
        };
        let pair = format!("{}:{secret}", issued.client_id.as_str());
        service.basic = BASE64_STANDARD.encode(pair);
        let asked = format!(
            "POST /token HTTP/1.1\r\nhost: a\r\nauthorization: Basic {}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: 29\r\n\
             connection: close\r\n\r\ngrant_type=client_credentials",
            service.basic
        );
        let answer = service.exchange(asked.as_bytes());
        let start = answer.iter().position(|byte| *byte == b'{').expect("a token");
        let token: serde_json::Value = serde_json::from_slice(&answer[start..]).expect("a token");
        service.token = token["access_token"].as_str().expect("a token").to_owned();
        service
    }

    fn filled(&self, data: &[u8]) -> Vec<u8> {
        let marks = [(BASIC, &self.basic), (TOKEN, &self.token), (UUID, &self.uuid)];
        let mut filled = data.to_vec();
        for (mark, value) in marks {
            let place = filled.windows(mark.len()).position(|part| part == mark.as_bytes());
            if let Some(place) = place {
                filled.splice(place..place + mark.len(), value.bytes());
            }
        }
        filled
    }

    fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("the service listens");
        // It may answer and close before all of it was sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        // Whoever hangs up is answered no more; whoever has not finished is waited for.
        for (patience, hangs_up) in [(PATIENCE, false), (ANSWER_TIMEOUT, true)] {
            if hangs_up {
                let _ = stream.shutdown(Shutdown::Write);
            }
            stream.set_read_timeout(Some(patience)).expect("a timeout");
            match stream.read_to_end(&mut answer) {
                Err(fault) if fault.kind() == ErrorKind::WouldBlock => {
                    assert!(!hangs_up, "no end in time, {} bytes so far", answer.len());
                }
                _ => break,
            }
        }
        answer
    }
}
