//! What was measured, as Markdown for people and JSON for machines.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::run::{Side, spread};

/// Median, smallest and largest of the rounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(values.len() / 2), min: at(0), max: at(values.len().saturating_sub(1)) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    title: &'a str,
    machine: String,
    commit: String,
    sides: &'a [Side],
    #[serde(skip_serializing_if = "<[f64]>::is_empty")]
    pgbench_inserts_per_s: &'a [f64],
}

/// Prints the report, and writes `path.md` and `path.json` if asked to.
pub(crate) fn write(
    title: &str,
    sides: &[Side],
    inserts: &[f64],
    path: Option<&Path>,
) -> anyhow::Result<()> {
    let report = Report {
        title,
        machine: machine(),
        commit: commit(),
        sides,
        pgbench_inserts_per_s: inserts,
    };
    let text = markdown(&report);
    println!("{text}");
    save(path, &text, &serde_json::to_string_pretty(&report)?)
}

pub(crate) fn save(path: Option<&Path>, markdown: &str, json: &str) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path.with_extension("md"), markdown)?;
    std::fs::write(path.with_extension("json"), json)?;
    Ok(())
}

fn markdown(report: &Report<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for side in report.sides {
        if !names.contains(&side.name.as_str()) {
            names.push(&side.name);
        }
    }
    let mut text = heading(report.title, "Median of the rounds.");
    text += "| | requests/s (min–max) | p50 | p99 | memory | processor | × bare |\n";
    text += "|---|---|---|---|---|---|---|\n";
    for name in names {
        let rate = spread(report.sides, name, |side| side.outcome.requests_per_s);
        let p50 = spread(report.sides, name, |side| f64::from(side.outcome.p50_us) / 1e3);
        let p99 = spread(report.sides, name, |side| f64::from(side.outcome.p99_us) / 1e3);
        let memory = spread(report.sides, name, |side| side.resident_bytes as f64 / 1e6);
        let cpu = spread(report.sides, name, |side| side.cpu * 100.0);
        let ratio = ratios(report.sides, name);
        text += &format!(
            "| {name} | {:.0} ({:.0}–{:.0}) | {:.1} ms | {:.1} ms | {:.0} MB | {:.0} % | {:.2} ({:.2}–{:.2}) |\n",
            rate.median,
            rate.min,
            rate.max,
            p50.median,
            p99.median,
            memory.max,
            cpu.median,
            ratio.median,
            ratio.min,
            ratio.max
        );
    }
    if !report.pgbench_inserts_per_s.is_empty() {
        let inserts = Spread::of(report.pgbench_inserts_per_s.to_vec());
        let service = rates(report.sides, "svc");
        let ratio = Spread::of(each_by(&service, report.pgbench_inserts_per_s));
        text += &format!(
            "\npgbench, the same row one by one, best of 8, 16, 32 and 64 clients: {:.0} ({:.0}–{:.0}) inserts/s; svc is **{:.2} ×** that ({:.2}–{:.2}).\n",
            inserts.median, inserts.min, inserts.max, ratio.median, ratio.min, ratio.max
        );
    }
    text
}

/// Each round against the bare route of the same round, because the machine is not alone.
fn ratios(sides: &[Side], name: &str) -> Spread {
    Spread::of(each_by(&rates(sides, name), &rates(sides, "bare")))
}

/// Of each round.
fn rates(sides: &[Side], name: &str) -> Vec<f64> {
    sides.iter().filter(|side| side.name == name).map(|side| side.outcome.requests_per_s).collect()
}

fn each_by(rates: &[f64], of_baseline: &[f64]) -> Vec<f64> {
    rates.iter().zip(of_baseline).map(|(own, baseline)| own / baseline).collect()
}

/// `basis` says what one figure stands for.
pub(crate) fn heading(title: &str, basis: &str) -> String {
    let (machine, commit) = (machine(), commit());
    format!("## {title}\n\n{basis} Machine: {machine}. Commit: {commit}. Built by {BUILT_BY}.\n\n")
}

/// What is given out is compiled with more care, and so are the baselines with it.
const BUILT_BY: &str = match option_env!("SVC_BUILT_BY") {
    Some(script) => script,
    None => "cargo build --release",
};

fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let kib = memory.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    format!(
        "{} × {}, {} GiB",
        std::thread::available_parallelism().map_or(0, usize::from),
        model.trim_start_matches([' ', '\t', ':']),
        kib.unwrap_or_default().div_ceil(1 << 20)
    )
}

fn commit() -> String {
    let asked =
        std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let text = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
}
