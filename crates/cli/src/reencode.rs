//! A JSON document as a careless handler writes it again: the same meaning, other bytes.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// How libraries write JSON by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `JSON.stringify`, `json_encode`, serde.
    Compact,
    /// The same from a type of the handler's own, whose fields are in the order of the contract.
    Typed,
    /// Python's `json.dumps`.
    Spaced,
    /// Go's maps, PostgreSQL's `jsonb` and others that forget the order of keys.
    Sorted,
    SortedSpaced,
    Indented2,
    Indented4,
}

impl Style {
    pub(crate) const ALL: [Self; 7] = [
        Self::Compact,
        Self::Typed,
        Self::Spaced,
        Self::Sorted,
        Self::SortedSpaced,
        Self::Indented2,
        Self::Indented4,
    ];

    /// Between items, after a key, and the width of an indent.
    fn separators(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Compact | Self::Typed | Self::Sorted => (",", ":", 0),
            Self::Spaced | Self::SortedSpaced => (", ", ": ", 0),
            Self::Indented2 => (",", ": ", 2),
            Self::Indented4 => (",", ": ", 4),
        }
    }

    fn arrange(self, items: &mut [(Option<&str>, &Node)]) {
        match self {
            Self::Sorted | Self::SortedSpaced => items.sort_by_key(|(key, _)| *key),
            Self::Typed => items.sort_by_key(|(key, _)| {
                CONTRACT.iter().position(|field| Some(*field) == *key).unwrap_or(CONTRACT.len())
            }),
            Self::Compact | Self::Spaced | Self::Indented2 | Self::Indented4 => {}
        }
    }
}

/// The fields of an event in the order of spec 6.
const CONTRACT: [&str; 6] =
    ["event", "data", "externalTransactionId", "paymentStatus", "referenceNumber", "amount"];

/// The document written anew; `None` when it is not JSON.
pub(crate) fn reencode(document: &[u8], style: Style) -> Option<Vec<u8>> {
    let node: Node = serde_json::from_slice(document).ok()?;
    let mut out = String::new();
    write(&node, style, 0, &mut out);
    Some(out.into_bytes())
}

/// A value whose keys keep their order.
enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Node::Object(object))
    }
}

fn write(node: &Node, style: Style, depth: usize, out: &mut String) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Node::Number(value) => out.push_str(&value.to_string()),
        Node::Text(value) => quote(value, out),
        Node::List(items) => {
            let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
            write_all(&items, ['[', ']'], style, depth, out);
        }
        Node::Object(entries) => {
            let mut items: Vec<_> =
                entries.iter().map(|(key, value)| (Some(key.as_str()), value)).collect();
            style.arrange(&mut items);
            write_all(&items, ['{', '}'], style, depth, out);
        }
    }
}

fn write_all(
    items: &[(Option<&str>, &Node)],
    [open, close]: [char; 2],
    style: Style,
    depth: usize,
    out: &mut String,
) {
    let (between, after_key, indent) = style.separators();
    let new_line = |depth: usize, out: &mut String| {
        if indent > 0 && !items.is_empty() {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    out.push(open);
    for (index, (key, value)) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(between);
        }
        new_line(depth + 1, out);
        if let Some(key) = key {
            quote(key, out);
            out.push_str(after_key);
        }
        write(value, style, depth + 1, out);
    }
    new_line(depth, out);
    out.push(close);
}

fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("text always serialises"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(style: Style) -> String {
        let odd = b" { \"b\" :[ 1,-2 , {} ],\n \"a\":\"\\u0043ON\"} ";
        String::from_utf8(reencode(odd, style).unwrap()).unwrap()
    }

    #[test]
    fn each_style_is_that_of_its_library() {
        for (style, expected) in [
            (Style::Compact, r#"{"b":[1,-2,{}],"a":"CON"}"#),
            (Style::Spaced, r#"{"b": [1, -2, {}], "a": "CON"}"#),
            (Style::Sorted, r#"{"a":"CON","b":[1,-2,{}]}"#),
            (Style::SortedSpaced, r#"{"a": "CON", "b": [1, -2, {}]}"#),
            (Style::Indented2, "{\n  \"b\": [\n    1,\n    -2,\n    {}\n  ],\n  \"a\": \"CON\"\n}"),
        ] {
            assert_eq!(written(style), expected);
        }
        assert!(written(Style::Indented4).starts_with("{\n    \"b\""));
    }

    #[test]
    fn what_is_not_json_is_not_written() {
        assert_eq!(reencode(b"nonsense", Style::Compact), None);
    }
}
