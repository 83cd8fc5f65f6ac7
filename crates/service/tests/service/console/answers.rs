//! Whatever stands in an address or a form, the answer is a page that says so, never a failure of ours.

use hyper::StatusCode;

use super::world::World;
use crate::support::*;

on_both_engines! {
    strange_addresses_get_a_clear_answer,
    the_language_is_chosen_and_kept,
}

const STRANGE: [&str; 14] = [
    "",
    "%00",
    "a%00b",
    "%ff%fe",
    "%0d%0aset-cookie:x=y",
    "'",
    "%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
    "1'%20or%20'1'='1",
    "-1",
    "99999999999999999999999",
    "..%2f..%2fetc",
    "%F0%9F%92%A3",
    "~",
    "2026-02-31",
];

async fn strange_addresses_get_a_clear_answer(database: TestDatabase) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    let long = "x".repeat(3_000);
    let queries = [
        "/console?period=",
        "/console?application=",
        "/console/search?id=",
        "/console/orders?before=",
        "/console/orders?status=",
        "/console/orders?from=",
        "/console/orders?to=",
        "/console/orders.csv?from=",
        "/console/webhooks?state=",
        "/console/webhooks?before=",
        "/console/exceptions?before=",
        "/console/exceptions?show=",
        "/console/requests?before=",
        "/console/requests?before=1.",
        "/console/audit?before=",
        "/console/audit?subject=",
        "/console/sign-in?next=",
    ];
    for query in queries {
        for value in STRANGE.into_iter().chain([long.as_str()]) {
            let answer = world.get(&olga, &format!("{query}{value}")).await;
            let short = &value[..value.len().min(40)];
            assert!(
                [200, 404].contains(&answer.status.as_u16()),
                "{query}{short}: {}",
                answer.status
            );
            assert!(!answer.text.contains("<script>alert"), "{query}{short}");
        }
    }
    let paths = [
        "/console/orders/",
        "/console/webhooks/",
        "/console/requests/",
        "/console/welcome/",
        "/console/enter/",
        "/console/language/",
    ];
    for path in paths {
        for value in STRANGE.into_iter().filter(|value| !value.is_empty()).chain([long.as_str()]) {
            let answer = world.get(&olga, &format!("{path}{value}")).await;
            let short = &value[..value.len().min(40)];
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}{short}");
            assert!(answer.text.contains("class=\"mark sandbox\""), "{path}{short} is no page");
        }
    }
    let posts = ["/console/people/", "/console/exceptions/"];
    for path in posts {
        for value in STRANGE.into_iter().filter(|one| !one.is_empty() && !one.contains('/')) {
            let end = if path.contains("people") { "" } else { "/resolve" };
            let form = "change=enable&resolution=refund&reason=because";
            let answer = world.post(&olga, &format!("{path}{value}{end}"), form).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}{value}");
        }
    }
    // A day that is none is no filter; the last day there is does not overflow.
    let answer = world.get(&olga, "/console/orders?from=2026-02-31&to=9999-12-31").await;
    assert_eq!(super::world::orders_on(&answer).len(), 4);
}

async fn the_language_is_chosen_and_kept(database: TestDatabase) {
    let world = World::start(database).await;
    for (code, word) in [("pt", "Palavra-passe"), ("en", "Password"), ("fr", "Mot de passe")] {
        let page = format!("{}/console/sign-in?next=%2Fconsole", world.service.origin());
        for (referer, back) in [
            (page.as_str(), "/console/sign-in?next=%2Fconsole"),
            ("https://evil.example/", "/console"),
        ] {
            let headers = [("referer", referer)];
            let target = format!("/console/language/{code}");
            let answer = world.service.call(hyper::Method::GET, &target, &headers, "").await;
            assert_eq!(answer.status, StatusCode::SEE_OTHER);
            assert_eq!(answer.header("location"), Some(back));
            let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
            let headers = [("cookie", cookie.as_str()), ("accept-language", "de")];
            let page =
                world.service.call(hyper::Method::GET, "/console/sign-in", &headers, "").await;
            assert!(page.text.contains(&format!("<html lang=\"{code}\">")), "{code}");
            assert!(page.text.contains(word), "{code}: {}", page.text);
        }
    }
}
