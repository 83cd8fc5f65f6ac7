//! The reports as pictures.

mod bars;
mod growth;
mod limits;

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value = "bench/reports")]
    reports: PathBuf,
    /// The directory of the pictures
    #[arg(long, default_value = "docs/images")]
    to: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let ratios = bars::draw(&args.reports)?;
    let (growth, limits) = (growth::draw(&args.reports)?, limits::draw(&args.reports)?);
    std::fs::write(args.to.join("benchmarks.svg"), ratios)?;
    std::fs::write(args.to.join("growth.svg"), growth)?;
    std::fs::write(args.to.join("limits.svg"), limits)?;
    Ok(())
}

fn read(reports: &Path, name: &str) -> anyhow::Result<Value> {
    let path = reports.join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

fn head(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    )
}
