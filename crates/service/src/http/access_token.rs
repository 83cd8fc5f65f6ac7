//! Access tokens: signed, stateless, understood by every node (spec 5.1).

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::domain::ClientId;

/// What a token says. Merchants treat it as opaque.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The partner's client id.
    pub sub: String,
    /// The environment, so that a sandbox token opens nothing in production.
    pub aud: String,
    /// The credential epoch: disabling or rotating raises it and kills the token.
    pub epoch: i64,
    pub iat: i64,
    pub exp: i64,
}

pub(crate) struct AccessTokens<'a>(&'a App);

impl<'a> AccessTokens<'a> {
    pub(crate) fn of(app: &'a App) -> Self {
        Self(app)
    }

    pub(crate) fn issue(&self, client: &ClientId, epoch: i64, seconds: i64) -> String {
        let now = self.0.clock.now().as_second();
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

    /// The claims of a token that is ours, of this environment and not expired.
    pub(crate) fn verify(&self, token: &str) -> Option<Claims> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[self.0.environment.as_str()]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        // The service's own clock decides, to the second.
        validation.validate_exp = false;
        let key = DecodingKey::from_secret(self.0.keys.token_key());
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &validation).ok()?.claims;
        (!expired(&claims, self.0.clock.now())).then_some(claims)
    }
}

fn expired(claims: &Claims, now: Timestamp) -> bool {
    now.as_second() >= claims.exp
}
