//! The programs of docs/webhooks.md, held against a webhook that was really delivered.

#[path = "snippets/verify.rs"]
#[expect(dead_code, unreachable_pub, reason = "a program of its own, for merchants")]
mod rust_snippet;

use std::io::Write;
use std::process::{Command, Stdio};

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::support::merchant::Merchant;
use crate::support::receiver::{Received, Receiver, content_token, order, pay};
use crate::support::{Folder, Service, svc};

const RUST: &str = include_str!("snippets/verify.rs");

/// A program of the page: how its block is marked, what runs it, and the name its file must have.
struct Program {
    language: &'static str,
    runtime: &'static str,
    options: &'static [&'static str],
    file: &'static str,
    /// On a machine without it ./test would have installed it.
    required: bool,
}

const PROGRAMS: [Program; 4] = [
    Program::new("python", "python3", &[], "verify.py"),
    Program::new("js", "node", &[], "verify.js"),
    Program { required: false, ..Program::new("php", "php", &[], "verify.php") },
    // So short a life is not worth the optimiser.
    Program {
        required: false,
        ..Program::new("java", "java", &["-XX:TieredStopAtLevel=1"], "Verify.java")
    },
];

impl Program {
    const fn new(
        language: &'static str,
        runtime: &'static str,
        options: &'static [&'static str],
        file: &'static str,
    ) -> Self {
        Self { language, runtime, options, file, required: true }
    }
}

/// What a handler may be given, and whether it is genuine.
struct Case {
    name: &'static str,
    genuine: bool,
    body: Vec<u8>,
    /// `None`: the header did not come.
    header: Option<String>,
    secret: String,
}

#[test]
fn every_program_accepts_the_real_webhook_and_nothing_else() {
    let (received, secret) = delivered();
    let cases = cases(&received, &secret);
    for case in &cases {
        let header = case.header.as_deref().unwrap_or_default();
        let verified =
            !case.secret.is_empty() && rust_snippet::verify(&case.body, header, &case.secret);
        assert_eq!(verified, case.genuine, "rust: {}", case.name);
    }
    let folder = Folder::new();
    for program in PROGRAMS {
        if !is_installed(program.runtime) {
            assert!(!program.required, "{} is missing: ./test installs it", program.runtime);
            tell(&format!("skipped: {} is not installed", program.runtime));
            continue;
        }
        let file = folder.path(program.file);
        std::fs::write(&file, block(program.language)).expect("the folder can be written");
        for case in &cases {
            let (code, said) = run(&program, &file, case);
            let wanted = if case.genuine { 0 } else { 1 };
            assert_eq!(code, Some(wanted), "{}: {}: {said}", program.language, case.name);
        }
    }
}

#[test]
fn the_rust_program_of_the_page_is_the_one_that_is_compiled_here() {
    assert_eq!(block("rust"), RUST, "copy one into the other");
}

#[test]
fn the_example_of_the_page_is_signed_as_it_says() {
    let page = page();
    let body = page.lines().find(|line| line.starts_with("{\"event\":\"payment\""));
    let body = body.expect("the page shows a body").as_bytes();
    assert_eq!(body.len(), 181);
    let secret = "whsec_c3ZjLWRvY3MtZXhhbXBsZS1rZXktMzItYnl0ZXMhISE=";
    let token = content_token(secret, body);
    assert!(page.contains(&format!("x-svc-content-token: {token}\n")), "{token} is not there");

    let header = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{name} is not shown"))
    };
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("it is base64");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
    let signature = hmac::sign(&key, &[signed.as_bytes(), body].concat());
    assert_eq!(header("webhook-signature"), format!("v1,{}", STANDARD.encode(signature)));
}

/// A webhook of a paid order as `svc demo` sends it, and the secret it printed.
fn delivered() -> (Received, String) {
    let folder = Folder::new();
    let mut demo = svc(&["demo", "--json", "--listen", "127.0.0.1:0", "--data"]);
    let service = Service::start(demo.arg(folder.path("demo")));
    let receiver = Receiver::start(|_| (200, r#"{"received":true}"#.into()));
    let merchant = Merchant::new(service.base_url(), &service.ready());
    let reference = order(&merchant, "order-1", &receiver.url());
    pay(&merchant, "order-1");
    let received = receiver.wait_for(1).remove(0);
    assert_eq!(received.json()["data"]["referenceNumber"], reference, "{received:?}");
    let secret = service.ready()["webhookSecret"].as_str().expect("it is told").to_owned();
    (received, secret)
}

fn cases(received: &Received, secret: &str) -> Vec<Case> {
    let genuine = received.header("x-svc-content-token").to_owned();
    let case = |name, body: &[u8], header: Option<&str>| Case {
        name,
        genuine: false,
        body: body.to_owned(),
        header: header.map(str::to_owned),
        secret: secret.to_owned(),
    };
    let body = &received.body;
    let mut changed = body.clone();
    let place = body.windows(3).position(|three| three == b"CON").expect("it was paid");
    changed[place + 2] ^= 1;
    let rewritten = serde_json::to_vec_pretty(&received.json()).expect("it is JSON");
    let decoded = secret.trim_start_matches("whsec_");
    vec![
        Case { genuine: true, ..case("the webhook as it came", body, Some(&genuine)) },
        case("one byte of the body changed", &changed, Some(&genuine)),
        case("a line break added", &[body, b"\n".as_slice()].concat(), Some(&genuine)),
        case("the body parsed and written again", &rewritten, Some(&genuine)),
        case("no body", b"", Some(&genuine)),
        case("no header", body, None),
        case("an empty header", body, Some("")),
        case("the digest in capitals", body, Some(&genuine.to_uppercase())),
        case("63 characters", body, Some(&genuine[..63])),
        case("65 characters", body, Some(&format!("{genuine}0"))),
        case("a prefix", body, Some(&format!("sha256={genuine}"))),
        case("64 letters that are not hex", body, Some(&"g".repeat(64))),
        case("letters that are not ASCII", body, Some(&"é".repeat(64))),
        case("another secret", body, Some(&content_token("whsec_b3RoZXI=", body))),
        case("the secret without its prefix", body, Some(&content_token(decoded, body))),
        Case { secret: String::new(), ..case("no secret", body, Some(&content_token("", body))) },
    ]
}

fn run(program: &Program, file: &str, case: &Case) -> (Option<i32>, String) {
    let mut command = Command::new(program.runtime);
    command
        .args(program.options)
        .arg(file)
        .env("SVC_WEBHOOK_SECRET", &case.secret)
        .env_remove("HEADER");
    if let Some(header) = &case.header {
        command.env("HEADER", header);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it is installed");
    // A program that refuses before it reads closes its end; that is no fault.
    let _ = child.stdin.take().expect("it is piped").write_all(&case.body);
    let ended = child.wait_with_output().expect("it is ours to wait for");
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn is_installed(runtime: &str) -> bool {
    let mut asked = Command::new(runtime);
    asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Past the harness, which keeps what a test prints to itself.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The one block of the page in this language.
fn block(language: &str) -> String {
    let open = format!("```{language}\n");
    let page = page();
    let mut found = page.split(&open).skip(1);
    let text = found.next().and_then(|rest| rest.split_once("```\n"));
    assert!(found.next().is_none(), "two blocks of {language}");
    text.unwrap_or_else(|| panic!("no block of {language}")).0.to_owned()
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/webhooks.md");
    std::fs::read_to_string(path).expect("the page is there")
}
