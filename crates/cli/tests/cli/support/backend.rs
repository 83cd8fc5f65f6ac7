//! A backend of `examples/`, running beside a real service.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::http::call;
use crate::support::{PATIENCE, Place, Service, until};

/// Ended with the test.
pub(crate) struct Backend {
    child: Child,
    pub(crate) shop: String,
    /// What a merchant's backend has in its environment.
    pub(crate) variables: Vec<(&'static str, String)>,
    _service: Service,
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

impl Backend {
    /// Starts a service on this place and, with a partner of it, the backend.
    pub(crate) fn start(place: &Place, program: &str, file: &str, arguments: &[&str]) -> Self {
        let service = place.serve_locally();
        let port = free_port();
        let shop = format!("http://127.0.0.1:{port}");
        let database = place.folder.path("example.db");
        let variables = variables(&service, &place.partner());
        let mut command = Command::new(program);
        command
            .current_dir(examples().join(file).parent().expect("it has a folder"))
            .args(arguments.iter().map(|part| part.replace("{port}", &port.to_string())))
            .envs(variables.clone())
            .envs([("PORT", port.to_string()), ("SHOP_URL", shop.clone()), ("DATABASE", database)]);
        let child = spawn(&mut command);
        let backend = Self { child, shop, variables, _service: service };
        let listens = || call(&backend.shop, "GET /nothing", "", "").ok();
        until("the backend listens", PATIENCE, listens);
        backend
    }
}

fn variables(service: &Service, credentials: &Value) -> Vec<(&'static str, String)> {
    let text = |key: &str| credentials[key].as_str().expect("it is text").to_owned();
    vec![
        ("SVC_BASE_URL", service.base_url()),
        ("SVC_PUBLISHABLE_KEY", text("publishableKey")),
        ("SVC_CLIENT_ID", text("clientId")),
        ("SVC_CLIENT_SECRET", text("clientSecret")),
        ("SVC_WEBHOOK_SECRET", text("webhookSecret")),
    ]
}

fn spawn(command: &mut Command) -> Child {
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
    // What it says is read to its end, so that it never waits for us; a test that fails shows it.
    show(child.stdout.take().expect("it is piped"));
    show(child.stderr.take().expect("it is piped"));
    child
}

#[expect(clippy::print_stderr, reason = "captured by the test")]
fn show(output: impl Read + Send + 'static) {
    let lines = BufReader::new(output).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port can be had");
    listener.local_addr().expect("it has an address").port()
}

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}
