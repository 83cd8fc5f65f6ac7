//! `/docs`: the API's description as a page that needs no network and no script.

use askama::Template;
use serde_json::Value;
use utoipa::openapi::OpenApi;

use crate::http::all_errors;

/// The hash is of the style in `templates/docs.html`; a test holds the two together.
pub(super) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'sha256-seWiU3yEVXv101J9ZapStkLS4YvjnCIwTsT7HHHjhiU='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage {
    title: String,
    version: String,
    introduction: String,
    operations: Vec<Operation>,
    errors: Vec<(u16, &'static str, String)>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: Vec<Span>,
    parameters: Vec<Field>,
    body: Vec<Field>,
    body_type: String,
    responses: Vec<(String, Vec<Span>)>,
}

/// A piece of a description; what stood between backticks is code.
struct Span {
    text: String,
    code: bool,
}

struct Field {
    name: String,
    kind: String,
    required: bool,
    text: Vec<Span>,
    example: String,
}

pub(super) fn page(openapi: &OpenApi) -> String {
    let document = serde_json::to_value(openapi).expect("a description of strings serialises");
    let text = |pointer: &str| string(document.pointer(pointer));
    let page = DocsPage {
        title: text("/info/title"),
        version: text("/info/version"),
        introduction: text("/info/description"),
        operations: operations(&document),
        errors: all_errors(),
    };
    page.render().expect("the template only prints strings")
}

/// In the order of the document's tags, which is that of a newcomer's first day.
fn operations(document: &Value) -> Vec<Operation> {
    let tags = document["tags"].as_array();
    let place = |operation: &Value| {
        let tag = &operation["tags"][0];
        let place = tags.and_then(|tags| tags.iter().position(|known| known["name"] == *tag));
        place.unwrap_or(usize::MAX)
    };
    let mut found = Vec::new();
    for section in ["paths", "webhooks"] {
        for (path, methods) in document[section].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                found.push((place(operation), read(document, path, method, operation)));
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, operation)| operation).collect()
}

fn read(document: &Value, path: &str, method: &str, operation: &Value) -> Operation {
    let content = operation["requestBody"]["content"].as_object();
    let body = content.and_then(|kinds| kinds.iter().next());
    Operation {
        id: string(operation.get("operationId")),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: spans(
            &[string(operation.get("summary")), string(operation.get("description"))].join(" "),
        ),
        parameters: operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|parameter| {
                field(
                    &string(parameter.get("name")),
                    parameter,
                    &parameter["schema"],
                    parameter["required"] == true,
                )
            })
            .collect(),
        body: body.map(|(_, media)| fields(document, &media["schema"], "")).unwrap_or_default(),
        body_type: body.map(|(kind, _)| kind.clone()).unwrap_or_default(),
        responses: operation["responses"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(status, response)| (status.clone(), spans(&string(response.get("description")))))
            .collect(),
    }
}

/// The fields of a schema, those of objects inside it as `outer.inner`.
fn fields(document: &Value, schema: &Value, prefix: &str) -> Vec<Field> {
    let schema = resolve(document, schema);
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .flat_map(|(name, property)| {
            let name_here = format!("{prefix}{name}");
            let property = resolve(document, property);
            let inner = fields(document, property, &format!("{name_here}."));
            let own = field(&name_here, property, property, required(name));
            std::iter::once(own).chain(inner)
        })
        .collect()
}

fn field(name: &str, described: &Value, schema: &Value, required: bool) -> Field {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().map(|kind| string(Some(kind))).unwrap_or_default(),
        other => string(Some(other)),
    };
    Field {
        name: name.to_owned(),
        kind,
        required,
        text: spans(&string(described.get("description"))),
        example: string(schema.get("example").or(schema["examples"].get(0))),
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    reference.and_then(|path| document.pointer(path)).unwrap_or(schema)
}

fn spans(description: &str) -> Vec<Span> {
    let pieces = description.split('`').enumerate();
    pieces.map(|(place, text)| Span { text: text.to_owned(), code: place % 2 == 1 }).collect()
}

fn string(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::digest;
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    #[test]
    fn the_policy_allows_exactly_the_style_of_the_page() {
        let template = include_str!("../../templates/docs.html");
        let start = template.find("<style>").unwrap() + "<style>".len();
        let style = &template[start..template.find("</style>").unwrap()];
        let hash = STANDARD.encode(digest::digest(&digest::SHA256, style.as_bytes()));
        assert!(CONTENT_SECURITY_POLICY.contains(&format!("'sha256-{hash}'")), "now it is {hash}");
    }
}
