//! The baseline: plain axum routes that decode and encode the same JSON, with no store and no check.

use axum::extract::Query;
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use serde::{Deserialize, Serialize};

use crate::process::until_asked_to_end;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoding is what is measured")]
struct CreateRequest {
    external_transaction_id: String,
    client_id: String,
    #[serde(rename = "applicationUUID")]
    application_uuid: String,
    name: String,
    amount: i64,
    quantity: i64,
    additional_info: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoding is what is measured")]
struct QueryRequest {
    external_transaction_id: String,
    #[serde(rename = "applicationUUID")]
    application_uuid: String,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "decoding is what is measured")]
struct TokenRequest {
    grant_type: String,
    validity_period: i64,
}

#[derive(Serialize)]
struct Envelope {
    code: u16,
    message: &'static str,
    data: OrderData,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrderData {
    external_transaction_id: String,
    payment_status: &'static str,
    reference_number: &'static str,
    amount: i64,
}

#[derive(Serialize)]
struct TokenReply {
    access_token: &'static str,
    token_type: &'static str,
    expires_in: i64,
    scope: &'static str,
}

pub(crate) async fn serve() -> anyhow::Result<()> {
    let routes = Router::new()
        .route("/svcpartner/createPaymentOrder", post(create))
        .route("/svcpartner/paymentByExternalTransaction", get(query))
        .route("/token", post(token));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", serde_json::json!({ "baseUrl": format!("http://{}", listener.local_addr()?) }));
    until_asked_to_end(axum::serve(listener, routes)).await
}

async fn create(Json(request): Json<CreateRequest>) -> Json<Envelope> {
    envelope(request.external_transaction_id, request.amount)
}

async fn query(Query(request): Query<QueryRequest>) -> Json<Envelope> {
    envelope(request.external_transaction_id, 15_000)
}

async fn token(Form(request): Form<TokenRequest>) -> Json<TokenReply> {
    Json(TokenReply {
        access_token: TOKEN,
        token_type: "Bearer",
        expires_in: request.validity_period,
        scope: "default",
    })
}

/// As long as a real one.
const TOKEN: &str = concat!(
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6IjAxMjM0NTY3In0.",
    "eyJzdWIiOiJzdmNfMDEyMzQ1Njc4OWFiY2RlZiIsImF1ZCI6InNhbmRib3giLCJlcG9jaCI6MSwiaWF0Ijox",
    "ODAwMDAwMDAwLCJleHAiOjE4MDAwMDM2MDB9.c2lnbmF0dXJlLXNpZ25hdHVyZS1zaWduYXR1cmUtc2ln",
);

fn envelope(external_transaction_id: String, amount: i64) -> Json<Envelope> {
    Json(Envelope {
        code: 200,
        message: "OK",
        data: OrderData {
            external_transaction_id,
            payment_status: "PEN",
            reference_number: "01JC4E9V7Q3M8Y5T2K6R1N0WXZ",
            amount,
        },
    })
}
