//! Who is calling: a Bearer token becomes a partner (spec 5.1).

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, header, request::Parts};

use super::access_token::verify_token;
use super::answer::Exchange;
use super::error::ApiError;
use crate::app::{App, Known};
use crate::domain::ApplicationUuid;
use crate::store::{Application, Partner, PartnerState, StoreError};

/// An authenticated partner within its rate.
pub(crate) struct Caller {
    pub partner: Arc<Partner>,
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let token = authorization(&parts.headers, "bearer").ok_or(ApiError::InvalidToken)?;
        let token = verify_token(app, token).ok_or(ApiError::InvalidToken)?;
        let current = |known: &Known| {
            known
                .partner(&token.client_id)
                .filter(|partner| partner.epoch == token.epoch)
                .filter(|partner| partner.state == PartnerState::Active)
                .cloned()
        };
        // The token is ours: if the epoch differs, it may be our copy of the directory that is old.
        let partner = match current(&app.directory.known()) {
            Some(partner) => partner,
            None => current(&*refreshed(app).await?).ok_or(ApiError::InvalidToken)?,
        };
        if let Some(trace) = Exchange::trace_of(parts) {
            trace.partner(partner.id);
        }
        app.limits.partner_request(partner.id)?;
        Ok(Self { partner })
    }
}

impl Caller {
    /// The caller's own application; foreign and unknown look alike.
    pub(crate) async fn application(
        &self,
        app: &App,
        uuid: &ApplicationUuid,
    ) -> Result<Arc<Application>, ApiError> {
        let own = |known: &Known| {
            known.application(uuid).filter(|found| found.partner == self.partner.id).cloned()
        };
        match own(&app.directory.known()) {
            Some(application) => Ok(application),
            None => own(&*refreshed(app).await?).ok_or(ApiError::ApplicationNotFound),
        }
    }
}

/// In a box: few calls come here, and none is to carry the room for it about.
async fn refreshed(app: &App) -> Result<Arc<Known>, StoreError> {
    Box::pin(app.directory.refresh(&app.store)).await
}

/// What the one `Authorization` header says, if it is of this scheme.
pub(crate) fn authorization<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (only, None) = (given.next()?, given.next()) else { return None };
    let (its_scheme, credentials) = only.to_str().ok()?.split_once(' ')?;
    let credentials = credentials.trim_start_matches(' ');
    its_scheme.eq_ignore_ascii_case(scheme).then_some(credentials)
}
