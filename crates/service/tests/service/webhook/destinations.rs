//! Whom we send to: certificates that hold, names that are found, addresses that are public
//! (G15).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::Version;
use svc_service::config::Config;
use svc_service::domain::{Author, Order, WebhookHosts};
use svc_service::store::EventState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::*;

on_both_engines! {
    a_good_certificate_is_trusted_over_http_1_and_http_2,
    a_bad_certificate_is_a_tls_failure_and_nothing_is_sent,
    an_authority_nobody_named_is_not_trusted,
    a_name_of_this_machine_is_delivered_to_where_that_is_allowed,
    a_name_with_an_address_that_is_not_public_is_refused,
    a_name_that_flips_between_public_and_private_never_gets_a_connection,
    a_name_that_is_not_found_is_tried_again,
    a_silent_name_server_is_named_as_the_reason,
    no_spelling_of_a_private_address_gets_a_connection,
    a_name_is_looked_up_again_although_its_connection_is_in_use,
    hosts_named_since_the_order_was_made_count,
}

const HOST: &str = "shop.example.com";
/// Passes for public, and nobody is there: it was of the 6bone, which gave its addresses back.
const PUBLIC: &str = "3ffe::1";
const NOT_PUBLIC: &str = "the host has an address that is not public";

/// Where this receiver would be found under a name.
fn url(scheme: &str, host: &str, receiver: &Receiver) -> String {
    format!("{scheme}://{host}:{}/hook", receiver.address().port())
}

/// Asks this name server, and sends to public addresses only.
fn public_only(name_server: SocketAddr) -> impl FnOnce(&mut Config) {
    move |config| {
        config.private_webhook_targets = false;
        config.webhooks.name_servers = vec![name_server];
    }
}

/// A merchant of its own for each URL, with one event that is due.
async fn order_to(delivery: &TestDelivery, url: &str) -> Order {
    let shop = delivery.shop(url).await;
    delivery.paid_order(&shop, "order_1").await
}

async fn a_good_certificate_is_trusted_over_http_1_and_http_2(database: TestDatabase) {
    let authority = Authority::new();
    let names = NameServer::saying(&["127.0.0.1"]).await;
    let mut delivery = TestDelivery::start_with(database, |config| {
        config.webhooks.name_servers = vec![names.address()];
        config.webhooks.certificates = Some(authority.file().to_owned());
    })
    .await;
    let cases: [(&[&str], Version); 4] = [
        (&[], Version::HTTP_11),
        (&["http/1.1"], Version::HTTP_11),
        (&["h2"], Version::HTTP_2),
        (&["h2", "http/1.1"], Version::HTTP_2),
    ];
    for (offered, version) in cases {
        let receiver = Receiver::secure(authority.good(HOST, offered)).await;
        let shop = delivery.shop(&url("https", HOST, &receiver)).await;
        let mut orders = Vec::new();
        for number in 0..20 {
            orders.push(delivery.paid_order(&shop, &format!("order_{number}")).await);
        }
        delivery.drain().await;
        for order in &orders {
            let attempt = delivery.delivered_at_once(order, "over TLS").await;
            assert_eq!(attempt.http_status, Some(200));
        }
        let requests = receiver.requests();
        assert_eq!(requests.len(), orders.len());
        assert!(requests.iter().all(|request| request.version == version), "{offered:?}");
    }
}

async fn a_bad_certificate_is_a_tls_failure_and_nothing_is_sent(database: TestDatabase) {
    let authority = Authority::new();
    let names = NameServer::saying(&["127.0.0.1"]).await;
    let mut delivery = TestDelivery::start_with(database, |config| {
        config.webhooks.name_servers = vec![names.address()];
        config.webhooks.certificates = Some(authority.file().to_owned());
    })
    .await;
    // A hello of TLS 1.1, which is all this server speaks.
    let old = Receiver::raw(|mut stream| async move {
        let mut greeting = [0; 4_096];
        let _ = stream.read(&mut greeting).await;
        let hello = [&[3, 2][..], &[7; 32], &[0, 0xc0, 0x13, 0]].concat();
        let head = [22, 3, 2, 0, hello.len() as u8 + 4, 2, 0, 0, hello.len() as u8];
        let _ = stream.write_all(&[&head[..], &hello].concat()).await;
        let _ = stream.read(&mut greeting).await;
    })
    .await;
    let cases = [
        ("expired", Receiver::secure(authority.expired(HOST)).await),
        ("not yet valid", Receiver::secure(authority.not_yet_valid(HOST)).await),
        ("another host", Receiver::secure(authority.good("other.example.com", &[])).await),
        ("an address", Receiver::secure(authority.good("127.0.0.1", &[])).await),
        ("a host below", Receiver::secure(authority.good("*.shop.example.com", &[])).await),
        ("self-signed", Receiver::secure(self_signed(HOST)).await),
        ("another authority", Receiver::secure(Authority::new().good(HOST, &[])).await),
        ("no common protocol", Receiver::secure(authority.good(HOST, &["smtp"])).await),
        ("TLS 1.1", old),
        ("plain text", Receiver::answering(200).await),
    ];
    let mut orders = Vec::new();
    for (_, receiver) in &cases {
        orders.push(order_to(&delivery, &url("https", HOST, receiver)).await);
    }
    delivery.drain().await;
    for ((what, receiver), order) in cases.iter().zip(&orders) {
        let attempt = delivery.failed_once(order, what).await;
        assert_eq!(attempt.http_status, None, "{what}");
        let error = attempt.error.unwrap();
        match *what {
            "plain text" => assert!(error.contains("does not speak TLS: is it http?"), "{error}"),
            _ => assert!(!error.is_empty(), "{what}"),
        }
        assert_eq!((receiver.connections(), receiver.requests().len()), (1, 0), "{what}");
    }
    assert_eq!(delivery.ended("tls"), cases.len());
}

async fn an_authority_nobody_named_is_not_trusted(database: TestDatabase) {
    let names = NameServer::saying(&["127.0.0.1"]).await;
    let receiver = Receiver::secure(Authority::new().good(HOST, &[])).await;
    let mut delivery = TestDelivery::start_with(database, |config| {
        config.webhooks.name_servers = vec![names.address()];
    })
    .await;
    let order = order_to(&delivery, &url("https", HOST, &receiver)).await;
    delivery.drain().await;
    let attempt = delivery.failed_once(&order, "an unknown authority").await;
    let error = attempt.error.unwrap();
    assert!(error.contains("UnknownIssuer"), "{error}");
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 0));
}

async fn hosts_named_since_the_order_was_made_count(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let order = order_to(&delivery, &receiver.url()).await;
    let name = async |delivery: &TestDelivery, hosts: &[&str]| {
        let app = &delivery.app;
        let application = app.directory.known().application_by_id(order.application).cloned();
        let uuid = application.unwrap().uuid.clone();
        let (hosts, by) = (WebhookHosts::parse(hosts).unwrap(), Author::command_line(None));
        let set = app.store.set_webhook_hosts(&uuid, Some(&hosts), app.clock.now(), &by);
        set.await.unwrap();
        app.directory.refresh(&app.store).await.unwrap();
    };
    name(&delivery, &["shop.example.com", "127.0.0.2"]).await;
    delivery.drain().await;
    let attempt = delivery.failed_once(&order, "another host").await;
    let error = attempt.error.unwrap();
    assert!(error.contains("one of the hosts named for its application"), "{error}");
    assert_eq!(receiver.connections(), 0);
    assert_eq!(delivery.ended("refused"), 1);
    name(&delivery, &["shop.example.com", "127.0.0.1"]).await;
    assert!(delivery.step().await);
    assert_eq!(receiver.requests().len(), 1);
    assert_eq!(delivery.event(&order).await.state, EventState::Delivered);
}

async fn a_name_of_this_machine_is_delivered_to_where_that_is_allowed(database: TestDatabase) {
    let names = NameServer::saying(&["127.0.0.1"]).await;
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start_with(database, |config| {
        config.webhooks.name_servers = vec![names.address()];
    })
    .await;
    let order = order_to(&delivery, &url("http", HOST, &receiver)).await;
    delivery.drain().await;
    delivery.delivered_at_once(&order, "a name").await;
    let requests = receiver.requests();
    let host = format!("{HOST}:{}", receiver.address().port());
    assert_eq!(requests[0].header("host"), host);
    assert!(names.asked(HOST) > 0);
}

async fn a_name_with_an_address_that_is_not_public_is_refused(database: TestDatabase) {
    let answers: &[&[&str]] = &[
        &["127.0.0.1"],
        &["127.8.8.8"],
        &["0.0.0.0"],
        &["10.0.0.1"],
        &["100.64.0.1"],
        &["169.254.169.254"],
        &["172.16.0.1"],
        &["192.168.1.1"],
        &["255.255.255.255"],
        &["::"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["::ffff:169.254.169.254"],
        &["::127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::"],
        &["fe80::1"],
        &["fd00::2"],
        &["127.0.0.1", "::1"],
        // One is enough to refuse them all, wherever it stands.
        &["127.0.0.1", PUBLIC],
        &[PUBLIC, "::1"],
        &["::1", PUBLIC, "3ffe::2"],
        &[PUBLIC, "3ffe::2", "3ffe::3", "127.0.0.1"],
        &[PUBLIC, "::ffff:127.0.0.1", "3ffe::2"],
    ];
    let receiver = Receiver::everywhere().await;
    // The first label of a name is the number of its answer.
    let names = NameServer::start(|name, _| {
        let number: usize = name.split('.').next().unwrap().parse().unwrap();
        DnsAnswer::addresses(answers[number])
    })
    .await;
    let mut delivery = TestDelivery::start_with(database, public_only(names.address())).await;
    let mut orders = Vec::new();
    for number in 0..answers.len() {
        let host = format!("{number}.example.com");
        orders.push(order_to(&delivery, &url("http", &host, &receiver)).await);
    }
    delivery.drain().await;
    for (answer, order) in answers.iter().zip(&orders) {
        let attempt = delivery.failed_once(order, &format!("{answer:?}")).await;
        assert_eq!(attempt.error.as_deref(), Some(NOT_PUBLIC), "{answer:?}");
    }
    assert_eq!(receiver.connections(), 0);
    assert_eq!(delivery.ended("refused"), answers.len());
}

async fn a_name_that_flips_between_public_and_private_never_gets_a_connection(
    database: TestDatabase,
) {
    const NAMES: usize = 100;
    const ATTEMPTS: usize = 10;
    let receiver = Receiver::everywhere().await;
    // Whoever asks once to check and again to connect is told something else the second time.
    let names = NameServer::start(|_, number| match number % 2 {
        0 => DnsAnswer::addresses(&["127.0.0.1", "::1"]),
        _ => DnsAnswer::addresses(&[PUBLIC]),
    })
    .await;
    let mut delivery = TestDelivery::start_with(database, public_only(names.address())).await;
    let mut shop = delivery.shop("").await;
    let mut orders = Vec::new();
    for number in 0..NAMES {
        shop.webhook_url = url("http", &format!("flip{number}.example.com"), &receiver);
        orders.push(delivery.paid_order(&shop, &format!("order_{number}")).await);
    }
    for _ in 0..ATTEMPTS {
        delivery.drain().await;
        // Longer than any of these waits.
        delivery.advance_s(10 * 3_600);
    }
    let mut refused = 0;
    for (number, order) in orders.iter().enumerate() {
        let event = delivery.event(order).await;
        assert_eq!((event.state, event.attempts as usize), (EventState::Queued, ATTEMPTS));
        let attempts = delivery.attempts(order).await;
        assert!(attempts.iter().all(|attempt| attempt.http_status.is_none()), "{attempts:?}");
        let private = attempts.iter().filter(|a| a.error.as_deref() == Some(NOT_PUBLIC));
        refused += private.count();
        let asked = names.asked(&format!("flip{number}.example.com"));
        assert!(asked >= ATTEMPTS, "an answer without a life was kept");
    }
    assert_eq!(receiver.connections(), 0);
    assert_eq!(delivery.ended("refused"), refused);
    // Two of three, but for questions that a busy machine made it ask twice.
    let refused_of_100 = refused * 100 / (NAMES * ATTEMPTS);
    assert!((40..=90).contains(&refused_of_100), "{refused} refused: the answers did not flip");
}

async fn a_name_that_is_not_found_is_tried_again(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    // At first all is wrong, then all is well.
    let well = Arc::new(AtomicBool::new(false));
    let is_well = Arc::clone(&well);
    let names = NameServer::start(move |name, _| match name.split('.').next().unwrap() {
        _ if is_well.load(Ordering::Acquire) => DnsAnswer::addresses(&["127.0.0.1"]),
        "unknown" => DnsAnswer::NoSuchName,
        "failing" => DnsAnswer::ServerFailure,
        "silent" => DnsAnswer::Silence,
        _ => DnsAnswer::Addresses(Vec::new()),
    })
    .await;
    let mut delivery = TestDelivery::start_with(database, |config| {
        config.webhooks.name_servers = vec![names.address()];
    })
    .await;
    let mut orders = Vec::new();
    for name in ["unknown", "failing", "empty", "silent"] {
        let url = url("http", &format!("{name}.example.com"), &receiver);
        orders.push((name, order_to(&delivery, &url).await));
    }
    delivery.drain().await;
    for (name, order) in &orders {
        let error = delivery.failed_once(order, name).await.error.unwrap();
        match *name {
            "unknown" | "empty" => assert_eq!(error, format!("no such host: {name}.example.com")),
            "silent" => {}
            _ => assert!(error.starts_with("the name of the host was not found"), "{error}"),
        }
    }
    assert_eq!(receiver.connections(), 0);
    well.store(true, Ordering::Release);
    while delivery.step().await {}
    for (name, order) in &orders {
        let event = delivery.event(order).await;
        assert_eq!((event.state, event.attempts), (EventState::Delivered, 2), "{name}");
    }
}

async fn a_silent_name_server_is_named_as_the_reason(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let names = NameServer::start(|_, _| DnsAnswer::Silence).await;
    let mut delivery = TestDelivery::start_with(database, |config| {
        config.webhooks.name_servers = vec![names.address()];
    })
    .await;
    let order = order_to(&delivery, &url("http", HOST, &receiver)).await;
    delivery.drain().await;
    // The merchant never heard of it: "no complete answer" would send people the wrong way.
    let error = delivery.failed_once(&order, "silence").await.error.unwrap();
    assert!(error.starts_with("the name of the host was not found"), "{error}");
    assert_eq!((receiver.connections(), delivery.ended("dns")), (0, 1));
}

/// The ways to write an IPv4 address that the URL standard reads as that address.
fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let (whole, low) = (u32::from(address), u32::from(address) & 0x00ff_ffff);
    let tail = u32::from(address) & 0xffff;
    let circled = |octet: u8| -> String {
        let digits = octet.to_string().into_bytes().into_iter();
        digits.map(|digit| char::from_u32(0xff10 + u32::from(digit - b'0')).unwrap()).collect()
    };
    vec![
        format!("{a}.{b}.{c}.{d}"),
        format!("{a}.{b}.{c}.{d}."),
        format!("{whole}"),
        format!("{whole:#x}"),
        format!("{whole:#X}").replace("0X", "0x"),
        format!("0{whole:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0x{a:08x}.{b}.0{c:o}.{d}"),
        format!("{a}.{low}"),
        format!("{a}.{b}.{tail}"),
        format!("%3{}{}.{b}.{c}.{d}", &a.to_string()[..1], &a.to_string()[1..]),
        format!("{}\u{3002}{}\u{ff0e}{}\u{ff61}{}", circled(a), circled(b), circled(c), circled(d)),
        format!("[::ffff:{a}.{b}.{c}.{d}]"),
        format!("[0:0:0:0:0:FFFF:{:x}:{tail:x}]", whole >> 16),
        format!("[::{a}.{b}.{c}.{d}]"),
        format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
        format!("[2002:{:x}:{tail:x}::1]", whole >> 16),
    ]
}

async fn no_spelling_of_a_private_address_gets_a_connection(database: TestDatabase) {
    let receiver = Receiver::everywhere().await;
    let names = NameServer::saying(&["127.0.0.1", "::1"]).await;
    let mut delivery = TestDelivery::start_with(database, public_only(names.address())).await;
    let mut hosts: Vec<_> =
        [[127, 0, 0, 1], [127, 255, 0, 9], [0, 0, 0, 0], [10, 0, 0, 1], [169, 254, 169, 254]]
            .into_iter()
            .flat_map(|octets| spellings(octets.into()))
            .collect();
    let more = ["[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[fe80::1]", "[fd00::1]", "[2001::1]"];
    let local = ["localhost", "LOCALHOST.", "a.localhost", "shop.local", "shop", "db.internal"];
    hosts.extend(more.into_iter().chain(local).map(str::to_owned));
    assert!(hosts.len() >= 80, "{}", hosts.len());
    let mut orders = Vec::new();
    for host in &hosts {
        // Taken as if private targets were allowed at the time; now they are not.
        orders.push(order_to(&delivery, &url("http", host, &receiver)).await);
    }
    delivery.drain().await;
    for (host, order) in hosts.iter().zip(&orders) {
        let attempt = delivery.failed_once(order, host).await;
        assert_eq!(attempt.error.as_deref(), Some("the URL must name a public host"), "{host}");
    }
    // Nor when it stands in the outbox as it was written.
    let changes = hosts.iter().zip(&orders).map(|(host, order)| {
        let (written, reference) = (url("http", host, &receiver), order.reference_number.as_str());
        let change = format!("update outbox set webhook_url = '{written}'");
        format!("{change} where reference_number = '{reference}';")
    });
    delivery.database.sql(&changes.collect::<String>()).await;
    delivery.advance_s(10);
    delivery.drain().await;
    assert_eq!(receiver.connections(), 0);
    assert_eq!(delivery.ended("refused"), 2 * hosts.len());
}

async fn a_name_is_looked_up_again_although_its_connection_is_in_use(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let names = NameServer::saying(&["127.0.0.1"]).await;
    let mut delivery = TestDelivery::start_with(database, |config: &mut Config| {
        config.webhooks.name_servers = vec![names.address()];
    })
    .await;
    let shop = delivery.shop(&url("http", HOST, &receiver)).await;
    for (number, connections) in [1, 1, 1, 2, 2, 2, 3].into_iter().enumerate() {
        delivery.paid_order(&shop, &format!("order_{number}")).await;
        delivery.drain().await;
        assert_eq!(receiver.connections(), connections, "after {number} times ten seconds");
        delivery.advance_s(10);
    }
    assert_eq!(names.asked(HOST), 3);
}
