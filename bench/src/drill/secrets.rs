//! Known secrets go in; nothing that is left behind holds them in plain.

use std::path::Path;

use anyhow::Context;
use tokio::process::Command;

use super::crowd::Crowd;
use super::waiting::until_more;
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server, own_directory, psql};

const CALLERS: u64 = 4;

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new("Secrets: what a life under load leaves behind");
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let data = Data::fresh(engine, "secrets").await?;
        let home = own_directory()?.join(format!("secrets-{}", std::process::id()));
        std::fs::create_dir_all(&home)?;
        let log = home.join("log");
        let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
        let server = Server::serve_logging(&log, &data.url, PRIVATE_TARGETS).await?;
        let work = crowd.begin(&[&server.target.address]).await?;
        until_more(&crowd).await?;
        work.stop().await;
        let caller = crowd.caller_at(&server.target.address).await?;
        let wrong = caller.wrong_calls().await?;
        std::fs::write(home.join("answers"), wrong)?;
        keep_copy(&data, &home).await?;
        server.stop().await?;
        let secrets = crowd.secrets(&caller);
        let public = crowd.any_acknowledged();
        let (mut files, mut bytes, mut hits, mut seen) = (0, 0, 0, 0);
        for directory in [Some(home.as_path()), data.directory().ok()].into_iter().flatten() {
            for entry in std::fs::read_dir(directory)? {
                let content = std::fs::read(entry?.path())?;
                (files, bytes) = (files + 1, bytes + content.len());
                seen += u64::from(holds(&content, &public));
                hits += secrets.iter().filter(|secret| holds(&content, secret)).count() as u64;
            }
        }
        std::fs::remove_dir_all(&home)?;
        ledger.tell(&format!("secrets looked for, {engine:?}"), secrets.len());
        ledger.tell(&format!("files and bytes searched, {engine:?}"), format!("{files}, {bytes}"));
        // Otherwise the search is blind.
        let name = format!("files in which an order's public id was found, {engine:?}");
        ledger.promise(&name, seen, seen > 0);
        ledger.never(&format!("secrets found in plain, {engine:?}"), hits);
    }
    Ok(ledger)
}

/// What an operator would keep: a backup, or a dump.
async fn keep_copy(data: &Data, home: &Path) -> anyhow::Result<()> {
    if data.directory().is_ok() {
        let copy = home.join("copy.db");
        let arguments = ["backup", copy.to_str().context("a path")?, "--database", &data.url];
        let made = Command::new(own_directory()?.join("svc")).args(arguments).output().await?;
        anyhow::ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        return Ok(());
    }
    let dump = Command::new("pg_dump").arg(&data.url).output().await?;
    anyhow::ensure!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let rows = psql(&data.url, "select count(*) from orders").await?;
    anyhow::ensure!(rows != "0", "the dump holds no orders");
    Ok(std::fs::write(home.join("dump"), dump.stdout)?)
}

fn holds(content: &[u8], secret: &str) -> bool {
    content.windows(secret.len()).any(|window| window == secret.as_bytes())
}
