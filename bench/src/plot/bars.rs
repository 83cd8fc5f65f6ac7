//! Each figure as a bar against its baseline, with its goal; and how any bars are drawn.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::{head, read};
use crate::report::Spread;

/// What is drawn: its name, the report, where its ratios are, and the goal.
const BARS: [(&str, &str, Ratios, f64); 7] = [
    ("create, SQLite", "create-sqlite", Ratios::AgainstBare, 0.5),
    ("create, PostgreSQL", "create-postgres", Ratios::AgainstPgbench, 1.5),
    ("query, SQLite", "query-sqlite", Ratios::AgainstBare, 0.6),
    ("query, PostgreSQL", "query-postgres", Ratios::AgainstBare, 0.6),
    ("token", "token", Ratios::AgainstBare, 0.6),
    ("webhooks, SQLite", "webhook-sqlite", Ratios::Listed("ratios"), 0.5),
    ("webhooks, PostgreSQL", "webhook-postgres", Ratios::Listed("ratios"), 0.5),
];

enum Ratios {
    AgainstBare,
    AgainstPgbench,
    Listed(&'static str),
}

pub(super) fn draw(reports: &Path) -> anyhow::Result<String> {
    let mut bars = Vec::new();
    for (name, report, ratios, goal) in BARS {
        let spread = spread(&read(reports, report)?, &ratios);
        let median = spread.median;
        bars.push(Bar {
            name: name.to_owned(),
            is_kept: median >= goal,
            text: format!("{median:.2} × (goal {goal})"),
            spread,
            goal,
        });
    }
    picture("Each figure against its baseline of the same run", "the goal", &bars)
}

pub(super) struct Bar {
    pub name: String,
    pub spread: Spread,
    pub goal: f64,
    pub is_kept: bool,
    pub text: String,
}

fn spread(report: &Value, ratios: &Ratios) -> Spread {
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let rates = |sides: &Value, name: &str| -> Vec<f64> {
        let named = |side: &&Value| side["name"] == name;
        let sides = sides.as_array().into_iter().flatten().filter(named);
        sides.filter_map(|side| side["requestsPerS"].as_f64()).collect()
    };
    let each = |own: Vec<f64>, other: Vec<f64>| -> Vec<f64> {
        own.iter().zip(other).map(|(own, other)| own / other).collect()
    };
    Spread::of(match ratios {
        Ratios::AgainstBare => {
            each(rates(&report["sides"], "svc"), rates(&report["sides"], "bare"))
        }
        Ratios::AgainstPgbench => {
            each(rates(&report["sides"], "svc"), numbers(&report["pgbenchInsertsPerS"]))
        }
        Ratios::Listed(key) => numbers(&report[*key]),
    })
}

const WIDTH: f64 = 800.0;
const ROW: f64 = 34.0;
const LEFT: f64 = 260.0;
/// A ratio of one is so wide.
const ONE: f64 = 220.0;

pub(super) fn picture(title: &str, goal_is: &str, bars: &[Bar]) -> anyhow::Result<String> {
    let height = ROW * (bars.len() as f64 + 2.0);
    let mut svg = head(title, WIDTH, height);
    for (row, Bar { name, spread, goal, is_kept, text }) in bars.iter().enumerate() {
        let Spread { median, min, max } = spread;
        let y = ROW * (row as f64 + 0.6);
        let middle = y + 11.0;
        let at = |ratio: f64| LEFT + ratio * ONE;
        let colour = if *is_kept { "#2e7d4f" } else { "#b4531f" };
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>",
            LEFT - 10.0,
            y + 15.0
        )?;
        writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"22\" rx=\"3\" fill=\"{colour}\"/>",
            median * ONE
        )?;
        writeln!(
            svg,
            "<path d=\"M{:.1} {middle}H{:.1}\" stroke=\"#1d1a16\" stroke-width=\"1.5\"/>",
            at(*min),
            at(*max)
        )?;
        writeln!(
            svg,
            "<path d=\"M{0:.1} {1}v30\" stroke=\"#1d1a16\" stroke-dasharray=\"3 2\"/>",
            at(*goal),
            y - 4.0
        )?;
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\">{text}</text>",
            at(max.max(*goal)) + 8.0,
            y + 15.0
        )?;
    }
    writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#6b6258\">Bar: median. Line: smallest to largest round. Dashes: {goal_is}.</text>\n</svg>",
        height - 14.0
    )?;
    Ok(svg)
}
