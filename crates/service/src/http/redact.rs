//! A body as the request log keeps it: the fields of the contract, and nothing personal or secret.

use serde_json::Value;
use url::Url;

/// Kept of a body.
const BYTES_MAX: usize = 2_048;
/// What is shown; of anything else only that it was there.
const SHOWN: [&str; 14] = [
    "applicationUUID",
    "externalTransactionId",
    "amount",
    "quantity",
    "name",
    "additionalInfo",
    "outcome",
    "advanceSeconds",
    "duplicate",
    "reorder",
    "delayMs",
    "dropFirst",
    "failureRate",
    "seed",
];

pub(crate) fn redacted(body: &[u8]) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return format!("({} bytes, not a JSON object)", body.len());
    };
    let shown = fields.into_iter().map(|(name, value)| {
        let shown = SHOWN.contains(&name.as_str()) && !value.is_object() && !value.is_array();
        let value = match value {
            Value::String(info) if name == "additionalInfo" => Value::from(addresses(&info)),
            value if shown => value,
            _ => Value::from("…"),
        };
        (name.chars().take(64).collect::<String>(), value)
    });
    let mut text = Value::Object(shown.collect()).to_string();
    if text.len() > BYTES_MAX {
        let end = (0..=BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Of `additionalInfo` the three addresses, without what shops put behind the question mark.
fn addresses(info: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str(info) else {
        return format!("({} bytes, not a JSON object)", info.len());
    };
    let shown = members.into_iter().map(|(name, value)| {
        let known = ["returnUrl", "cancelUrl", "webhookUrl"].contains(&name.as_str());
        let url = value.as_str().filter(|_| known).and_then(|text| Url::parse(text).ok());
        let address = url.map_or("…".to_owned(), |mut url| {
            let more = if url.query().or(url.fragment()).is_some() { "?…" } else { "" };
            url.set_query(None);
            url.set_fragment(None);
            let _ = url.set_username("").and_then(|()| url.set_password(None));
            format!("{url}{more}")
        });
        (name.chars().take(64).collect::<String>(), Value::from(address))
    });
    Value::Object(shown.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fields_of_the_contract_are_kept() {
        let body =
            br#"{"amount":15000,"clientId":"923000000","clientSecret":"svcsec_x","name":"T"}"#;
        let kept: Value = serde_json::from_str(&redacted(body)).unwrap();
        assert_eq!((&kept["amount"], &kept["name"]), (&Value::from(15_000), &Value::from("T")));
        assert_eq!((&kept["clientId"], &kept["clientSecret"]), (&"…".into(), &"…".into()));
    }

    #[test]
    fn of_additional_info_only_the_addresses_are_kept() {
        let info = r#"{"returnUrl":"https://u:p@a.ao/ok?token=t#f","phone":"923000000"}"#;
        let body = serde_json::json!({ "additionalInfo": info }).to_string();
        let kept: Value = serde_json::from_str(&redacted(body.as_bytes())).unwrap();
        let expected = r#"{"phone":"…","returnUrl":"https://a.ao/ok?…"}"#;
        assert_eq!(kept["additionalInfo"], expected);
        let body = br#"{"additionalInfo":"returnUrl=https://a.ao"}"#;
        assert!(!redacted(body).contains("a.ao"));
    }

    #[test]
    fn what_is_no_object_is_only_counted() {
        assert_eq!(redacted(b"client_secret=svcsec_x"), "(22 bytes, not a JSON object)");
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let body = format!(r#"{{"name":"{}"}}"#, "ç".repeat(5_000));
        assert!(redacted(body.as_bytes()).len() < BYTES_MAX + 8);
    }
}
