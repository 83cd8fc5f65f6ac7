//! Access tokens: signed, stateless, understood by every node (spec 5.1).

use std::sync::Arc;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::app::{App, Token};
use crate::domain::ClientId;

/// What a token says. Merchants treat it as opaque.
#[derive(Serialize, Deserialize)]
struct Claims {
    /// The partner's client id.
    sub: String,
    /// The environment, so that a sandbox token opens nothing in production.
    aud: String,
    /// The credential epoch: disabling or rotating raises it and kills the token.
    epoch: i64,
    iat: i64,
    exp: i64,
}

pub(crate) fn issue_token(app: &App, client: &ClientId, epoch: i64, seconds: i64) -> String {
    // The second that has begun is given away: a token never lives shorter than it was told.
    let now = app.clock.now().as_millisecond().div_euclid(1_000) + 1;
    let claims = Claims {
        sub: client.as_str().to_owned(),
        aud: app.environment.as_str().to_owned(),
        epoch,
        iat: now,
        exp: now + seconds,
    };
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(app.keys.id());
    let key = EncodingKey::from_secret(app.keys.token_key());
    jsonwebtoken::encode(&header, &claims, &key).expect("claims of strings and integers encode")
}

/// What a token says that is ours, of this environment and not expired.
pub(crate) fn verify_token(app: &App, token: &str) -> Option<Arc<Token>> {
    let known = match app.tokens.get(token) {
        Some(known) => known,
        None => app.tokens.remember(token, check_signature(app, token)?),
    };
    // The service's own clock decides, to the second.
    (app.clock.now().as_second() < known.expires_at_s).then_some(known)
}

fn check_signature(app: &App, token: &str) -> Option<Token> {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_audience(&[app.environment.as_str()]);
    validation.set_required_spec_claims(&["exp", "aud", "sub"]);
    validation.validate_exp = false;
    let read = |key: &[u8]| {
        let key = DecodingKey::from_secret(key);
        jsonwebtoken::decode::<Claims>(token, &key, &validation).ok()
    };
    let claims = app.keys.token_keys().find_map(read)?.claims;
    let client_id = ClientId::parse(claims.sub).ok()?;
    Some(Token { client_id, epoch: claims.epoch, expires_at_s: claims.exp })
}
