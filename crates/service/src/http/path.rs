//! What stands in the path of an address. What cannot be text leads nowhere.

use axum::extract::{self, FromRequestParts};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::ApiError;

pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let given = extract::Path::from_request_parts(parts, state).await;
        given.map(|extract::Path(given)| Self(given)).map_err(|_| ApiError::RouteNotFound)
    }
}
