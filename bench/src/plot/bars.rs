//! Each figure as a bar against its baseline, with its goal.

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
    for (name, report, ratios, goal) in &BARS {
        bars.push((*name, spread(&read(reports, report)?, ratios), *goal));
    }
    picture(&bars)
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

fn picture(bars: &[(&str, Spread, f64)]) -> anyhow::Result<String> {
    let height = ROW * (bars.len() as f64 + 2.0);
    let mut svg = head("Each figure against its baseline of the same run", WIDTH, height);
    for (row, (name, Spread { median, min, max }, goal)) in bars.iter().enumerate() {
        let y = ROW * (row as f64 + 0.6);
        let middle = y + 11.0;
        let at = |ratio: f64| LEFT + ratio * ONE;
        let colour = if median >= goal { "#2e7d4f" } else { "#b4531f" };
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
            "<text x=\"{:.1}\" y=\"{}\">{median:.2} × (goal {goal})</text>",
            at(max.max(*goal)) + 8.0,
            y + 15.0
        )?;
    }
    writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#6b6258\">Bar: median. Line: smallest to largest round. Dashes: the goal.</text>\n</svg>",
        height - 14.0
    )?;
    Ok(svg)
}
