//! POST /token (spec 4.1).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use crate::app::{App, Known};
use crate::domain::ClientId;
use crate::http::{
    ApiError, ErrorReply, Exchange, Looks, Pairs, TokenFault, authorization, issue_token, json,
    read_form,
};
use crate::store::{Partner, PartnerState};

const SECONDS_DEFAULT: i64 = 3_600;
const SECONDS_MAX: i64 = 86_400;

#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct TokenReply {
    /// Opaque; send it as `Authorization: Bearer`.
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// Seconds.
    #[schema(example = 3600)]
    expires_in: i64,
    #[schema(example = "default")]
    scope: &'static str,
}

/// What a token is asked for with.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct TokenRequest {
    #[schema(example = "client_credentials")]
    grant_type: String,
    /// Seconds, 1 or more; above 86400 it is cut to 86400 and told in `expires_in`.
    #[schema(required = false, nullable = false, minimum = 1, example = 3600, default = 3600)]
    validity_period: Option<i64>,
}

/// An access token for HTTP Basic credentials.
#[utoipa::path(
    post,
    path = "/token",
    tag = "Token",
    security(("basic" = [])),
    request_body(content = TokenRequest, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "A token", body = TokenReply),
        (status = 400, description = "`invalid_request`, `unsupported_grant_type` or `malformed_request`", body = ErrorReply),
        (status = 401, description = "`invalid_client`", body = ErrorReply),
        (status = 413, description = "`payload_too_large`: more than 8 KiB", body = ErrorReply),
        (status = 429, description = "`rate_limited`: too many failures", body = ErrorReply),
    )
)]
pub(super) async fn token(
    State(app): State<App>,
    exchange: Exchange,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let partner = authenticate(&app, &exchange, &headers).await?;
    let form = read_form(&headers, body).await?;
    let seconds = parse(&form)?;
    let access_token = issue_token(&app, &partner.client_id, partner.epoch, seconds);
    app.metrics.tokens_issued.increment(1);
    app.request_log.key_used(partner.id, app.clock.now());
    if let Some(trace) = &exchange.trace {
        trace.partner(partner.id);
    }
    let mut reply = json(&TokenReply {
        access_token,
        token_type: "Bearer",
        expires_in: seconds,
        scope: "default",
    });
    // RFC 6749 section 5.1.
    reply.headers_mut().insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    Ok(reply)
}

async fn authenticate(
    app: &App,
    exchange: &Exchange,
    headers: &HeaderMap,
) -> Result<Arc<Partner>, ApiError> {
    let credentials = basic(headers);
    if let Some((client, secret)) = &credentials
        && let Some(partner) = verified(app, &app.directory.known(), client, secret)
    {
        return Ok(partner);
    }
    // Counted before the database is asked, so that guessing cannot load it.
    let client = credentials.as_ref().map(|(client, _)| client);
    let failed = |_: &_| app.metrics.token_failures.increment(1);
    app.limits.token_failure(client, exchange.from).inspect_err(failed)?;
    if let Some((client, secret)) = &credentials {
        // Unknown, wrong and disabled take the same way: one look at the stored directory, in case
        // the partner was created or its secret rotated a moment ago, and the same comparison.
        let fresh = app.directory.refresh(&app.store).await?;
        if let Some(partner) = verified(app, &fresh, client, secret) {
            return Ok(partner);
        }
    }
    app.metrics.token_failures.increment(1);
    Err(ApiError::InvalidClient(credentials.map_or(Looks::Credentials, looks)))
}

/// Nobody is told more of what we know than that it is not that.
fn looks((client, secret): (ClientId, SecretString)) -> Looks {
    if secret.expose_secret().starts_with("whsec_") {
        Looks::WebhookSecret
    } else if client.as_str().starts_with("pk_") {
        Looks::PublishableKey
    } else {
        Looks::Credentials
    }
}

/// Compares in constant time, and does the same work when there is nothing to compare with.
fn verified(
    app: &App,
    known: &Known,
    client: &ClientId,
    secret: &SecretString,
) -> Option<Arc<Partner>> {
    const NOBODY: [u8; 32] = [0; 32];
    let partner = known.partner(client);
    let secret = secret.expose_secret();
    let current = partner.map_or(&NOBODY[..], |partner| &partner.secret_hash);
    let previous = partner
        .and_then(|partner| partner.previous_secret.as_ref())
        .filter(|(_, until)| app.clock.now() < *until)
        .map_or(&NOBODY[..], |(hash, _)| hash);
    let right = app.keys.matches(current, secret) | app.keys.matches(previous, secret);
    partner.filter(|partner| right && partner.state == PartnerState::Active).cloned()
}

/// The one `Authorization: Basic` header, decoded.
fn basic(headers: &HeaderMap) -> Option<(ClientId, SecretString)> {
    let encoded = authorization(headers, "basic")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (client, secret) = decoded.split_once(':')?;
    Some((ClientId::parse(client).ok()?, secret.to_owned().into()))
}

/// The seconds the token shall live.
fn parse(form: &Pairs) -> Result<i64, ApiError> {
    if form.iter().any(|(name, _)| matches!(name, "client_id" | "client_secret")) {
        return Err(ApiError::InvalidRequest(TokenFault::TwoCredentials));
    }
    match only(form, "grant_type")? {
        None => return Err(ApiError::InvalidRequest(TokenFault::GrantTypeMissing)),
        Some("client_credentials") => {}
        Some(_) => return Err(ApiError::UnsupportedGrantType),
    }
    let Some(period) = only(form, "validity_period")? else { return Ok(SECONDS_DEFAULT) };
    let digits = !period.is_empty() && period.bytes().all(|b| b.is_ascii_digit());
    match period.parse::<i64>() {
        Ok(seconds @ 1..) if digits => Ok(seconds.min(SECONDS_MAX)),
        _ => Err(ApiError::InvalidRequest(TokenFault::ValidityPeriod)),
    }
}

/// A field given twice has no one meaning.
fn only<'a>(form: &'a Pairs, name: &str) -> Result<Option<&'a str>, ApiError> {
    let mut values = form.values(name);
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(ApiError::InvalidRequest(TokenFault::Form)),
    }
}
