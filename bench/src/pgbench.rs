//! The baseline of PostgreSQL: pgbench inserting the same row one by one.

use anyhow::{Context, bail};
use tokio::process::Command;

use crate::process::{Data, own_directory};

/// The row of one order, with a random id; everything else is constant.
const SCRIPT: &str = include_str!("insert_order.sql");

const CLIENTS: [u32; 4] = [8, 16, 32, 64];

/// The best rate over several numbers of clients, and that number.
pub(crate) async fn best_inserts_per_s(round: u64, seconds: u32) -> anyhow::Result<(f64, u32)> {
    let data = Data::fresh(crate::Engine::Postgres, &format!("pgbench_{round}")).await?;
    let migrated = Command::new(own_directory()?.join("svc"))
        .args(["migrate", "--database", &data.url])
        .output()
        .await?;
    if !migrated.status.success() {
        bail!("svc migrate: {}", String::from_utf8_lossy(&migrated.stderr));
    }
    let script = std::env::temp_dir().join(format!("svc-pgbench-{}.sql", std::process::id()));
    std::fs::write(&script, SCRIPT)?;
    let mut best = (0.0, 0);
    for clients in CLIENTS {
        let rate = inserts_per_s(&data.url, &script, clients, seconds).await?;
        if rate > best.0 {
            best = (rate, clients);
        }
    }
    let _ = std::fs::remove_file(script);
    Ok(best)
}

async fn inserts_per_s(
    url: &str,
    script: &std::path::Path,
    clients: u32,
    seconds: u32,
) -> anyhow::Result<f64> {
    let output = Command::new("pgbench")
        .args([
            "-n",
            "-M",
            "prepared",
            "-j",
            "2",
            "-c",
            &clients.to_string(),
            "-T",
            &seconds.to_string(),
            "-f",
        ])
        .arg(script)
        .arg(url)
        .output()
        .await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find(|line| line.starts_with("tps ="))
        .with_context(|| format!("pgbench: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(line.split_whitespace().nth(2).context("no figure")?.parse()?)
}
