//! What browsers refused to load or to run on our pages, as they tell it: a fault of ours, or somebody's attempt.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::app::App;
use crate::http::{ApiError, Exchange, FieldFault, Issue, read_policy_report};

/// The parts of a report that say something and give nobody away: addresses of pages name orders.
#[derive(Deserialize)]
struct Report {
    #[serde(rename = "csp-report")]
    told: Told,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Told {
    document_uri: String,
    effective_directive: String,
    blocked_uri: String,
}

/// POST /policy-reports: where `report-uri` of our pages leads. Anybody can send anything, so it is written down
/// and counted, and nothing follows from it.
pub(super) async fn report(
    State(app): State<App>,
    exchange: Exchange,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    app.limits.policy_report(exchange.from)?;
    let bytes = read_policy_report(&headers, body).await?;
    let not_json = |_| ApiError::InvalidBody(vec![FieldFault::new("body", Issue::NotJson)]);
    let Report { told } = serde_json::from_slice(&bytes).map_err(not_json)?;
    app.metrics.policy_reports.increment(1);
    tracing::warn!(
        directive = word(&told.effective_directive),
        blocked = blocked(&told.blocked_uri),
        page = page(&told.document_uri),
        "a browser refused something on one of our pages"
    );
    Ok(StatusCode::NO_CONTENT)
}

/// As browsers name directives and what has no address: `script-src-elem`, `inline`.
fn word(text: &str) -> &str {
    const BYTES_MAX: usize = 32;
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    let fits = text.len() <= BYTES_MAX && text.bytes().all(is_word);
    if fits { text } else { "?" }
}

fn blocked(text: &str) -> String {
    match Url::parse(text) {
        // Without what was asked of it.
        Ok(url) if url.has_host() => url.origin().ascii_serialization(),
        Ok(url) => word(url.scheme()).to_owned(),
        Err(_) => word(text).to_owned(),
    }
}

/// Which of our rooms it was: checkout, console.
fn page(address: &str) -> String {
    let address = Url::parse(address).ok();
    let first = address.as_ref().and_then(|address| address.path_segments()?.next());
    word(first.unwrap_or_default()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_names_nobody_and_cannot_be_forged() {
        assert_eq!(page("https://pay.ao/checkout/SVC123?session=secret"), "checkout");
        assert_eq!(page("https://pay.ao/CHECKOUT\n/x"), "?");
        assert_eq!(blocked("https://evil.example/a?card=4000#x"), "https://evil.example");
        assert_eq!(blocked("data"), "data");
        assert_eq!(blocked("data:text/html,secret"), "data");
        assert_eq!(blocked("inline"), "inline");
        assert_eq!(blocked("fine\nlevel=error"), "?");
        assert_eq!(word(&"a".repeat(33)), "?");
    }
}
