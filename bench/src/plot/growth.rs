//! What is left of the rate as orders are stored: a line for each call.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::{head, read};

/// What is drawn: its name, the report, the call, and its colour.
const LINES: [(&str, &str, &str, &str); 4] = [
    ("create, SQLite", "growth-sqlite", "create", "#b4531f"),
    ("query, SQLite", "growth-sqlite", "query", "#1f5fb4"),
    ("create, PostgreSQL", "growth-postgres", "create", "#e0a070"),
    ("query, PostgreSQL", "growth-postgres", "query", "#7fb2e8"),
];

const WIDTH: f64 = 930.0;
const HEIGHT: f64 = 340.0;
/// The field of the lines.
const LEFT: f64 = 50.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 290.0;
/// Ten times the orders are so wide.
const DECADE: f64 = 180.0;
const ORDERS_MIN: f64 = 1e4;
const RATIO_MAX: f64 = 1.4;
const GOAL: f64 = 0.8;

fn x(orders: f64) -> f64 {
    LEFT + (orders / ORDERS_MIN).log10() * DECADE
}

fn y(ratio: f64) -> f64 {
    BOTTOM - ratio.min(RATIO_MAX) / RATIO_MAX * (BOTTOM - TOP)
}

pub(super) fn draw(reports: &Path) -> anyhow::Result<String> {
    let mut svg =
        head("Rates with more and more orders stored, against ten thousand", WIDTH, HEIGHT);
    write_axes(&mut svg)?;
    for (place, (name, report, call, colour)) in LINES.into_iter().enumerate() {
        let points = points(&read(reports, report)?, call)
            .with_context(|| format!("{report} has no steps: measure it again"))?;
        let path: Vec<_> = points
            .iter()
            .map(|(orders, left)| format!("{:.1},{:.1}", x(*orders), y(*left)))
            .collect();
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
            path.join(" ")
        )?;
        let (text_x, text_y) = (x(1e7) + 14.0, 40.0 + place as f64 * 22.0);
        let (orders, left) = points.last().copied().context("no steps")?;
        writeln!(
            svg,
            "<text x=\"{text_x}\" y=\"{text_y}\" fill=\"{colour}\">{name}: {left:.2} × at {:.0} million</text>",
            orders / 1e6
        )?;
    }
    svg += "</svg>\n";
    Ok(svg)
}

fn write_axes(svg: &mut String) -> std::fmt::Result {
    let right = x(1e7);
    for (orders, label) in
        [(1e4, "10,000"), (1e5, "100,000"), (1e6, "1 million"), (1e7, "10 million")]
    {
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            x(orders),
            BOTTOM + 20.0
        )?;
    }
    for ratio in [0.0, 0.5, 1.0] {
        let y = y(ratio);
        writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#d8d2c8\"/>")?;
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ratio:.1}</text>",
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    writeln!(
        svg,
        "<path d=\"M{LEFT} {:.1}H{right}\" stroke=\"#1d1a16\" stroke-dasharray=\"3 2\"/>",
        y(GOAL)
    )?;
    writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#6b6258\">Orders stored. Each rate by its bare route, \
         against ten thousand orders. Dashes: the goal.</text>",
        HEIGHT - 8.0
    )
}

/// Orders stored, and what is left of the first rate; each by the bare route beside it.
fn points(report: &Value, call: &str) -> Option<Vec<(f64, f64)>> {
    let ratio = |step: &Value| -> Option<f64> {
        let rate = |side: &str| step[call][side]["requestsPerS"].as_f64();
        Some(rate("svc")? / rate("bare")?)
    };
    let steps = report["steps"].as_array()?;
    let first = ratio(steps.first()?)?;
    steps.iter().map(|step| Some((step["orders"].as_f64()?, ratio(step)? / first))).collect()
}
