//! The client against services that misbehave: slow, forgetful, broken. Each is a real server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_client::{Client, Credentials, Error, NewOrder, Urls};

const TOKEN: &str = r#"{"access_token":"T","token_type":"Bearer","expires_in":3600}"#;
const ORDER: &str = r#"{"code":200,"message":"OK","data":{"externalTransactionId":"order_1","paymentStatus":"PEN","referenceNumber":"R1","amount":15000}}"#;
const DEAD_TOKEN: &str =
    r#"{"code":401,"message":"O token expirou.","error":"invalid_token","requestId":"abc"}"#;

/// Answers the calls to `/token` and all others as told; keeps their heads.
struct Fake {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<String>>>,
}

type Answer = (u16, String);

impl Fake {
    fn start(answer: impl Fn(&str, usize) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::<Mutex<Vec<String>>>::default();
        let (kept, answer) = (Arc::clone(&calls), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &kept, &*answer));
            }
        });
        Self { address, calls }
    }

    fn client(&self) -> Client {
        self.client_that_waits(None)
    }

    fn client_that_waits(&self, timeout: Option<Duration>) -> Client {
        let credentials = Credentials {
            publishable_key: "pk_test_0b6f".into(),
            client_id: "svc_1".into(),
            client_secret: "svcsec_1".to_owned().into(),
        };
        Client::with_timeout(&format!("http://{}", self.address), credentials, timeout).unwrap()
    }

    fn count(&self, path: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|head| head.contains(path)).count()
    }
}

/// `None` hangs up without a word.
fn serve(
    stream: &TcpStream,
    kept: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str, usize) -> Option<Answer>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            })
            .unwrap_or(0);
        reader.by_ref().take(length).read_to_end(&mut Vec::new()).ok()?;
        let path = head.split_whitespace().nth(1)?.to_owned();
        let number = {
            let mut calls = kept.lock().unwrap();
            calls.push(head);
            calls.iter().filter(|head| head.contains(&path)).count()
        };
        let (status, text) = answer(&path, number)?;
        let length = text.len();
        let later = if status == 429 { "retry-after: 60\r\n" } else { "" };
        write!(
            &mut &*stream,
            "HTTP/1.1 {status} said\r\n{later}content-length: {length}\r\n\r\n{text}"
        )
        .ok()?;
    }
}

fn order() -> NewOrder {
    NewOrder {
        external_transaction_id: "order_1".into(),
        client_id: "user-1".into(),
        name: "Livro".into(),
        amount: 15_000,
        quantity: 1,
        urls: Urls {
            return_url: "https://a.ao/ok".into(),
            cancel_url: "https://a.ao/no".into(),
            webhook_url: "https://a.ao/hook".into(),
        },
    }
}

fn said(status: u16, text: &str) -> Option<Answer> {
    Some((status, text.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_serves_all_calls_however_many_begin_at_once() {
    let fake = Fake::start(|path, _| said(200, if path == "/token" { TOKEN } else { ORDER }));
    let client = fake.client();
    let calls: Vec<_> = (0..32)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.create_payment_order(&order()).await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), "R1");
    }
    assert_eq!(fake.count("POST /token"), 1);
    assert_eq!(fake.count("createPaymentOrder"), 32);
}

#[tokio::test]
async fn what_the_contract_promises_of_an_answer_is_enough() {
    let (token, created) = (r#"{"access_token":"T"}"#, r#"{"data":{"referenceNumber":"R1"}}"#);
    let fake =
        Fake::start(move |path, _| said(201, if path == "/token" { token } else { created }));
    assert_eq!(fake.client().create_payment_order(&order()).await.unwrap(), "R1");
}

#[tokio::test]
async fn a_token_about_to_expire_is_not_used_again() {
    let short = TOKEN.replace("3600", "60");
    let fake = Fake::start(move |path, _| said(200, if path == "/token" { &short } else { ORDER }));
    let client = fake.client();
    for _ in 0..2 {
        client.payment_by_external_transaction("order_1").await.unwrap();
    }
    assert_eq!(fake.count("POST /token"), 2);
}

#[tokio::test]
async fn a_dead_token_is_replaced_once() {
    let fake = Fake::start(|path, number| match (path, number) {
        ("/token", _) => said(200, TOKEN),
        (_, 1) => said(401, DEAD_TOKEN),
        _ => said(200, ORDER),
    });
    fake.client().create_payment_order(&order()).await.unwrap();
    assert_eq!((fake.count("POST /token"), fake.count("createPaymentOrder")), (2, 2));
}

#[tokio::test]
async fn a_second_401_is_told_as_the_service_said_it() {
    let fake = Fake::start(
        |path, _| if path == "/token" { said(200, TOKEN) } else { said(401, DEAD_TOKEN) },
    );
    let fault = fake.client().create_payment_order(&order()).await.unwrap_err();
    let Error::Refused { status: 401, error, message, request_id, .. } = &fault else {
        panic!("{fault}")
    };
    assert_eq!((error.as_str(), message.as_str()), ("invalid_token", "O token expirou."));
    assert_eq!(request_id, "abc");
    assert_eq!(fake.count("createPaymentOrder"), 2);
}

#[tokio::test]
async fn passing_failures_are_tried_again_and_then_told() {
    let healed = Fake::start(|path, number| match (path, number) {
        ("/token", _) => said(200, TOKEN),
        (_, 1) => said(503, "upstream is away"),
        (_, 2) => None,
        _ => said(200, ORDER),
    });
    healed.client().create_payment_order(&order()).await.unwrap();
    assert_eq!(healed.count("createPaymentOrder"), 3);
    let never =
        Fake::start(|path, _| if path == "/token" { said(200, TOKEN) } else { said(500, "{}") });
    let fault = never.client().create_payment_order(&order()).await.unwrap_err();
    assert!(matches!(fault, Error::Foreign { status: 500, .. }), "{fault}");
    assert_eq!(never.count("createPaymentOrder"), 3);
}

#[tokio::test]
async fn who_is_asked_to_come_back_in_a_minute_does_not_come_at_once() {
    let busy =
        Fake::start(|path, _| if path == "/token" { said(200, TOKEN) } else { said(429, "{}") });
    let fault = busy.client().create_payment_order(&order()).await.unwrap_err();
    let minute = Some(std::time::Duration::from_secs(60));
    assert!(
        matches!(fault, Error::Foreign { retry_after, .. } if retry_after == minute),
        "{fault}"
    );
    assert_eq!(busy.count("createPaymentOrder"), 1);
}

#[tokio::test]
async fn a_token_that_fails_to_come_is_asked_for_again() {
    let fake = Fake::start(|path, number| match (path, number) {
        ("/token", 1) => said(503, "not now"),
        ("/token", 2) => None,
        ("/token", _) => said(200, TOKEN),
        _ => said(200, ORDER),
    });
    fake.client().create_payment_order(&order()).await.unwrap();
    assert_eq!((fake.count("POST /token"), fake.count("createPaymentOrder")), (3, 1));
}

/// On one thread, so that all have asked before the first is answered.
#[tokio::test(flavor = "current_thread")]
async fn whoever_waits_for_a_token_shares_its_failure() {
    let refused = r#"{"code":401,"message":"Não.","error":"invalid_client","requestId":"r"}"#;
    let fake = Fake::start(move |_, _| said(401, refused));
    let client = fake.client();
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.create_payment_order(&order()).await.unwrap_err() })
        })
        .collect();
    for call in calls {
        let fault = call.await.unwrap();
        assert!(matches!(fault, Error::Refused { status: 401, .. }), "{fault}");
    }
    assert_eq!(fake.count("POST /token"), 1, "wrong credentials are not tried again either");
    // It is not kept for later ones.
    client.create_payment_order(&order()).await.unwrap_err();
    assert_eq!(fake.count("POST /token"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_token_died_on_the_way_fetch_one_new_token() {
    let together = Arc::new(std::sync::Barrier::new(8));
    let fake = Fake::start(move |path, number| match (path, number) {
        ("/token", number) => said(200, &TOKEN.replace("\"T\"", &format!("\"T{number}\""))),
        // All are under way with the first token when it dies.
        (_, 1..=8) => {
            together.wait();
            said(401, DEAD_TOKEN)
        }
        _ => said(200, ORDER),
    });
    let client = fake.client();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.create_payment_order(&order()).await.unwrap() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!((fake.count("POST /token"), fake.count("createPaymentOrder")), (2, 16));
}

#[tokio::test]
async fn a_token_of_nonsense_is_no_token() {
    let forever = TOKEN.replace("3600", "18446744073709551615");
    let fake =
        Fake::start(move |path, _| said(200, if path == "/token" { &forever } else { ORDER }));
    fake.client().create_payment_order(&order()).await.unwrap();
    for token in ["", "a b", r"a\r\nx-evil: 1", "\u{e9}"] {
        let text = TOKEN.replace("\"T\"", &format!("\"{token}\""));
        let fake =
            Fake::start(move |path, _| said(200, if path == "/token" { &text } else { ORDER }));
        let fault = fake.client().create_payment_order(&order()).await.unwrap_err();
        assert!(matches!(fault, Error::Malformed(_)), "{token:?}: {fault}");
    }
}

#[tokio::test]
async fn a_refusal_is_final_and_names_the_fields() {
    let text = r#"{"code":422,"message":"Corpo inválido.","error":"invalid_body","requestId":"r",
                   "details":[{"field":"amount","issue":"not_an_integer"}]}"#;
    let fake = Fake::start(
        move |path, _| {
            if path == "/token" { said(200, TOKEN) } else { said(422, text) }
        },
    );
    let fault = fake.client().create_payment_order(&order()).await.unwrap_err();
    let Error::Refused { details, .. } = &fault else { panic!("{fault}") };
    assert_eq!(details[0].field, "amount");
    assert_eq!(fake.count("createPaymentOrder"), 1);
}

#[tokio::test]
async fn a_service_that_hangs_is_given_up() {
    let waiting = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&waiting);
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let fake = Fake::start(move |_, _| {
        seen.fetch_add(1, Ordering::Relaxed);
        let _ = held.lock().unwrap().recv();
        None
    });
    let client = fake.client_that_waits(Some(Duration::from_millis(50)));
    let fault = client.payment_by_external_transaction("order_1").await.unwrap_err();
    assert!(matches!(fault, Error::TimedOut), "{fault}");
    assert!(waiting.load(Ordering::Relaxed) >= 1);
    drop(release);
}

#[tokio::test]
async fn nobody_there_and_nonsense_are_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Fake { address: closed, calls: Arc::default() };
    let fault = nobody.client().payment_by_external_transaction("a").await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!("http://{closed} cannot be reached: connection refused. Is the service running?")
    );
    assert!(matches!(fault, Error::Unreachable(_)), "{fault}");
    for nonsense in ["<html>", "{}", r#"{"data":{"paymentStatus":"REF"}}"#, "[]", "null"] {
        let fake =
            Fake::start(move |path, _| said(200, if path == "/token" { TOKEN } else { nonsense }));
        let fault = fake.client().payment_by_external_transaction("a").await.unwrap_err();
        assert!(matches!(fault, Error::Malformed(_)), "{nonsense}: {fault}");
        assert!(fault.to_string().contains("does not answer like this service"), "{fault}");
    }
    let fake = Fake::start(|_, _| said(200, "no token"));
    let fault = fake.client().payment_by_external_transaction("a").await.unwrap_err();
    assert!(matches!(fault, Error::Malformed(_)), "{fault}");
}

#[tokio::test]
async fn whoever_else_answers_is_known_by_its_words() {
    let of_another = r#"{"code":404,"error":"not_found","message":"There is no such page."}"#;
    for (status, words, question) in [
        (404, of_another, "is SVC_BASE_URL right?"),
        (404, "", "is SVC_BASE_URL right?"),
        (502, "<html>", "is the service behind it running?"),
    ] {
        let fake = Fake::start(move |_, _| said(status, words));
        let fault = fake.client().payment_by_external_transaction("a").await.unwrap_err();
        let told = format!(
            "http://{} does not answer like this service ({status}): {question}",
            fake.address
        );
        assert_eq!(fault.to_string(), told, "{words}");
    }
    let ours = r#"{"code":404,"error":"order_not_found","message":"Não."}"#;
    let fake = Fake::start(move |path, _| match path {
        "/token" => said(200, TOKEN),
        _ => said(404, ours),
    });
    let fault = fake.client().payment_by_external_transaction("a").await.unwrap_err();
    assert_eq!(fault.to_string(), "Não. (404 order_not_found)");
}

#[tokio::test]
async fn an_address_is_told_without_its_password() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let credentials = Credentials {
        publishable_key: "pk_test_0b6f".into(),
        client_id: "svc_1".into(),
        client_secret: "svcsec_1".to_owned().into(),
    };
    let client = Client::new(&format!("http://ana:hush@{closed}/a?b=hush"), credentials).unwrap();
    let fault = client.payment_by_external_transaction("a").await.unwrap_err();
    let told = format!("http://{closed} cannot be reached: ");
    assert!(fault.to_string().starts_with(&told), "{fault}");
}

#[test]
fn secrets_do_not_show_in_debug_prints() {
    let credentials = Credentials {
        publishable_key: "pk_test_0b6f".into(),
        client_id: "svc_1".into(),
        client_secret: "svcsec_hush".to_owned().into(),
    };
    assert!(!format!("{credentials:?}").contains("hush"));
    let Err(Error::Settings(told)) = Client::new("nonsense", credentials) else { panic!() };
    assert!(told.contains("the address of the service") && !told.contains("hush"));
}

#[tokio::test]
async fn every_call_can_be_a_task_of_its_own() {
    const FEED: &str =
        r#"{"code":200,"message":"OK","data":{"events":[],"nextCursor":"evt_1","hasMore":false}}"#;
    let fake = Fake::start(|path, _| {
        let text = match path {
            "/token" => TOKEN,
            path if path.starts_with("/svcpartner/events") => FEED,
            _ => ORDER,
        };
        Some((200, text.to_owned()))
    });
    let client = Arc::new(fake.client());
    let (made, asked, fed) = (client.clone(), client.clone(), client);
    let created = tokio::spawn(async move { made.create_payment_order(&order()).await });
    let found = tokio::spawn(async move { asked.payment_by_external_transaction("order_1").await });
    let feed = tokio::spawn(async move { fed.events(Some("a&b")).await });
    assert_eq!(created.await.unwrap().unwrap(), "R1");
    assert_eq!(found.await.unwrap().unwrap().reference_number, "R1");
    assert_eq!(feed.await.unwrap().unwrap().next_cursor.as_deref(), Some("evt_1"));
    assert_eq!(fake.count("applicationUUID=0b6f&after=a%26b"), 1);
}
