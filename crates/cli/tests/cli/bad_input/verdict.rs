//! What is wrong with an answer, if anything.

use serde_json::Value;

use super::case::{Case, Single};
use super::template::Words;
use super::wire::Answer;

pub(crate) fn complaints(
    single: &Single,
    words: &Words,
    request: &[u8],
    answer: &Answer,
) -> Vec<String> {
    let case = &single.case;
    let mut complaints = Vec::new();
    if answer.status != case.status {
        let (expected, actual) = (case.status, answer.status);
        complaints.push(format!("answered {actual}, not {expected}: {}", answer.text()));
        return complaints;
    }
    complaints.extend(header_complaints(case, answer));
    complaints.extend(leaks(words, answer));
    if answer.status >= 400 && !may_be_empty(case, request, answer) {
        complaints.extend(shape_complaints(answer, request.starts_with(b"POST /token ")));
        complaints.extend(error_complaints(case, words, answer));
    }
    if let Some(expected) = &case.reply
        && let Some(fault) = lacks(&filled(words, expected), &answer.json())
    {
        complaints.push(format!("{fault} in {}", answer.text()));
    }
    complaints
}

/// HEAD has no body, and what the HTTP parser refuses is a status only.
fn may_be_empty(case: &Case, request: &[u8], answer: &Answer) -> bool {
    request.starts_with(b"HEAD ") || (case.bare && answer.body.is_empty())
}

/// The secrets of the merchant, each with what to call it.
pub(crate) fn secrets(words: &Words) -> [(&'static str, String); 4] {
    [
        ("the client secret", words.text("{clientSecret}")),
        ("the Basic credentials", words.text("{basic}")),
        ("the webhook secret", words.credentials.webhook_secret.clone()),
        ("the access token", words.text("{token}")),
    ]
}

fn leaks(words: &Words, answer: &Answer) -> Vec<String> {
    let whole = format!("{:?}{}", answer.headers, answer.text());
    let leaked = secrets(words).into_iter().filter(|(name, secret)| {
        // Two tokens asked for in one second are equal: a success may hold ours.
        let ours_to_see = *name == "the access token" && answer.status == 200;
        whole.contains(secret.as_str()) && !ours_to_see
    });
    leaked.map(|(name, _)| format!("the answer shows {name}")).collect()
}

fn header_complaints(case: &Case, answer: &Answer) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, expected) in &case.answer_headers {
        let actual = answer.header(name);
        if !actual.is_some_and(|value| value.starts_with(expected.as_str())) {
            complaints.push(format!("{name} is {actual:?}, not {expected:?}"));
        }
    }
    for name in &case.absent_headers {
        if answer.header(name).is_some() {
            complaints.push(format!("{name} is there"));
        }
    }
    let language = case.language.as_deref().unwrap_or("pt");
    if answer.status >= 400 && !case.bare && answer.header("content-language") != Some(language) {
        complaints.push(format!("the language is {:?}", answer.header("content-language")));
    }
    complaints
}

/// Spec 7, and what design adds to it: the same for every error.
fn shape_complaints(answer: &Answer, from_token: bool) -> Vec<String> {
    let json = answer.json();
    let text = |key: &str| json[key].as_str().filter(|text| !text.is_empty());
    let rules = [
        ("Content-Type is not JSON", answer.header("content-type") == Some("application/json")),
        ("a cache may keep it", answer.header("cache-control") == Some("no-store")),
        ("code is not the status", json["code"] == answer.status),
        ("message is missing", text("message").is_some()),
        ("error is missing", text("error").is_some()),
        ("requestId is missing", text("requestId").is_some()),
        ("X-Request-Id differs", answer.header("x-request-id") == text("requestId")),
        // RFC 6749 section 5.2.
        ("error_description differs", !from_token || json["error_description"] == json["message"]),
    ];
    let broken = rules.iter().filter(|(_, holds)| !holds);
    broken.map(|(rule, _)| format!("{rule}: {}", answer.text())).collect()
}

fn error_complaints(case: &Case, words: &Words, answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let mut complaints = Vec::new();
    if !case.bare && case.error.as_deref() != json["error"].as_str() {
        complaints.push(format!("error is {}, not {:?}", json["error"], case.error));
    }
    let field = case.field.as_ref().map(|field| words.text(field));
    let issue = case.issue.as_ref();
    let described = json["details"].as_array().is_some_and(|details| {
        details.iter().any(|detail| {
            field.as_ref().is_none_or(|field| detail["field"] == **field)
                && issue.is_none_or(|issue| detail["issue"] == **issue)
        })
    });
    if (field.is_some() || issue.is_some()) && !described {
        complaints.push(format!("details name {}, not {field:?} {issue:?}", json["details"]));
    }
    let message = json["message"].as_str().unwrap_or_default();
    if let Some(part) = case.says.as_ref().map(|part| words.text(part))
        && !message.contains(&part)
    {
        complaints.push(format!("the message does not say {part:?}: {message}"));
    }
    complaints
}

fn filled(words: &Words, expected: &Value) -> Value {
    match expected {
        Value::String(text) => Value::String(words.text(text)),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled(words, value))).collect()
        }
        other => other.clone(),
    }
}

/// The first thing that is expected and not there.
fn lacks(expected: &Value, actual: &Value) -> Option<String> {
    match expected {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| lacks(value, &actual[key])),
        other => (other != actual).then(|| format!("{actual} instead of {other}")),
    }
}
