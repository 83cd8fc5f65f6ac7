//! Connections: slow and silent clients, too many of them, and TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::support::http::{connect, get};
use crate::support::merchant::{Merchant, reference};
use crate::support::{Folder, PATIENCE, Place, Ran, Service, now, run, until};

/// Whoever wastes a connection loses it within 15 s (goal G14); a busy machine may be
/// late to notice.
const REAPED_WITHIN: Duration = Duration::from_secs(25);
const HONEST_WITHIN: Duration = Duration::from_secs(5);
/// The pace of a slow sender: faster than any limit on a single read.
const DRIP: Duration = Duration::from_millis(200);
const HTTP2_PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[test]
fn who_wastes_a_connection_loses_it_while_honest_calls_are_answered() {
    let place = Place::sqlite();
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    let body = format!(
        "POST /svcpartner/createPaymentOrder HTTP/1.1\r\nhost: test\r\n\
         content-type: application/json\r\nauthorization: Bearer {token}\r\n\
         content-length: 1000\r\n\r\n"
    );
    // What is sent first, and what is sent again and again after it.
    let mut open: Vec<_> = [
        ("one that says nothing", "", ""),
        ("one whose head drips", "GET /livez HTTP/1.1\r\nhost: test\r\nx-slow: ", "a"),
        ("one whose body drips", &body, " "),
        ("one that is idle after an answer", "GET /livez HTTP/1.1\r\nhost: test\r\n\r\n", ""),
        ("one with half an HTTP/2 preface", &HTTP2_PREFACE[..12], ""),
        ("one with an HTTP/2 preface and no more", HTTP2_PREFACE, ""),
    ]
    .into_iter()
    .map(|(name, first, then)| (name, slow_connection(&service, first), then, Vec::new()))
    .collect();
    let mut told = Vec::new();

    let start = now();
    for order in 0.. {
        let over = open.extract_if(.., |(_, stream, then, heard)| closed(stream, then, heard));
        told.extend(over.map(|(name, _, _, heard)| (name, heard)));
        if open.is_empty() {
            break;
        }
        let names: Vec<_> = open.iter().map(|(name, ..)| name).collect();
        assert!(start.elapsed() < REAPED_WITHIN, "still open: {names:?}");
        let honest = now();
        let answer = merchant.create(&token, &format!("order-{order}"));
        reference(&answer.expect("the server answers"));
        assert!(honest.elapsed() < HONEST_WITHIN, "an honest call took {:?}", honest.elapsed());
    }
    assert_eq!(merchant.query(&token, "order-0").status, 200);
    let (_, heard) = told.iter().find(|(name, _)| name.contains("body drips")).expect("it is over");
    let heard = String::from_utf8_lossy(heard);
    assert!(heard.starts_with("HTTP/1.1 408 ") && heard.contains("request_timeout"), "{heard}");
}

#[test]
fn one_address_has_its_share_of_connections() {
    let place = Place::sqlite();
    let service = Service::start(&mut place.serving(&["--connections-per-address", "3"]));
    let mut held: Vec<_> = (0..3).map(|_| slow_connection(&service, "")).collect();
    for stream in &mut held {
        asked_on(stream).expect("it is one of three");
    }
    let mut fourth = slow_connection(&service, "");
    assert!(asked_on(&mut fourth).is_err(), "one more than it may have");
    held.pop();
    until("a place is free again", PATIENCE, || asked_on(&mut slow_connection(&service, "")).ok());
}

/// Whether the connection is served.
fn asked_on(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\n")?;
    stream.read_exact(&mut [0; 12])
}

/// A fault of ours is told as one, in the shape of every error, and costs one call.
#[test]
fn a_panic_is_answered_and_the_next_call_is_served() {
    let place = Place::sqlite();
    let partner = place.partner();
    let mut serve = place.serving(&[]);
    let service = Service::start(serve.env("SVC_FAULT", "before create_order=panic@1"));
    let merchant = Merchant::new(service.base_url(), &partner);
    let token = merchant.token();
    let answer = merchant.create(&token, "order-1").expect("the server answers");
    assert_eq!(answer.status, 500, "{answer:?}");
    assert_eq!(answer.json()["error"], "internal_error");
    assert_eq!(answer.json()["requestId"].as_str(), answer.header("x-request-id"));
    assert!(!answer.body.contains("panic"), "{answer:?}");
    reference(&merchant.create(&token, "order-1").expect("the server answers"));
}

fn slow_connection(service: &Service, first: &str) -> TcpStream {
    let mut stream = connect(&service.base_url()).expect("the server accepts");
    stream.set_read_timeout(Some(DRIP)).expect("a timeout can be set");
    stream.write_all(first.as_bytes()).expect("the server reads");
    stream
}

/// Waits one drip for the end of the connection, and sends the next one if it does not come.
fn closed(stream: &mut TcpStream, then: &str, heard: &mut Vec<u8>) -> bool {
    let mut part = [0; 4096];
    match stream.read(&mut part) {
        Ok(0) => true,
        Ok(bytes) => {
            heard.extend(&part[..bytes]);
            false
        }
        Err(fault) if matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            stream.write_all(then.as_bytes()).is_err()
        }
        Err(_) => true,
    }
}

#[test]
fn without_file_descriptors_it_waits_calmly_and_recovers() {
    const DESCRIPTORS: usize = 64;
    /// How long the server rests after a failed accept.
    const PAUSE: Duration = Duration::from_millis(50);
    let place = Place::sqlite();
    let limited = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_svc"), "serve", "--json"]);
    let service =
        Service::start(command.args(["--listen", "127.0.0.1:0", "--database", &place.database]));
    let descriptors = format!("/proc/{}/fd", service.child.id());
    let in_use = || std::fs::read_dir(&descriptors).expect("the process runs").count();
    let start = now();
    let crowd: Vec<_> = (0..2 * DESCRIPTORS)
        .map(|_| connect(&service.base_url()).expect("the kernel takes it"))
        .collect();
    until("no descriptor is left", PATIENCE, || (in_use() >= DESCRIPTORS).then_some(()));
    drop(crowd);
    assert_eq!(get(&service.base_url(), "/readyz").status, 200);
    let rests = start.elapsed().div_duration_f64(PAUSE) as usize + 5;
    let ended = service.stop();
    let failures = ended.stderr.matches("could not accept").count();
    assert!((1..=rests).contains(&failures), "{failures} failures, at most {rests} rests");
    assert_eq!(ended.code, Some(0));
}

#[test]
fn over_tls_http_1_and_http_2_are_answered() {
    let place = Place::sqlite();
    let service = serve_tls(&place);
    assert!(service.base_url().starts_with("https://127.0.0.1:"), "{}", service.base_url());
    for (version, told) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let ran = curl(&place.folder, &service, version);
        assert_eq!(
            (ran.code, ran.stdout),
            (Some(0), format!("ok\n{told} 200\n")),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn plain_http_on_the_tls_port_is_not_answered() {
    let place = Place::sqlite();
    let service = serve_tls(&place);
    let plain = service.base_url().replace("https", "http");
    let mut stream = connect(&plain).expect("the server accepts");
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\n").expect("the server reads");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/"), "{answer:?}");
}

#[test]
fn a_client_that_never_shakes_hands_is_closed() {
    let place = Place::sqlite();
    let service = serve_tls(&place);
    let mut stream = connect(&service.base_url().replace("https", "http")).expect("it accepts");
    stream.set_read_timeout(Some(REAPED_WITHIN)).expect("a timeout can be set");
    assert_eq!(stream.read(&mut [0; 16]).expect("it is closed in time"), 0);
}

#[test]
fn tls_files_that_cannot_be_used_are_refused_by_name() {
    let place = Place::sqlite();
    let (certificate, key) = certificate(&place.folder);
    let missing = place.folder.path("missing.pem");
    for (certificate, key, named) in
        [(&missing, &key, &missing), (&certificate, &missing, &missing), (&key, &key, &key)]
    {
        let files = ["--tls-cert", certificate, "--tls-key", key];
        place.svc(&[&["serve", "--listen", "127.0.0.1:0"], &files[..]].concat()).refused(named);
    }
    place.svc(&["serve", "--tls-cert", &certificate]).refused("--tls-cert and --tls-key");
}

fn serve_tls(place: &Place) -> Service {
    let (certificate, key) = certificate(&place.folder);
    Service::start(&mut place.serving(&["--tls-cert", &certificate, "--tls-key", &key]))
}

/// A self-signed certificate for 127.0.0.1 and its key.
fn certificate(folder: &Folder) -> (String, String) {
    let (certificate, key) = (folder.path("cert.pem"), folder.path("key.pem"));
    let made = run(Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=test", "-addext"])
        .args(["subjectAltName=IP:127.0.0.1", "-out", &certificate, "-keyout", &key]));
    assert_eq!(made.code, Some(0), "{made:?}");
    (certificate, key)
}

fn curl(folder: &Folder, service: &Service, version: &str) -> Ran {
    run(Command::new("curl")
        .args(["--silent", "--show-error", "--noproxy", "*", version, "--cacert"])
        .args([&folder.path("cert.pem"), "--write-out", "%{http_version} %{http_code}\n"])
        .arg(format!("{}/livez", service.base_url())))
}
