//! The shop's front page, catalogue and cart, and the files that pages load.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use crate::Shop;
use crate::catalogue::PRODUCTS;
use crate::reply::unavailable;
use crate::texts::{Texts, language};

pub(crate) fn routes() -> Router<Shop> {
    Router::new()
        .route("/", get(catalogue))
        .route(
            "/assets/shop.css",
            get(async || asset("text/css", include_str!("../assets/shop.css"))),
        )
        .route(
            "/assets/shop.js",
            get(async || asset("text/javascript", include_str!("../assets/shop.js"))),
        )
}

#[derive(Template)]
#[template(path = "shop.html")]
struct CataloguePage<'a> {
    t: &'static Texts,
    publishable_key: &'a str,
    sdk_url: &'a str,
    products: Vec<ProductView>,
}

struct ProductView {
    id: &'static str,
    name: &'static str,
    price: i64,
    price_text: String,
    /// Its first letter, as a shop without pictures shows it.
    letter: &'static str,
    /// How many nobody has reserved.
    free: i64,
}

async fn catalogue(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let (place, t) = language(query.as_deref().unwrap_or_default(), &headers);
    let mut products = Vec::new();
    for product in &PRODUCTS {
        let free = match shop.store.free_stock(product.id) {
            Ok(free) => free,
            Err(fault) => return unavailable(&fault),
        };
        products.push(ProductView {
            id: product.id,
            name: product.names[place],
            price: product.price,
            price_text: money(t, product.price),
            letter: product.names[place].get(..1).unwrap_or_default(),
            free,
        });
    }
    let page = CataloguePage {
        t,
        publishable_key: &shop.settings.publishable_key,
        sdk_url: sdk_url(&shop),
        products,
    };
    shown(&shop, page.render())
}

/// The pages load the SDK and talk to the service; everything else is the shop's own.
pub(crate) fn shown(shop: &Shop, html: askama::Result<String>) -> Response {
    let html = html.expect("the template only prints strings");
    let mut response = Html(html).into_response();
    let sdk = sdk_url(shop);
    let policy = format!(
        "default-src 'none'; script-src 'self' {sdk}; connect-src 'self' {sdk}; frame-src {sdk}; \
         style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn sdk_url(shop: &Shop) -> &str {
    shop.settings.sdk_url.trim_end_matches('/')
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    ([("content-type", kind), ("cache-control", "public, max-age=300")], text).into_response()
}

/// As the reader's language writes it, and as the checkout does.
pub(crate) fn money(t: &Texts, amount: i64) -> String {
    let digits = amount.to_string();
    let grouped = |sign: char| {
        let mut out = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                out.push(sign);
            }
            out.push(digit);
        }
        out
    };
    match t.lang {
        "en" => format!("Kz\u{a0}{}", grouped(',')),
        "fr" => format!("{}\u{a0}Kz", grouped('\u{202f}')),
        _ => format!("{},00\u{a0}Kz", grouped('.')),
    }
}

/// The order's page at the payment service, where the payer goes on.
pub(crate) fn checkout_url(shop: &Shop, t: &Texts, reference: &str) -> String {
    let (service, key) = (sdk_url(shop), &shop.settings.publishable_key);
    format!("{service}/checkout/{reference}?key={key}&lang={}&theme=light", t.lang)
}
