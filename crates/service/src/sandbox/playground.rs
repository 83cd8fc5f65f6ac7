//! GET /sdks/playground: every option of the SDK to try, with orders made on the spot.

use std::sync::LazyLock;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};

use crate::app::App;
use crate::domain::{
    AdditionalInfo, ExternalTransactionId, Kwanza, Label, PayerId, PublishableKey, Quantity, Terms,
};
use crate::http::{
    ApiError, Asset, Exchange, FieldFault, Issue, OrderData, Reply, is_foreign, own_origin,
    read_form,
};
use crate::orders::{self, OrderRequest};

static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(Asset::SCRIPT, include_bytes!("../../assets/playground.js")));
static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(Asset::STYLE, include_bytes!("../../assets/playground.css")));

const A_WHILE: &str = "public, max-age=300";

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/sdks/playground", get(page))
        .route("/sdks/playground.js", get(async |asked: HeaderMap| SCRIPT.respond(&asked, A_WHILE)))
        .route("/sdks/playground.css", get(async |asked: HeaderMap| STYLE.respond(&asked, A_WHILE)))
        .route("/sdks/playground/order", post(order))
        .route("/sdks/playground/webhook", post(async || axum::http::StatusCode::OK))
}

#[derive(Template)]
#[template(path = "playground.html")]
struct Playground {
    /// The key of the only application; where there are several, nobody else's is shown.
    key: String,
}

async fn page(State(app): State<App>) -> Response {
    let known = app.directory.known();
    let mut applications = known.applications();
    let key = match (applications.next(), applications.next()) {
        (Some(only), None) => PublishableKey::new(app.environment, only.uuid.clone()).to_string(),
        _ => String::new(),
    };
    let page = Playground { key }.render().expect("the template only prints strings");
    let mut response = Html(page).into_response();
    let policy = HeaderValue::from_static(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src \
         'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    );
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What a shop's backend does with its secret, done by the sandbox for its own page.
async fn order(
    State(app): State<App>,
    exchange: Exchange,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply<OrderData>, ApiError> {
    if is_foreign(&app, &headers) {
        return Err(ApiError::ForeignOrigin);
    }
    app.limits.playground_order(exchange.from)?;
    let form = read_form(&headers, body).await?;
    let wrong =
        |field: &str, issue: Issue| ApiError::InvalidBody(vec![FieldFault::new(field, issue)]);
    let key =
        PublishableKey::parse(form.value("key").trim()).ok_or(ApiError::ApplicationNotFound)?;
    let known = app.directory.known();
    let application =
        known.application(key.application_uuid()).cloned().ok_or(ApiError::ApplicationNotFound)?;
    let amount = form.value("amount").parse().map_err(|_| wrong("amount", Issue::NotAnInteger))?;
    let amount = Kwanza::parse(amount).map_err(|issue| wrong("amount", issue.into()))?;
    let own = own_origin(&app, &headers).unwrap_or_default();
    let info = serde_json::json!({
        "returnUrl": format!("{own}/sdks/playground"),
        "cancelUrl": format!("{own}/sdks/playground"),
        "webhookUrl": format!("{own}/sdks/playground/webhook"),
    });
    let info = AdditionalInfo::parse(&info.to_string(), &app.url_rules)
        .map_err(|_| wrong("additionalInfo.webhookUrl", Issue::PrivateHost))?;
    let id = format!("playground_{}", hex::encode(app.random.bytes::<12>()));
    let request = OrderRequest {
        application,
        external_transaction_id: ExternalTransactionId::parse(id).expect("hex is printable"),
        terms: Terms {
            payer_id: PayerId::parse("playground").expect("it is short"),
            name: Label::parse("Playground").expect("it is short"),
            amount,
            quantity: Quantity::parse(1).expect("one is a quantity"),
            additional_info: info,
        },
        request_id: exchange.request_id,
    };
    Ok(Reply::ok(orders::create(&app, request).await?.order.into()))
}
