//! Every way a request can fail, and the status, `error` value and headers that tell it (spec 7).

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::issues::FieldFault;
use crate::app::Limited;
use crate::orders::CreateError;
use crate::store::StoreError;

#[derive(Clone, Debug)]
pub(crate) enum ApiError {
    /// /token: credentials missing, malformed, unknown, wrong or disabled. One answer for all, but for what is
    /// something else by its looks.
    InvalidClient(Looks),
    /// Bearer token missing, expired, forged, of another environment or of a rotated secret.
    InvalidToken,
    /// The checkout session is missing, of another order, or has run out.
    InvalidSession,
    /// A rail's notice is not signed as it should be.
    InvalidSignature,
    /// A change asked for by another site's page.
    ForeignOrigin,
    /// Production was called past its proxy, or its proxy was called without TLS.
    HttpsRequired,
    /// /token: the form is wrong (RFC 6749 section 5.2).
    InvalidRequest(TokenFault),
    UnsupportedGrantType,
    InvalidBody(Vec<FieldFault>),
    /// Query parameters that are missing or cannot be right.
    InvalidQuery(Vec<FieldFault>),
    IdempotencyConflict(Vec<&'static str>),
    OrderNotFound,
    ApplicationNotFound,
    RouteNotFound,
    MethodNotAllowed,
    /// The bytes of the body are not what HTTP allows.
    MalformedRequest,
    RequestTimeout,
    PayloadTooLarge,
    UriTooLong,
    /// What is taken here.
    UnsupportedMediaType(&'static str),
    RateLimited(Limited),
    /// Nobody knows whether it happened; the same call again tells. The reason is for our log.
    StorageUnavailable(String),
    /// A fault of ours; the reason is for our log.
    Internal(String),
}

/// What was sent as credentials, as far as anybody can see who knows nothing of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    Credentials,
    /// In the place of the client secret.
    WebhookSecret,
    /// In the place of the client id.
    PublishableKey,
}

/// What is wrong with a token request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    GrantTypeMissing,
    ValidityPeriod,
    Form,
    TwoCredentials,
}

impl ApiError {
    /// The closed list of `error` values with their status: no other place of the API knows status codes.
    pub(crate) fn table(&self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidClient(_) => (StatusCode::UNAUTHORIZED, "invalid_client"),
            Self::InvalidToken => (StatusCode::UNAUTHORIZED, "invalid_token"),
            Self::InvalidSession => (StatusCode::UNAUTHORIZED, "invalid_session"),
            Self::InvalidSignature => (StatusCode::UNAUTHORIZED, "invalid_signature"),
            Self::ForeignOrigin => (StatusCode::FORBIDDEN, "foreign_origin"),
            Self::HttpsRequired => (StatusCode::FORBIDDEN, "https_required"),
            Self::InvalidRequest(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::UnsupportedGrantType => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
            Self::InvalidBody(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_body"),
            Self::InvalidQuery(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_query"),
            Self::IdempotencyConflict(_) => (StatusCode::CONFLICT, "idempotency_conflict"),
            Self::OrderNotFound => (StatusCode::NOT_FOUND, "order_not_found"),
            Self::ApplicationNotFound => (StatusCode::NOT_FOUND, "application_not_found"),
            Self::RouteNotFound => (StatusCode::NOT_FOUND, "not_found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::MalformedRequest => (StatusCode::BAD_REQUEST, "malformed_request"),
            Self::RequestTimeout => (StatusCode::REQUEST_TIMEOUT, "request_timeout"),
            Self::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"),
            Self::UriTooLong => (StatusCode::URI_TOO_LONG, "uri_too_long"),
            Self::UnsupportedMediaType(_) => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type")
            }
            Self::RateLimited(_) => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            Self::StorageUnavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "storage_unavailable"),
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
        }
    }

    /// Headers that go with the status.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        match self {
            Self::InvalidClient(_) => {
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static(r#"Basic realm="svc", charset="UTF-8""#),
                );
            }
            Self::InvalidToken => {
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static(r#"Bearer realm="svc", error="invalid_token""#),
                );
            }
            Self::RateLimited(limited) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(limited.retry_after_s));
            }
            Self::StorageUnavailable(_) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
    }
}

/// The shell of an answer; `answer` fills in the body once it knows language and request id.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.table().0.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Limited> for ApiError {
    fn from(limited: Limited) -> Self {
        Self::RateLimited(limited)
    }
}

impl From<StoreError> for ApiError {
    fn from(fault: StoreError) -> Self {
        match fault {
            StoreError::Unavailable(_) | StoreError::Broken(_) => {
                Self::StorageUnavailable(fault.to_string())
            }
            StoreError::Refused(_)
            | StoreError::Corrupt(_)
            | StoreError::Taken(_)
            | StoreError::Unknown(_) => Self::Internal(fault.to_string()),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(fault: CreateError) -> Self {
        match fault {
            CreateError::Conflict(fields) => Self::IdempotencyConflict(fields),
            CreateError::Refused(fault) => Self::InvalidBody(vec![fault.into()]),
            CreateError::Store(fault) => fault.into(),
        }
    }
}
