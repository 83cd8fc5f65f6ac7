//! What may not be exceeded: memory, the time to be ready, and bytes on a slow phone.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;

use super::bars::{Bar, picture};
use super::read;
use crate::report::Spread;

const IDLE_MB_MAX: f64 = 30.0;
const CREATE_MB_MAX: f64 = 128.0;
const READY_MS_MAX: f64 = 150.0;

pub(super) fn draw(reports: &Path) -> anyhow::Result<String> {
    let start = read(reports, "start")?;
    let mut bars = vec![
        bar("memory, idle", Spread::deserialize(&start["idleMb"])?, IDLE_MB_MAX, "MB"),
        bar("ready after", Spread::deserialize(&start["readyMs"])?, READY_MS_MAX, "ms"),
    ];
    for (name, report) in [
        ("memory, create, SQLite", "create-sqlite"),
        ("memory, create, PostgreSQL", "create-postgres"),
    ] {
        bars.push(bar(name, memory_mb(&read(reports, report)?)?, CREATE_MB_MAX, "MB"));
    }
    let budgets = read(reports, "bytes")?;
    for budget in budgets.as_array().context("a list of budgets")? {
        let bytes = budget["bytes"].as_f64().context("bytes")?;
        let name = budget["what"].as_str().context("what")?;
        let most = budget["most"].as_f64().context("most")?;
        bars.push(bar(name, Spread { median: bytes, min: bytes, max: bytes }, most, "bytes"));
    }
    picture("What may not be exceeded, against its limit", "the limit", &bars)
}

/// As a part of its limit.
fn bar(name: &str, Spread { median, min, max }: Spread, limit: f64, unit: &str) -> Bar {
    Bar {
        name: name.to_owned(),
        spread: Spread { median: median / limit, min: min / limit, max: max / limit },
        goal: 1.0,
        is_kept: max <= limit,
        text: format!("{median:.0} {unit} (limit {limit:.0})"),
    }
}

fn memory_mb(report: &Value) -> anyhow::Result<Spread> {
    let sides = report["sides"].as_array().context("sides")?;
    let own = sides.iter().filter(|side| side["name"] == "svc");
    Ok(Spread::of(own.filter_map(|side| side["residentBytes"].as_f64()).map(|b| b / 1e6).collect()))
}
