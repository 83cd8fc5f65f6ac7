//! Data on stdout, messages on stderr, colour only for a person.

use std::io::{IsTerminal, Write};

use serde::Serialize;

/// How a tool ends that cannot answer what it is asked; a bad answer is 1.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// A line of data. A reader that went away (`| head`) is no fault of ours; any other that does not get it must
/// not take us for done: it may have been a secret that is shown once.
pub(crate) fn line(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(fault) if fault.kind() != std::io::ErrorKind::BrokenPipe => {
            error(&anyhow::anyhow!("the output could not be written: {fault}"));
            std::process::exit(1);
        }
        _ => {}
    }
}

/// One line of JSON.
pub(crate) fn json(value: &impl Serialize) {
    line(serde_json::to_string(value).expect("what we print is strings and numbers"));
}

/// Something a person should know beside the data.
pub(crate) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

pub(crate) fn error(fault: &anyhow::Error) {
    let label = if std::io::stderr().is_terminal() { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
    note(format_args!("{label} {fault:#}"));
}

/// Emphasis on a terminal, plain text elsewhere.
pub(crate) fn bold(text: impl std::fmt::Display) -> String {
    painted("1", text)
}

/// In one of the terminal's colours, for a person at one.
pub(crate) fn painted(code: &str, text: impl std::fmt::Display) -> String {
    match std::io::stdout().is_terminal() {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_string(),
    }
}

/// What merchants, payers and rails wrote must not speak to the operator's terminal, nor turn its lines round.
pub(crate) fn printable(text: &str) -> String {
    let is_mute = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_mute(c) { c } else { '\u{b7}' }).collect()
}

/// Cuts what was read, one more than wanted, to what was wanted, and says so.
pub(crate) fn first<T>(rows: &mut Vec<T>, limit: usize) {
    if rows.len() > limit {
        rows.truncate(limit);
        note(format_args!("The first {limit} only; --limit shows more."));
    }
}

/// Columns as wide as their widest cell.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) {
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    });
    let print = |cells: [&str; N]| {
        let padded: Vec<_> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        line(padded.join("  ").trim_end());
    };
    print(head);
    for row in &rows {
        print(std::array::from_fn(|column| row[column].as_str()));
    }
}
