//! Health, metrics, the API's description and its page.

use hyper::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::json;
use svc_service::credentials;
use svc_service::domain::{About, AttemptId, Centimos, Notice, ReferenceNumber, Word};
use svc_service::orders;
use svc_service::store::Created;

use crate::support::{
    Receiver, TestDatabase, TestService, figure, new_order, on_both_engines, patiently, payment_of,
};

on_both_engines! {
    health_and_metrics_tell_what_happened,
    what_waits_for_a_merchant_stands_in_the_figures,
    a_clock_that_is_not_the_databases_is_told,
    nothing_expires_by_a_clock_that_is_wrong_from_the_start,
    the_description_lists_every_call_and_the_page_shows_it,
    the_page_needs_no_script_and_no_network,
    a_page_of_another_version_finds_files_that_are_not_kept,
    routes_and_methods_that_do_not_exist_answer_in_the_error_shape,
    production_refuses_what_its_proxy_got_without_tls,
    production_answers_nobody_past_its_proxy,
    figures_are_for_who_is_near,
    what_browsers_refuse_on_our_pages_is_counted,
    a_year_of_https_is_asked_for_in_production_only,
}

/// Whoever sends traffic here is to send it elsewhere; whoever restarts processes is not to.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_cannot_be_written_is_not_ready() {
    let database = TestDatabase::sqlite();
    let path = database.path();
    let service = TestService::start(database).await;
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    assert_eq!(service.get("/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(service.get("/livez").await.status, StatusCode::OK);
    other.execute_batch("rollback").unwrap();
    assert_eq!(service.get("/readyz").await.status, StatusCode::OK);
}

/// Anybody may ask; what that takes would be missing where money is.
#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_whether_it_is_ready_are_one_question() {
    const ASKED: usize = 300;
    let service = TestService::start(TestDatabase::sqlite()).await;
    let written = async || {
        let figures = service.get("/metrics").await.text;
        figure::<u64>(&figures, "svc_store_batch_size_sum")
    };
    let before = written().await;
    for _ in 0..ASKED {
        assert_eq!(service.get("/readyz").await.status, StatusCode::OK);
    }
    let questions = written().await - before;
    assert!(questions < ASKED as u64 / 2, "{questions} writes for {ASKED} questions");
}

async fn a_year_of_https_is_asked_for_in_production_only(database: TestDatabase) {
    const NAME: &str = "strict-transport-security";
    let sandbox = TestService::start(TestDatabase::sqlite()).await;
    assert_eq!(sandbox.get("/docs").await.header(NAME), None);
    let production = TestService::start_production(database, "127.0.0.0/8").await;
    let told = production.get("/docs").await;
    assert_eq!(told.header(NAME), Some("max-age=31536000; includeSubDomains"));
}

async fn what_waits_for_a_merchant_stands_in_the_figures(database: TestDatabase) {
    const AWAY_S: i64 = 90;
    let receiver = Receiver::answering(500).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let created = service.create(&token, &service.order_to("order_1", &receiver.url())).await;
    let created = created.json();
    let reference = created["data"]["referenceNumber"].as_str().unwrap();
    let reference = ReferenceNumber::parse(reference).unwrap();
    let order = service.app.store.order_by_reference(&reference).await.unwrap().unwrap();
    orders::settle(&service.app, payment_of(&order), "").await.unwrap();
    receiver.wait_for(1).await;
    service.app.clock.advance(SignedDuration::from_secs(AWAY_S));
    let figures = service.get("/metrics").await.text;
    assert_eq!(figure::<u32>(&figures, "svc_outbox_depth"), 1);
    let age: f64 = figure(&figures, "svc_outbox_oldest_age_seconds");
    assert!(age >= AWAY_S as f64, "{age}");
    assert_eq!(figure::<u32>(&figures, "svc_webhook_first_attempt_lag_seconds_count"), 1);
    let lag: f64 = figure(&figures, "svc_webhook_first_attempt_lag_seconds_sum");
    assert!((0.0..AWAY_S as f64).contains(&lag), "{lag}");
}

async fn health_and_metrics_tell_what_happened(database: TestDatabase) {
    let mut service = TestService::start(database).await;
    assert_eq!(service.get("/livez").await.text, "ok\n");
    assert_eq!(service.get("/readyz").await.status, StatusCode::OK);
    let token = service.token(&service.partner).await;
    for _ in 0..2 {
        let created = service.create(&token, &service.order("order_1")).await;
        assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    }
    service.partner.client_secret = "wrong".to_owned().into();
    let refused = service.token_answer(&service.partner, "grant_type=client_credentials").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(service.get("/made-up").await.status, StatusCode::NOT_FOUND);
    let nobodys = Notice {
        rail: "simulator".into(),
        rail_payment_id: "p1".into(),
        about: About::Attempt(AttemptId::assign([1; 15])),
        word: Word::Paid(Centimos::new(100)),
        raw: Vec::new(),
    };
    orders::settle(&service.app, nobodys, "").await.unwrap();
    let metrics = service.get("/metrics").await;
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain"));
    for line in [
        "svc_orders_created_total 1",
        "svc_orders_replayed_total 1",
        "svc_tokens_issued_total 1",
        "svc_token_failures_total 1",
        r#"svc_http_requests_total{route="/svcpartner/createPaymentOrder",status="2xx"} 2"#,
        r#"svc_http_requests_total{route="/token",status="4xx"} 1"#,
        r#"svc_http_requests_total{route="other",status="4xx"} 1"#,
        "svc_outbox_depth 0",
        "svc_exceptions_open 1",
        "svc_webhooks_exhausted 0",
        "svc_payments_unanswered 0",
    ] {
        let is_told = metrics.text.lines().any(|told| told == line);
        assert!(is_told, "{line} is missing in:\n{}", metrics.text);
    }
    assert!(metrics.text.contains("svc_store_batch_size_bucket"), "{}", metrics.text);
    // What strangers name, and who is whose customer, is nothing for figures.
    for name in ["made-up", "order_1", service.partner.client_id.as_str()] {
        assert!(!metrics.text.contains(name), "{name} is in:\n{}", metrics.text);
    }
}

async fn what_browsers_refuse_on_our_pages_is_counted(database: TestDatabase) {
    const PLACE: &str = "/policy-reports";
    const AT_ONCE: usize = 20;
    let service = TestService::start(database).await;
    let page = service.get("/checkout/x").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.ends_with(&format!("; report-uri {PLACE}")), "{policy}");
    let report = json!({"csp-report": {
        "document-uri": "http://pay.example.ao/checkout/SVC1?session=secret",
        "effective-directive": "img-src", "blocked-uri": "https://evil.example/pixel",
        "original-policy": policy, "disposition": "enforce", "status-code": 200,
    }});
    let tell = async |kind: &str, body: String| {
        service.call(Method::POST, PLACE, &[("content-type", kind)], body).await.status
    };
    let told = async |body: String| tell("application/csp-report", body).await;
    assert_eq!(told(report.to_string()).await, StatusCode::NO_CONTENT);
    assert_eq!(told("{}".to_owned()).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(told("[".repeat(9_000)).await, StatusCode::PAYLOAD_TOO_LARGE);
    let other = tell("application/json", report.to_string()).await;
    assert_eq!(other, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(service.get(PLACE).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(figure::<u32>(&service.get("/metrics").await.text, "svc_policy_reports_total"), 1);
    for _ in 4..AT_ONCE {
        assert_eq!(told(report.to_string()).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(told(report.to_string()).await, StatusCode::TOO_MANY_REQUESTS);
}

async fn a_clock_that_is_not_the_databases_is_told(database: TestDatabase) {
    let is_a_server = matches!(database, TestDatabase::Postgres { .. });
    let service = TestService::start_standing(database).await;
    let off = async || {
        let metrics = service.get("/metrics").await.text;
        let told = metrics.lines().find_map(|line| line.strip_prefix("svc_clock_off_seconds "));
        told.unwrap_or_else(|| panic!("{metrics}")).parse::<f64>().unwrap()
    };
    if is_a_server {
        patiently(async { while off().await.abs() < 60.0 {} }).await;
    }
    assert_eq!(off().await != 0.0, is_a_server);
}

async fn nothing_expires_by_a_clock_that_is_wrong_from_the_start(database: TestDatabase) {
    let is_a_server = matches!(database, TestDatabase::Postgres { .. });
    let service = TestService::start_standing_production(database, "127.0.0.0/8").await;
    let app = &service.app;
    let application = service.partner.application.publishable_key.application_uuid();
    let known = app.directory.refresh(&app.store).await.unwrap();
    let order = new_order(known.application(application).unwrap().id.0, "order_1");
    assert!(matches!(app.store.create_order(order).await.unwrap(), Created::New(_)));
    app.clock.advance(SignedDuration::from_hours(48));
    let over = "select count(*) from orders where status = 'CAN'";
    if !is_a_server {
        patiently(async { while service.number(over).await == 0 {} }).await;
        return;
    }
    // A node looks at what is due twice as often as at its partners.
    for name in ["Uma", "Outra"] {
        let client = credentials::create_partner(app, name).await.unwrap().client_id;
        let known = || app.directory.known().partner(&client).is_some();
        patiently(async {
            while !known() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    assert_eq!(service.number(over).await, 0);
}

async fn the_description_lists_every_call_and_the_page_shows_it(database: TestDatabase) {
    let service = TestService::start(database).await;
    let answer = service.get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-request-id").is_some());
    let description = answer.json();
    assert_eq!(description["openapi"], "3.1.0");
    assert!(description["webhooks"].as_object().is_some_and(|webhooks| !webhooks.is_empty()));
    let paths = description["paths"].as_object().unwrap();
    for path in
        ["/token", "/svcpartner/createPaymentOrder", "/svcpartner/paymentByExternalTransaction"]
    {
        assert!(paths[path].is_object(), "{path} is not described");
    }
    let page = service.get("/docs").await;
    for path in paths.keys() {
        assert!(page.text.contains(path.as_str()), "{path} is not on the page");
    }
    let places =
        ["/token", "/svcpartner/createPaymentOrder", "/svcpartner/events", "/sandbox/clock"];
    assert!(places.map(|path| page.text.find(path)).is_sorted(), "as they are needed");
    let bare = service.get("/").await;
    assert_eq!((bare.status, bare.header("location")), (StatusCode::SEE_OTHER, Some("/docs")));
    for value in ["idempotency_conflict", "invalid_client", "externalTransactionId"] {
        assert!(page.text.contains(value), "{value} is not on the page");
    }
}

async fn the_page_needs_no_script_and_no_network(database: TestDatabase) {
    let service = TestService::start(database).await;
    let page = service.get("/docs").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(page.header("x-request-id").is_some());
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
    let text = page.text.to_lowercase();
    for forbidden in ["<script", "javascript:", "<iframe", "<link", " src=", "@import", " onclick"]
    {
        assert!(!text.contains(forbidden), "{forbidden} is in the page");
    }
}

async fn a_page_of_another_version_finds_files_that_are_not_kept(database: TestDatabase) {
    let service = TestService::start(database).await;
    for path in [
        "/checkout/assets/checkout.other.js",
        "/checkout/assets/checkout.other.css",
        "/console/assets/other/console.js",
        "/console/assets/other/console.css",
    ] {
        let file = service.get(path).await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        assert_eq!(file.header("cache-control"), Some("no-store"), "{path}");
    }
    assert_eq!(service.get("/console/assets/other/other.js").await.status, StatusCode::NOT_FOUND);
}

async fn routes_and_methods_that_do_not_exist_answer_in_the_error_shape(database: TestDatabase) {
    let service = TestService::start(database).await;
    let cases = [
        (Method::GET, "/nothing", StatusCode::NOT_FOUND, "not_found", None),
        (Method::GET, "/sdks/v1/%FF/svc.min.js", StatusCode::NOT_FOUND, "not_found", None),
        (Method::GET, "/checkout/assets/%FF", StatusCode::NOT_FOUND, "not_found", None),
        (Method::GET, "/console/assets/%FF/console.js", StatusCode::NOT_FOUND, "not_found", None),
        (Method::GET, "/sandbox/wallet/%FF", StatusCode::NOT_FOUND, "not_found", None),
        (Method::GET, "/token", StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", Some("POST")),
        (
            Method::OPTIONS,
            "/svcpartner/createPaymentOrder",
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            Some("POST"),
        ),
        (
            Method::DELETE,
            "/svcpartner/paymentByExternalTransaction",
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            Some("GET"),
        ),
    ];
    for (method, path, status, error, allow) in cases {
        let answer = service.call(method.clone(), path, &[], "").await;
        assert_eq!(answer.status, status, "{method} {path}");
        assert_eq!(answer.json()["error"], error);
        let told = answer.header("allow").map(|value| value.split(',').next().unwrap().trim());
        assert_eq!(told, allow, "{method} {path}");
        assert_eq!(answer.json()["requestId"], *answer.header("x-request-id").unwrap());
    }
}

async fn production_refuses_what_its_proxy_got_without_tls(database: TestDatabase) {
    let service = TestService::start_production(database, "127.0.0.0/8").await;
    for (scheme, status) in [("https", 200), ("HTTPS", 200), ("http", 403), ("https, http", 403)] {
        let headers = [("x-forwarded-proto", scheme)];
        let answer = service.call(Method::GET, "/docs", &headers, "").await;
        assert_eq!(answer.status.as_u16(), status, "{scheme}");
    }
    assert_eq!(service.get("/docs").await.status, StatusCode::OK, "not every proxy says it");
}

async fn figures_are_for_who_is_near(database: TestDatabase) {
    let service = TestService::start_production(database, "127.0.0.0/8").await;
    for (from, status) in
        [("10.1.2.3", 200), ("fd00::7", 200), ("41.63.166.10", 404), ("2001:db8::1", 404)]
    {
        let headers = [("x-forwarded-for", from)];
        let answer = service.call(Method::GET, "/metrics", &headers, "").await;
        assert_eq!(answer.status.as_u16(), status, "{from}");
    }
}

async fn production_answers_nobody_past_its_proxy(database: TestDatabase) {
    let service = TestService::start_production(database, "10.0.0.0/8").await;
    let headers = [("x-forwarded-proto", "https")];
    let answer = service.call(Method::POST, "/token", &headers, "").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.json()["error"], "https_required");
    for watched in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(service.get(watched).await.status, StatusCode::OK, "{watched}");
    }
}
