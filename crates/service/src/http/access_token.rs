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

pub(crate) struct AccessTokens<'a>(&'a App);

impl<'a> AccessTokens<'a> {
    pub(crate) fn of(app: &'a App) -> Self {
        Self(app)
    }

    pub(crate) fn issue(&self, client: &ClientId, epoch: i64, seconds: i64) -> String {
        // The second that has begun is given away: a token never lives shorter than it was told.
        let now = self.0.clock.now().as_millisecond().div_euclid(1_000) + 1;
        let claims = Claims {
            sub: client.as_str().to_owned(),
            aud: self.0.environment.as_str().to_owned(),
            epoch,
            iat: now,
            exp: now + seconds,
        };
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some(self.0.keys.id());
        let key = EncodingKey::from_secret(self.0.keys.token_key());
        jsonwebtoken::encode(&header, &claims, &key).expect("claims of strings and integers encode")
    }

    /// What a token says that is ours, of this environment and not expired.
    pub(crate) fn verify(&self, token: &str) -> Option<Arc<Token>> {
        let known = match self.0.tokens.get(token) {
            Some(known) => known,
            None => self.0.tokens.remember(token, self.check_signature(token)?),
        };
        // The service's own clock decides, to the second.
        (self.0.clock.now().as_second() < known.expires_at_s).then_some(known)
    }

    fn check_signature(&self, token: &str) -> Option<Token> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[self.0.environment.as_str()]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        validation.validate_exp = false;
        let read = |key: &[u8]| {
            let key = DecodingKey::from_secret(key);
            jsonwebtoken::decode::<Claims>(token, &key, &validation).ok()
        };
        let claims = self.0.keys.token_keys().find_map(read)?.claims;
        let client_id = ClientId::parse(claims.sub).ok()?;
        Some(Token { client_id, epoch: claims.epoch, expires_at_s: claims.exp })
    }
}
