//! What a drill counted, and whether every promise was kept.

use std::fmt::Display;

/// One drill's table; a row that breaks a promise is marked.
pub(crate) struct Ledger {
    title: String,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    figure: String,
    /// `None` where a figure only tells.
    kept: Option<bool>,
}

impl Ledger {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), rows: Vec::new() }
    }

    /// A figure that only tells.
    pub(crate) fn tell(&mut self, name: &str, figure: impl Display) {
        self.push(name, figure, None);
    }

    /// A promise with its figure.
    pub(crate) fn promise(&mut self, name: &str, figure: impl Display, kept: bool) {
        self.push(name, figure, Some(kept));
    }

    /// How many times a promise was broken.
    pub(crate) fn never(&mut self, name: &str, times: u64) {
        self.promise(name, times, times == 0);
    }

    fn push(&mut self, name: &str, figure: impl Display, kept: Option<bool>) {
        self.rows.push(Row { name: name.to_owned(), figure: figure.to_string(), kept });
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.rows.iter().all(|row| row.kept != Some(false))
    }

    /// As a table of Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("### {}\n\n| | | |\n|---|---|---|\n", self.title);
        for Row { name, figure, kept } in &self.rows {
            let mark = match kept {
                None => "",
                Some(true) => "kept",
                Some(false) => "**BROKEN**",
            };
            text += &format!("| {name} | {figure} | {mark} |\n");
        }
        text
    }
}
