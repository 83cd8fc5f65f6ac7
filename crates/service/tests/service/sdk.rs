//! The SDK's file: for a while, for ever, packed, and with a hash that holds.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{Method, StatusCode};

use crate::support::{TestDatabase, TestService, on_both_engines};

const FILE: &str = "/sdks/v1/svc.min.js";

#[tokio::test(flavor = "multi_thread")]
async fn the_current_file_is_kept_for_a_while_and_asked_for_by_its_tag() {
    let service = TestService::start(TestDatabase::sqlite()).await;
    let file = service.get(FILE).await;
    assert_eq!(file.status, StatusCode::OK);
    assert_eq!(file.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(file.header("cross-origin-resource-policy"), Some("cross-origin"));
    assert_eq!(file.header("access-control-allow-origin"), Some("*"));
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    let tag = file.header("etag").unwrap();
    let again = service.call(Method::GET, FILE, &[("if-none-match", tag)], "").await;
    assert_eq!((again.status, again.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let other = service.call(Method::GET, FILE, &[("if-none-match", "\"other\"")], "").await;
    assert_eq!(other.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_packed_as_the_browser_likes_it() {
    let service = TestService::start(TestDatabase::sqlite()).await;
    let plain = service.get(FILE).await.bytes.len();
    for (taken, encoding) in
        [("br, gzip", "br"), ("gzip, deflate", "gzip"), ("br;q=0, gzip", "gzip")]
    {
        let packed = service.call(Method::GET, FILE, &[("accept-encoding", taken)], "").await;
        assert_eq!(packed.header("content-encoding"), Some(encoding), "{taken}");
        assert!(packed.bytes.len() < plain / 2, "{taken}: {} of {plain}", packed.bytes.len());
        assert!(packed.bytes.len() <= 6_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manifest_names_an_address_for_ever_and_its_hash() {
    let service = TestService::start(TestDatabase::sqlite()).await;
    let manifest = service.get("/sdks/v1/manifest.json").await.json();
    let file = service.get(manifest["path"].as_str().unwrap()).await;
    assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA384, &file.bytes);
    let integrity = format!("sha384-{}", STANDARD.encode(hash));
    assert_eq!(manifest["integrity"], integrity.as_str());
    assert_eq!(file.text, service.get(FILE).await.text);
    for nobodys in ["0123", "0123456789ab", "0123456789a%2e"] {
        let file = service.get(&format!("/sdks/v1/{nobodys}/svc.min.js")).await;
        assert_eq!(file.status, StatusCode::NOT_FOUND, "{nobodys}");
    }
}

on_both_engines! {
    a_version_that_was_given_out_is_there_after_an_upgrade,
}

async fn a_version_that_was_given_out_is_there_after_an_upgrade(database: TestDatabase) {
    let service = TestService::start(database).await;
    let path = service.get("/sdks/v1/manifest.json").await.json()["path"].clone();
    let name = path.as_str().unwrap().split('/').nth(3).unwrap().to_owned();
    let kept = service.app.store.kept_file(&format!("sdk {name}")).await.unwrap().unwrap();
    assert_eq!(kept, service.get(FILE).await.text, "every start keeps its own");
    // What an earlier version of the service gave out.
    service.app.store.keep_file("sdk 0123456789ab", "earlier()").await.unwrap();
    service.app.store.keep_file("sdk 0123456789ab", "another()").await.unwrap();
    let earlier = service.get("/sdks/v1/0123456789ab/svc.min.js").await;
    assert_eq!((earlier.status, earlier.text.as_str()), (StatusCode::OK, "earlier()"));
    assert_eq!(earlier.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(earlier.header("access-control-allow-origin"), Some("*"));
    assert_eq!(earlier.header("content-type"), Some("text/javascript; charset=utf-8"));
}
