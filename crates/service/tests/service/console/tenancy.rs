//! People of one merchant see and change nothing of another, by whatever address they try.

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use svc_service::console;
use svc_service::credentials::Issued;

use super::world::{FORM, Visitor, World, between, orders_on};
use crate::support::*;

on_both_engines! {
    a_stranger_sees_and_changes_nothing_by_any_address,
    nobody_sees_or_changes_anything_without_signing_in,
    what_is_anothers_looks_like_what_does_not_exist,
    lists_searches_and_exports_hold_only_ones_own,
    figures_count_only_ones_own,
    recovering_sends_only_ones_own_again,
    the_live_stream_says_only_that_there_is_news,
}

/// Every route of the console, as `console/mod.rs` has them.
const ROUTES: [(&str, &str); 34] = [
    ("get", "/console"),
    ("get", "/console/live"),
    ("get", "/console/search"),
    ("get", "/console/orders"),
    ("get", "/console/orders.csv"),
    ("get", "/console/orders/{reference}"),
    ("post", "/console/orders/{reference}/cancel"),
    ("post", "/console/orders/{reference}/simulate"),
    ("post", "/console/clock"),
    ("get", "/console/webhooks"),
    ("post", "/console/webhooks/recover"),
    ("get", "/console/webhooks/{event}"),
    ("post", "/console/webhooks/{event}/resend"),
    ("get", "/console/exceptions"),
    ("post", "/console/exceptions/{id}/resolve"),
    ("get", "/console/developers"),
    ("post", "/console/partners/{client}/rotate"),
    ("post", "/console/partners/{client}/revoke"),
    ("post", "/console/applications/{uuid}/rotate"),
    ("get", "/console/requests"),
    ("get", "/console/requests/{id}"),
    ("get", "/console/audit"),
    ("get post", "/console/people"),
    ("post", "/console/people/{id}"),
    ("get", "/console/account"),
    ("post", "/console/account/password"),
    ("post", "/console/account/totp"),
    ("get post", "/console/sign-in"),
    ("post", "/console/sign-out"),
    ("get post", "/console/welcome/{token}"),
    ("get", "/console/enter/{token}"),
    ("get", "/console/language/{code}"),
    ("get", "/console/{*anything}"),
    ("get", "/console/assets/{tag}/{name}"),
];

#[test]
fn the_list_of_routes_is_the_consoles() {
    let source = include_str!("../../../src/console/mod.rs");
    let found: Vec<_> = source
        .split(".route(\"")
        .skip(1)
        .map(|text| {
            let (path, rest) = text.split_once('"').unwrap();
            let rest = rest.split("\n        .").next().unwrap();
            let has = |verb: &str| rest.contains(&format!("{verb}("));
            let verbs: Vec<_> = ["get", "post", "put", "patch", "delete", "any"]
                .into_iter()
                .filter(|v| has(v))
                .collect();
            (verbs.join(" "), path.to_owned())
        })
        .collect();
    let listed: Vec<_> = ROUTES.map(|(verbs, path)| (verbs.to_owned(), path.to_owned())).into();
    assert_eq!(found, listed, "the walk below must take every route");
}

/// Whatever a form of the console may hold; each handler takes what it knows.
const EVERY_FIELD: &str = "outcome=confirm&minutes=1&hours=24&resolution=refund&reason=because\
    &overlap=1&change=disable&role=reader&next=/console&login=x&offered=eA==&code=000000";

/// The addresses of "Loja" for this route: its own ids wherever an id can stand.
async fn addresses(world: &World, person: i64, route: &str) -> Vec<String> {
    let query = format!(
        "application={}&id={}&subject={}&show=all&period=30d&next=/console",
        application(&world.service.partner),
        world.paid.external_transaction_id.as_str(),
        world.open.reference_number.as_str(),
    );
    let orders = [&world.paid, &world.open, &world.held];
    let references = orders.map(|order| order.reference_number.as_str().to_owned());
    let ids = match route {
        _ if !route.contains('{') => vec![String::new()],
        _ if route.contains("{reference}") => references.into(),
        _ if route.contains("{event}") => vec![world.event().await],
        "/console/exceptions/{id}/resolve" => vec![world.exception().await.to_string()],
        "/console/people/{id}" => vec![person.to_string()],
        "/console/requests/{id}" => vec![world.request_id.clone()],
        _ if route.contains("{client}") => {
            vec![world.service.partner.client_id.as_str().to_owned()]
        }
        _ if route.contains("{uuid}") => vec![application(&world.service.partner).to_owned()],
        _ => references.into(),
    };
    let place = route.split('/').find(|part| part.contains('{')).unwrap_or("no id");
    let paths = ids.iter().map(|id| route.replace(place, id).replace("{name}", id));
    paths.flat_map(|path| [path.clone(), format!("{path}?{query}")]).collect()
}

/// Marks that an answer tells though the question did not hold them.
fn leaked(marks: &[String], asked: &str, answer: &Answer) -> Vec<String> {
    let told = format!("{}{:?}", answer.text, answer.headers);
    let leaked = marks.iter().filter(|mark| told.contains(*mark) && !asked.contains(*mark));
    leaked.cloned().collect()
}

async fn a_stranger_sees_and_changes_nothing_by_any_address(database: TestDatabase) {
    let world = World::start(database).await;
    let owner = world.owner().await;
    world.stranger().await;
    let marks = world.marks_of_loja().await;
    let before = world.state_of_loja().await;
    let mut walked = 0;
    for (_, route) in ROUTES.iter().filter(|(_, route)| *route != "/console/live") {
        for target in addresses(&world, owner.id, route).await {
            // A new session each time: signing out is one of the routes.
            let stranger = world.enter_again("zeca@outra.ao").await;
            let seen = world.get(&stranger, &target).await;
            let done = world.post(&stranger, &target, EVERY_FIELD).await;
            for (verb, answer) in [("GET", seen), ("POST", done)] {
                let leaked = leaked(&marks, &target, &answer);
                assert!(leaked.is_empty(), "{verb} {target} tells {leaked:?}: {}", answer.text);
                assert!(!answer.status.is_server_error(), "{verb} {target}: {}", answer.text);
            }
            walked += 1;
        }
    }
    assert!(walked >= 2 * ROUTES.len() - 2, "only {walked} addresses");
    assert_eq!(world.state_of_loja().await, before);
    assert_eq!(world.get(&owner, "/console").await.status, StatusCode::OK, "still signed in");
}

async fn nobody_sees_or_changes_anything_without_signing_in(database: TestDatabase) {
    let world = World::start(database).await;
    let owner = world.owner().await;
    let marks = world.marks_of_loja().await;
    let before = world.state_of_loja().await;
    let forged = Visitor { cookie: "__Host-svc-console=AAAA".to_owned(), ..owner };
    let public = ["sign-in", "welcome", "enter", "language", "assets", "anything"];
    for (verbs, route) in ROUTES {
        for target in addresses(&world, forged.id, route).await {
            let seen = world.get(&forged, &target).await;
            let done = world.post(&forged, &target, EVERY_FIELD).await;
            for (verb, answer) in [("get", seen), ("post", done)] {
                let leaked = leaked(&marks, &target, &answer);
                assert!(leaked.is_empty(), "{verb} {target} tells {leaked:?}");
                if verbs.contains(verb) && !public.iter().any(|one| route.contains(one)) {
                    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{verb} {target}");
                    let to = answer.header("location").unwrap();
                    assert!(to.starts_with("/console/sign-in?next=%2Fconsole"), "{target}: {to}");
                }
            }
        }
    }
    assert_eq!(world.state_of_loja().await, before);
}

async fn what_is_anothers_looks_like_what_does_not_exist(database: TestDatabase) {
    let world = World::start(database).await;
    let owner = world.owner().await;
    let stranger = world.stranger().await;
    let reference = world.open.reference_number.as_str().to_owned();
    let nowhere = "0".repeat(25) + "Z";
    let event = world.event().await;
    let (loja, uuid) = (&world.service.partner, application(&world.service.partner));
    for (route, theirs, nobodys) in [
        ("get /console/orders/{}", reference.as_str(), nowhere.as_str()),
        ("post /console/orders/{}/cancel", &reference, &nowhere),
        ("post /console/orders/{}/simulate", &reference, &nowhere),
        ("get /console/webhooks/{}", &event, "evt_0"),
        ("post /console/webhooks/{}/resend", &event, "evt_0"),
        ("post /console/partners/{}/rotate", loja.client_id.as_str(), "svc_x"),
        ("post /console/partners/{}/revoke", loja.client_id.as_str(), "svc_x"),
        ("post /console/applications/{}/rotate", uuid, "00000000-0000-0000-0000-000000000000"),
        ("get /console/requests/{}", &world.request_id, "0123456789ab0123456789ab"),
        ("post /console/people/{}", &owner.id.to_string(), "999999"),
        ("get /console/search?id={}", &reference, &nowhere),
        ("get /console/search?id={}", &event, "evt_0"),
        ("get /console/search?id={}", "loja-open", "nothing-open"),
        ("get /console/search?id={}", &world.request_id, "0123456789ab0123456789ab"),
    ] {
        let (verb, path) = route.split_once(' ').unwrap();
        let ask = async |id: &str| {
            let target = path.replace("{}", id);
            let answer = match verb {
                "get" => world.get(&stranger, &target).await,
                _ => world.post(&stranger, &target, EVERY_FIELD).await,
            };
            let request_id = answer.header("x-request-id").unwrap().to_owned();
            // A number of few digits stands in every page.
            let id = if id.len() < 5 { "no such text" } else { id };
            let text = answer.text.replace(&request_id, "").replace(id, "");
            (answer.status, text)
        };
        let (status, text) = ask(theirs).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{route}");
        assert_eq!((status, text), ask(nobodys).await, "{route}");
    }
}

async fn lists_searches_and_exports_hold_only_ones_own(database: TestDatabase) {
    let world = World::start(database).await;
    let (owner, stranger) = (world.owner().await, world.stranger().await);
    let operator = world.operator().await;
    let count = async |who: &Visitor, target: &str| {
        let answer = world.get(who, target).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}");
        orders_on(&answer).len()
    };
    let narrowed = format!("/console/orders?application={}", application(&world.service.partner));
    for (who, all, of_loja) in [(&owner, 3, 3), (&stranger, 1, 1), (&operator, 4, 3)] {
        assert_eq!(count(who, "/console/orders").await, all, "{}", who.login);
        // An application that is not theirs is no filter: they see their own.
        assert_eq!(count(who, &narrowed).await, of_loja, "{}", who.login);
        let csv = world.get(who, "/console/orders.csv").await.text;
        assert_eq!(csv.lines().count(), 1 + all, "{csv}");
        assert_eq!(csv.contains("loja-"), who.login != stranger.login);
    }
    for (target, mark) in [
        ("/console/webhooks", world.event().await),
        ("/console/exceptions?show=all", world.held.reference_number.as_str().to_owned()),
        ("/console/developers", world.service.partner.client_id.as_str().to_owned()),
    ] {
        for (who, sees) in [(&owner, true), (&operator, true), (&stranger, false)] {
            let page = world.get(who, target).await;
            assert_eq!(page.text.contains(&mark), sees, "{} {target}", who.login);
        }
    }
    let page = world.get(&owner, "/console/people").await.text;
    assert!(page.contains("ana@loja.ao") && !page.contains("zeca") && !page.contains("olga"));
}

async fn figures_count_only_ones_own(database: TestDatabase) {
    let world = World::start(database).await;
    let (owner, stranger) = (world.owner().await, world.stranger().await);
    let operator = world.operator().await;
    console::count_figures(world.app()).await.unwrap();
    for (who, orders, confirmed, attempts) in
        [(&owner, 3, 1, 1), (&stranger, 1, 0, 0), (&operator, 4, 1, 1)]
    {
        let of_loja = format!("/console?application={}", application(&world.service.partner));
        for target in ["/console", "/console?period=7d", "/console?period=30d", &of_loja] {
            let page = world.get(who, target).await.text;
            let chart = between(&page, "id=\"figures\">", "</script>").unwrap();
            let chart: serde_json::Value = serde_json::from_str(chart).unwrap();
            let sum = |name: &str| -> i64 {
                chart[name].as_array().unwrap().iter().map(|hour| hour.as_i64().unwrap()).sum()
            };
            let orders = if who.login == "olga" && target == of_loja { 3 } else { orders };
            let seen = (sum("orders"), sum("confirmed"), sum("attempts"));
            assert_eq!(seen, (orders, confirmed, attempts), "{} {target}", who.login);
            let open = page.contains("href=\"/console/exceptions\">1")
                || page.contains("<span class=\"pill bad\">1</span>");
            assert_eq!(open, who.login != stranger.login, "{} {target}", who.login);
        }
    }
}

async fn recovering_sends_only_ones_own_again(database: TestDatabase) {
    let world = World::start(database).await;
    let (owner, stranger) = (world.owner().await, world.stranger().await);
    world.service.sql("update outbox set state = 'exhausted', failures = 1").await;
    let exhausted = "select count(*) from outbox where state = 'exhausted'";
    let answer = world.post(&stranger, "/console/webhooks/recover", "hours=24").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(world.service.number(exhausted).await, 1, "it is not theirs");
    // The page of one application sends again what is of that one.
    let uuid_of =
        |of: &Issued| of.application.publishable_key.application_uuid().as_str().to_owned();
    let operator = world.operator().await;
    for (who, application, found) in [
        (&operator, uuid_of(&world.service.stranger), true),
        (&operator, "00000000-0000-4000-8000-000000000000".to_owned(), false),
        (&operator, "nobody".to_owned(), false),
        (&stranger, uuid_of(&world.service.partner), false),
    ] {
        let target = format!("/console/webhooks/recover?application={application}");
        let answer = world.post(who, &target, "hours=24").await;
        let page = format!("/console/webhooks?application={application}&done=recovered");
        assert_eq!(answer.header("location"), found.then_some(page.as_str()), "{application}");
        assert_eq!(world.service.number(exhausted).await, 1, "{application}");
    }
    let answer = world.post(&owner, "/console/webhooks/recover", "hours=24").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(world.service.number(exhausted).await, 0);
}

async fn the_live_stream_says_only_that_there_is_news(database: TestDatabase) {
    let world = World::start(database).await;
    let stranger = world.stranger().await;
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder()
        .method(Method::GET)
        .uri(format!("{}/console/live", world.service.origin()))
        .header("cookie", &stranger.cookie)
        .body(Empty::new())
        .unwrap();
    let mut answer = client.request(request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert!(answer.headers().contains_key("content-security-policy"));
    // Something happens to an order of the other merchant.
    let cancel = format!("/console/orders/{}/cancel", world.open.reference_number.as_str());
    assert_eq!(world.post(&world.owner().await, &cancel, "").await.status, StatusCode::SEE_OTHER);
    let frame = answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(frame, "event: news\ndata: -\n\n");
    let nobody = world.service.call(Method::GET, "/console/live", &[FORM], "").await;
    assert_eq!(nobody.status, StatusCode::SEE_OTHER);
}
