//! GET /svcpartner/events: the feed of a partner that would rather ask than be told.

use std::collections::BTreeSet;

use hyper::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::{Value, json};
use svc_service::config::Config;

use crate::support::{
    Answer, Receiver, TestDatabase, TestService, application, on_both_engines, patiently,
    waiting_events,
};

on_both_engines! {
    an_event_is_the_webhook_with_its_fate,
    pages_lead_through_all_events_oldest_first,
    young_events_come_again_and_a_late_one_is_not_missed,
    a_burst_is_paged_through_without_waiting,
    undelivered_is_what_no_webhook_has_brought,
    wrong_parameters_are_named,
    a_stranger_reads_nothing,
    who_reads_too_fast_is_told_and_others_read_on,
    head_is_not_answered,
    other_methods_are_told_of_get_only,
}

/// Longer than events may still appear behind others.
const SETTLED: SignedDuration = SignedDuration::from_secs(31);

async fn ask(service: &TestService, token: &str, more: &str) -> Answer {
    let target = format!("/svcpartner/events?applicationUUID={}{more}", service.application());
    let bearer = format!("Bearer {token}");
    service.call(Method::GET, &target, &[("authorization", &bearer)], "").await
}

async fn page(service: &TestService, token: &str, more: &str) -> Value {
    let answer = ask(service, token, more).await;
    assert_eq!(answer.status, StatusCode::OK, "{more}: {}", answer.text);
    answer.json()["data"].clone()
}

async fn pay(service: &TestService, token: &str, id: &str, webhook_url: &str) {
    let created = service.create(token, &service.order_to(id, webhook_url)).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    let body = json!({
        "applicationUUID": service.application(), "externalTransactionId": id,
        "outcome": "confirm",
    });
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let paid = service.call(Method::POST, "/sandbox/simulate", &headers, body.to_string()).await;
    assert_eq!(paid.status, StatusCode::OK, "{}", paid.text);
}

fn orders(page: &Value) -> Vec<&str> {
    page["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["payload"]["data"]["externalTransactionId"].as_str().unwrap())
        .collect()
}

/// Waits until nothing is on its way any more.
async fn quiet(service: &TestService) {
    patiently(async {
        while waiting_events(&service.app.store).await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn an_event_is_the_webhook_with_its_fate(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let empty = page(&service, &token, "").await;
    assert_eq!(empty, json!({ "events": [], "nextCursor": null, "hasMore": false }));
    pay(&service, &token, "order_1", &receiver.url()).await;
    let webhook = receiver.wait_for(1).await.remove(0);
    quiet(&service).await;
    let feed = page(&service, &token, "").await;
    let [event] = &feed["events"].as_array().unwrap()[..] else { panic!("{feed}") };
    assert_eq!(event["id"], webhook.header("webhook-id"));
    assert_eq!(event["payload"], webhook.json());
    assert_eq!(event["delivery"], json!({ "state": "delivered", "attempts": 1 }));
    let created_at: jiff::Timestamp = event["createdAt"].as_str().unwrap().parse().unwrap();
    let age = service.app.clock.now().duration_since(created_at);
    assert!(!age.is_negative() && age < SETTLED, "{age}");
}

async fn pages_lead_through_all_events_oldest_first(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let ids: Vec<_> = (0..7).map(|number| format!("order_{number}")).collect();
    for id in &ids {
        pay(&service, &token, id, &receiver.url()).await;
        // So that no two have the same moment.
        service.app.clock.advance(SignedDuration::from_millis(5));
    }
    service.app.clock.advance(SETTLED);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for (count, more) in [(3, true), (3, true), (1, false)] {
        let feed = page(&service, &token, &format!("&limit=3{cursor}")).await;
        let found = orders(&feed);
        assert_eq!((found.len(), &feed["hasMore"]), (count, &json!(more)));
        seen.extend(found.into_iter().map(str::to_owned));
        let last = feed["events"][count - 1]["id"].as_str().unwrap();
        assert_eq!(feed["nextCursor"], last, "nothing is young");
        cursor = format!("&after={last}");
    }
    assert_eq!(seen, ids);
    // At the end the cursor stays where it is, and goes on from there.
    let end = page(&service, &token, &cursor).await;
    assert_eq!((orders(&end).len(), &end["hasMore"]), (0, &json!(false)));
    assert_eq!(format!("&after={}", end["nextCursor"].as_str().unwrap()), cursor);
    pay(&service, &token, "order_7", &receiver.url()).await;
    assert_eq!(orders(&page(&service, &token, &cursor).await), ["order_7"]);
    assert_eq!(orders(&page(&service, &token, "").await).len(), 8, "all fit a page by default");
}

async fn young_events_come_again_and_a_late_one_is_not_missed(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    pay(&service, &token, "old", &receiver.url()).await;
    service.app.clock.advance(SETTLED);
    pay(&service, &token, "late", &receiver.url()).await;
    pay(&service, &token, "young", &receiver.url()).await;
    quiet(&service).await;
    // As if "late" had got its id when "young" did not exist, and is committed only after it was
    // read: it is hidden meanwhile.
    let hide = "update outbox set application_id = -application_id where reference_number in
                    (select reference_number from orders where external_transaction_id = 'late')";
    service.sql(hide).await;
    let first = page(&service, &token, "").await;
    assert_eq!(orders(&first), ["old", "young"]);
    service
        .sql("update outbox set application_id = -application_id where application_id < 0")
        .await;
    let after = format!("&after={}", first["nextCursor"].as_str().unwrap());
    let second = page(&service, &token, &after).await;
    assert_eq!(orders(&second), ["late", "young"], "the late one is there, the young one again");
    // Once they have settled, the cursor passes them.
    service.app.clock.advance(SETTLED);
    let third = page(&service, &token, &after).await;
    assert_eq!(orders(&third), ["late", "young"]);
    let after = format!("&after={}", third["nextCursor"].as_str().unwrap());
    assert!(orders(&page(&service, &token, &after).await).is_empty());
}

async fn a_burst_is_paged_through_without_waiting(database: TestDatabase) {
    const EVENTS: usize = 9;
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    for number in 0..EVENTS {
        pay(&service, &token, &format!("order_{number}"), &receiver.url()).await;
    }
    // All of them are young; whoever follows the cursor while there is more must get to the end.
    let (mut seen, mut cursor) = (BTreeSet::new(), String::new());
    for asked in 1.. {
        let feed = page(&service, &token, &format!("&limit=2{cursor}")).await;
        seen.extend(orders(&feed).into_iter().map(str::to_owned));
        if feed["hasMore"] == false {
            break;
        }
        assert!(asked < 2 * EVENTS, "page {asked} and no end: {} seen", seen.len());
        cursor = format!("&after={}", feed["nextCursor"].as_str().unwrap());
    }
    assert_eq!(seen.len(), EVENTS);
}

async fn undelivered_is_what_no_webhook_has_brought(database: TestDatabase) {
    let (good, bad) = (Receiver::answering(200).await, Receiver::answering(500).await);
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    pay(&service, &token, "good", &good.url()).await;
    pay(&service, &token, "bad", &bad.url()).await;
    let undelivered = loop {
        let feed = page(&service, &token, "&state=undelivered").await;
        let [event] = &feed["events"].as_array().unwrap()[..] else { continue };
        if event["delivery"]["attempts"] == 1 && event["delivery"]["state"] == "queued" {
            break feed;
        }
    };
    assert_eq!(orders(&undelivered), ["bad"]);
    let due = undelivered["events"][0]["delivery"]["nextAttemptAt"].as_str().unwrap();
    assert!(due.parse::<jiff::Timestamp>().is_ok(), "{due}");
    assert_eq!(orders(&page(&service, &token, "").await), ["good", "bad"]);
    assert_eq!((good.requests().len(), bad.requests().len()), (1, 1));
}

async fn wrong_parameters_are_named(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    for (more, field, issue) in [
        ("&limit=0", "limit", "too_small"),
        ("&limit=1001", "limit", "too_large"),
        ("&limit=-1", "limit", "too_small"),
        ("&limit=ten", "limit", "not_an_integer"),
        ("&limit=", "limit", "empty"),
        ("&limit=1&limit=2", "limit", "duplicate"),
        ("&limit=99999999999999999999", "limit", "too_large"),
        ("&after=", "after", "empty"),
        ("&after=evt_1", "after", "not_one_of"),
        ("&after=01JC4E9V7Q3M8Y5T2K6R1N0WXZ", "after", "not_one_of"),
        ("&after=evt_01jc4e9v7q3m8y5t2k6r1n0wxz", "after", "not_one_of"),
        ("&state=delivered", "state", "not_one_of"),
        ("&state=", "state", "empty"),
        ("&applicationUUID=again", "applicationUUID", "duplicate"),
    ] {
        let answer = ask(&service, &token, more).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{more}");
        assert_eq!(answer.json()["error"], "invalid_query", "{more}");
        let details = answer.json()["details"].clone();
        assert_eq!(details[0]["field"], field, "{more}: {details}");
        assert_eq!(details[0]["issue"], issue, "{more}: {details}");
    }
    let all = ask(&service, &token, "&limit=0&after=x&state=y").await.json()["details"].clone();
    assert_eq!(all.as_array().unwrap().len(), 3, "every fault at once: {all}");
    for fine in ["&limit=1", "&limit=1000", "&state=undelivered", "&unknown=1"] {
        page(&service, &token, fine).await;
    }
    let bearer = format!("Bearer {token}");
    let none =
        service.call(Method::GET, "/svcpartner/events", &[("authorization", &bearer)], "").await;
    assert_eq!(none.json()["details"][0]["field"], "applicationUUID");
}

async fn a_stranger_reads_nothing(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    pay(&service, &token, "order_1", &receiver.url()).await;
    let stranger = service.token(&service.stranger).await;
    let answer = ask(&service, &stranger, "").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["error"], "application_not_found");
    let own = format!("/svcpartner/events?applicationUUID={}", application(&service.stranger));
    let bearer = format!("Bearer {stranger}");
    let own = service.call(Method::GET, &own, &[("authorization", &bearer)], "").await;
    assert_eq!(own.json()["data"]["events"], json!([]));
    assert_eq!(ask(&service, "nonsense", "").await.status, StatusCode::UNAUTHORIZED);
}

async fn who_reads_too_fast_is_told_and_others_read_on(database: TestDatabase) {
    let adjust = |config: &mut Config| config.limits.event_pages_per_second = 1;
    let service = TestService::start_with(database, adjust).await;
    let token = service.token(&service.partner).await;
    let mut answers = Vec::new();
    while answers.iter().all(|answer: &Answer| answer.status == StatusCode::OK) {
        answers.push(ask(&service, &token, "").await);
        assert!(answers.len() < 50, "fifty in a moment pass one a second");
    }
    let limited = answers.last().unwrap();
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(limited.json()["error"], "rate_limited");
    let stranger = service.token(&service.stranger).await;
    let own = format!("/svcpartner/events?applicationUUID={}", application(&service.stranger));
    let headers = [("authorization", &*format!("Bearer {stranger}"))];
    let own = service.call(Method::GET, &own, &headers, "").await;
    assert_eq!(own.status, StatusCode::OK);
}

async fn head_is_not_answered(database: TestDatabase) {
    refuses(database, Method::HEAD).await;
}

async fn other_methods_are_told_of_get_only(database: TestDatabase) {
    refuses(database, Method::POST).await;
}

async fn refuses(database: TestDatabase, method: Method) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let target = format!("/svcpartner/events?applicationUUID={}", service.application());
    let bearer = format!("Bearer {token}");
    let answer = service.call(method, &target, &[("authorization", &bearer)], "").await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.header("allow"), Some("GET"));
}
