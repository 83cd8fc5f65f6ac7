//! Copies are made under load and restored, and a service is started from what was restored.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use tokio::process::Command;

use super::crowd::Crowd;
use super::waiting::until_more;
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server, own_directory};

const CALLERS: u64 = 8;

pub(super) async fn run(engine: Engine, setting: &Setting) -> anyhow::Result<Ledger> {
    let copies = setting.either(2, 20);
    let mut ledger =
        Ledger::new(format!("Backup: {copies} copies under load, each restored, {engine:?}"));
    let data = Data::fresh(engine, "backup").await?;
    let server = Server::serve(&data, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let place = Place::new(engine)?;
    let (mut held, mut ended, mut missing, mut undone, mut audits) = (0, 0, 0, 0, 0);
    for number in 0..copies {
        let work = crowd.begin(&[&server.target.address]).await?;
        until_more(&crowd).await?;
        let (orders, ends) = (crowd.all_acknowledged(), crowd.all_settled());
        place.copy(&data).await?;
        work.stop().await;
        let restored = place.restore(number).await?;
        audits += u64::from(svc(&["audit", "verify"], &restored).await.is_err());
        let from_copy = Server::serve(&restored, &[]).await?;
        let caller = crowd.caller_at(&from_copy.target.address).await?;
        for (id, reference) in &orders {
            let stored = caller.query(id).await?;
            missing += u64::from(stored.is_none_or(|stored| stored.reference != *reference));
        }
        for (id, status) in &ends {
            let stored = caller.query(id).await?;
            undone += u64::from(stored.is_none_or(|stored| stored.status != *status));
        }
        held += orders.len();
        ended += ends.len();
        ensure!(from_copy.stop().await?.success(), "the copy's service ended well");
    }
    ensure!(ended > 0, "no state was acknowledged before a copy: this proves nothing");
    ledger.tell("orders acknowledged before a copy, looked up in it", held);
    ledger.tell("final states acknowledged before a copy, looked up in it", ended);
    ledger.never("orders missing in a copy", missing);
    ledger.never("states missing in a copy", undone);
    ledger.never("copies whose history does not verify", audits);
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

/// Where copies are put and restored; gone with this value.
struct Place {
    engine: Engine,
    directory: PathBuf,
}

impl Place {
    fn new(engine: Engine) -> anyhow::Result<Self> {
        let directory = own_directory()?.join(format!("bench-{}-copies", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        Ok(Self { engine, directory })
    }

    async fn copy(&self, data: &Data) -> anyhow::Result<()> {
        let copy = self.directory.join("copy").display().to_string();
        let _ = std::fs::remove_file(&copy);
        match self.engine {
            Engine::Sqlite => svc(&["backup", &copy], data).await,
            Engine::Postgres => succeed("pg_dump", &["-Fc", "-f", &copy, "-d", &data.url]).await,
        }
    }

    /// On SQLite over the one restored before, as it is after an accident.
    async fn restore(&self, number: u64) -> anyhow::Result<Data> {
        let copy = self.directory.join("copy").display().to_string();
        match self.engine {
            Engine::Sqlite => {
                let file = self.directory.join("restored.db");
                let restored = Data::at(format!("sqlite:{}", file.display()));
                svc(&["restore", &copy], &restored).await?;
                Ok(restored)
            }
            Engine::Postgres => {
                let restored = Data::fresh(Engine::Postgres, &format!("restored_{number}")).await?;
                succeed("pg_restore", &["--exit-on-error", "-d", &restored.url, &copy]).await?;
                Ok(restored)
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

async fn svc(arguments: &[&str], data: &Data) -> anyhow::Result<()> {
    let program = own_directory()?.join("svc").display().to_string();
    succeed(&program, &[arguments, &["--database", &data.url]].concat()).await
}

async fn succeed(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let ran =
        Command::new(program).args(arguments).output().await.with_context(|| program.to_owned())?;
    ensure!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}
