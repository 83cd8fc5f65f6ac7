//! A case as the data files write it, and the bytes it stands for.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::template::Words;
use super::wire;

/// One data file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    default: Defaults,
    case: Vec<Case>,
}

/// What a case sends where it says nothing else.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defaults {
    server: Server,
    request: String,
    headers: BTreeMap<String, String>,
    body: String,
}

/// Which of the three servers is asked.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Server {
    /// A sandbox that sends webhooks to public hosts only.
    Sandbox,
    /// `svc demo`: webhooks may go to private addresses.
    Demo,
    Production,
}

/// One case; with `values`, one for each of them, called {value} in every text.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub id: String,
    pub say: String,
    #[serde(default)]
    values: Vec<String>,

    // The request: what differs from the default.
    server: Option<Server>,
    request: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    without_headers: Vec<String>,
    #[serde(default)]
    extra_headers: Vec<String>,
    body: Option<String>,
    /// Fields of {order} to change or add, each the JSON text of its value.
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    remove: Vec<String>,
    /// The same for the document inside `additionalInfo`.
    #[serde(default)]
    set_info: BTreeMap<String, String>,
    #[serde(default)]
    remove_info: Vec<String>,
    /// The whole request line by line, for what no HTTP library would send.
    raw: Option<Vec<String>>,

    // The answer.
    pub status: u16,
    pub error: Option<String>,
    /// The field `details` must name, and what it must say about it.
    pub field: Option<String>,
    pub issue: Option<String>,
    /// Part of the message.
    pub says: Option<String>,
    pub language: Option<String>,
    #[serde(default)]
    pub answer_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub absent_headers: Vec<String>,
    /// Part of a success: every key given here must be there with this value.
    pub reply: Option<Value>,
    /// Refused by the HTTP parser, below the API: the status may be all there is.
    #[serde(default)]
    pub bare: bool,
    /// The server hangs up after this answer and answers nothing that follows.
    #[serde(default)]
    pub closes: bool,
}

/// A case with one value, and the defaults of its table.
pub(crate) struct Single {
    pub case: Case,
    pub value: String,
    default: Defaults,
}

/// The order that every case spoils in one place: field to JSON text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RightOrder {
    order: BTreeMap<String, String>,
    info: BTreeMap<String, String>,
}

pub(crate) fn read(name: &str, text: &str) -> Vec<Single> {
    let table: Table = toml::from_str(text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let singles: Vec<_> =
        table.case.into_iter().flat_map(|case| one_per_value(case, &table.default)).collect();
    let mut ids: Vec<_> = singles.iter().map(|single| &single.case.id).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
    assert!(twice.is_none(), "{name}: the id {} is used twice", twice.expect("is some")[0]);
    singles
}

/// C17 with three values is C17a, C17b and C17c.
fn one_per_value(case: Case, default: &Defaults) -> Vec<Single> {
    let default = || default.clone();
    if case.values.is_empty() {
        return vec![Single { case, value: String::new(), default: default() }];
    }
    let letters = 'a'..='z';
    assert!(case.values.len() <= 26, "{}: more values than letters", case.id);
    let lettered = case.values.iter().zip(letters).map(|(value, letter)| Single {
        case: Case { id: format!("{}{letter}", case.id), ..case.clone() },
        value: value.clone(),
        default: default(),
    });
    lettered.collect()
}

impl Single {
    pub(crate) fn server(&self) -> Server {
        self.case.server.unwrap_or(self.default.server)
    }

    /// The request on the wire.
    pub(crate) fn bytes(&self, words: &Words) -> Vec<u8> {
        let order = self.order(words);
        let words = Words { order: &order, ..words.clone() };
        if let Some(lines) = &self.case.raw {
            return words.expand(&lines.join("\r\n"));
        }
        let request = words.expand(self.case.request.as_ref().unwrap_or(&self.default.request));
        let body = words.expand(self.case.body.as_ref().unwrap_or(&self.default.body));
        let mut headers = self.default.headers.clone();
        headers.extend(self.case.headers.clone());
        headers.retain(|name, _| !self.case.without_headers.contains(name));
        let headers = headers.iter().map(|(name, value)| format!("{name}: {value}"));
        let headers: Vec<_> = headers
            .chain(self.case.extra_headers.iter().cloned())
            .map(|line| words.expand(&line))
            .collect();
        wire::request(&request, &headers, &body)
    }

    /// The right order with this case's changes.
    fn order(&self, words: &Words) -> Vec<u8> {
        let RightOrder { order, info } =
            toml::from_str(include_str!("order.toml")).expect("order.toml holds texts");
        let info = changed(words, info, &self.case.set_info, &self.case.remove_info);
        let info = String::from_utf8(document(&info)).expect("a document inside a string is text");
        let mut order = order;
        order.insert("additionalInfo".into(), Value::String(info).to_string());
        document(&changed(words, order, &self.case.set, &self.case.remove))
    }
}

type Fields = BTreeMap<String, Vec<u8>>;

fn changed(
    words: &Words,
    mut fields: BTreeMap<String, String>,
    set: &BTreeMap<String, String>,
    remove: &[String],
) -> Fields {
    fields.extend(set.iter().map(|(key, value)| (words.text(key), value.clone())));
    let removed: Vec<_> = remove.iter().map(|key| words.text(key)).collect();
    fields.retain(|key, _| !removed.contains(key));
    fields.into_iter().map(|(key, value)| (key, words.expand(&value))).collect()
}

/// Written by hand and not by a library, so that a value may be what no library would write.
fn document(fields: &Fields) -> Vec<u8> {
    let mut text = b"{".to_vec();
    for (at, (key, value)) in fields.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend(format!("{}:", Value::String(key.clone())).bytes());
        text.extend(value);
    }
    text.push(b'}');
    text
}
