//! The envelope of success (spec 4.3): `{"code":200,"message":"OK","data":…}`.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

pub(crate) struct Reply<T> {
    data: T,
    replayed: bool,
}

/// Tells a repeated creation from the first one.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Envelope<T> {
    #[schema(example = 200)]
    code: u16,
    #[schema(example = "OK")]
    message: &'static str,
    data: T,
}

impl<T: Serialize> Reply<T> {
    pub(crate) fn ok(data: T) -> Self {
        Self { data, replayed: false }
    }

    pub(crate) fn replayed(self, replayed: bool) -> Self {
        Self { replayed, ..self }
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let envelope = Envelope { code: 200, message: "OK", data: self.data };
        let mut response = json(&envelope).into_response();
        if self.replayed {
            response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Any JSON answer. Nothing of this API is for caches.
pub(crate) fn json(value: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec(value).expect("wire structs always serialise");
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
