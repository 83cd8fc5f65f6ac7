//! Passwords: Argon2id, one at a time, and the same work for names nobody has.

use std::sync::LazyLock;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

use super::frame::Refusal;
use crate::app::App;

pub(super) const CHARS_MIN: usize = 12;
pub(super) const CHARS_MAX: usize = 200;
/// Each takes memory on purpose; many at once would take it from orders.
static AT_ONCE: Semaphore = Semaphore::const_new(1);

/// Long enough, not endless, and typed twice alike.
pub(super) fn fault(first: &str, again: &str) -> Option<&'static str> {
    match first.chars().count() {
        ..CHARS_MIN => Some("short"),
        chars if chars > CHARS_MAX => Some("long"),
        _ => (first != again).then_some("differ"),
    }
}

/// 19 MiB and two passes, as OWASP advises.
fn argon2() -> Argon2<'static> {
    let params = Params::new(19 * 1024, 2, 1, None).expect("the parameters are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

pub(super) async fn hash(app: &App, password: SecretString) -> Result<String, Refusal> {
    let salt = SaltString::encode_b64(&app.random.bytes::<16>()).expect("16 bytes are a salt");
    let work = move || hashed(&password, &salt);
    alone(work).await.ok_or_else(|| Refusal::Broken("a password could not be hashed".into()))
}

/// Whether it is the right one. Without a hash to compare with, the work is done all the same.
pub(super) async fn matches(hash: Option<String>, password: SecretString) -> bool {
    static NOBODY: LazyLock<String> = LazyLock::new(|| {
        let salt = SaltString::encode_b64(&[7; 16]).expect("16 bytes are a salt");
        hashed(&SecretString::from("nobody's".to_owned()), &salt)
    });
    let known = hash.is_some();
    let work = move || {
        let hash = hash.unwrap_or_else(|| NOBODY.clone());
        let Ok(hash) = PasswordHash::new(&hash) else { return false };
        argon2().verify_password(password.expose_secret().as_bytes(), &hash).is_ok()
    };
    alone(work).await.unwrap_or(false) && known
}

fn hashed(password: &SecretString, salt: &SaltString) -> String {
    argon2()
        .hash_password(password.expose_secret().as_bytes(), salt)
        .expect("a password of bounded length can be hashed")
        .to_string()
}

async fn alone<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let _turn = AT_ONCE.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}
