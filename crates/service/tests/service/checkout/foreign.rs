//! Other sites' pages change nothing (H15–H17).

use hyper::{Method, StatusCode};

use super::{Checkout, FORM};
use crate::support::*;

on_both_engines! {
    h15_a_form_of_another_type_is_not_read,
    h16_a_foreign_origin_is_refused,
    h17_a_browser_that_says_cross_site_is_refused,
}

async fn h15_a_form_of_another_type_is_not_read(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let before = checkout.snapshot().await;
    let form = format!("session={session}&method=FPSOLPG");
    for kind in ["text/plain", "application/json", "multipart/form-data; boundary=x", ""] {
        for verb in ["/pay", "/cancel"] {
            let target = checkout.at(verb, "");
            // The type is looked at before the site it comes from.
            for site in ["same-origin", "cross-site"] {
                let headers = [("content-type", kind), ("sec-fetch-site", site)];
                let answer =
                    checkout.service.call(Method::POST, &target, &headers, form.clone()).await;
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                assert_eq!(answer.status, status, "{verb} {kind} {site}");
            }
        }
    }
    assert_eq!(checkout.snapshot().await, before);
}

async fn h16_a_foreign_origin_is_refused(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let before = checkout.snapshot().await;
    let form = format!("session={session}&method=FPSOLPG");
    let own = checkout.service.origin().to_owned();
    let longer = format!("{own}0");
    for origin in ["null", "http://127.0.0.1:3000", "https://evil.example", "", &longer] {
        for verb in ["/pay", "/cancel"] {
            let answer = checkout.post(verb, &[("origin", origin)], &form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{verb} {origin}");
            assert_eq!(answer.json()["error"], "foreign_origin", "{verb} {origin}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(checkout.snapshot().await, before);
    let answer = checkout.post("/pay", &[("origin", &own)], &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "our own page is heard");
}

async fn h17_a_browser_that_says_cross_site_is_refused(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let before = checkout.snapshot().await;
    let form = format!("session={session}&method=FPSOLPG");
    for site in ["cross-site", "same-site", "nonsense"] {
        for verb in ["/pay", "/cancel"] {
            let answer = checkout.post(verb, &[("sec-fetch-site", site)], &form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{verb} {site}");
        }
    }
    let headers = [FORM, ("sec-fetch-site", "cross-site")];
    let target = checkout.at("", "");
    let look = checkout.service.call(Method::GET, &target, &headers[1..], "").await;
    assert_eq!(look.status, StatusCode::OK, "the shop's link opens the page");
    assert_eq!(checkout.snapshot().await, before);
    let answer = checkout.post("/pay", &[("sec-fetch-site", "same-origin")], &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
}
