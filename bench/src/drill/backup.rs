//! A copy is made under load, and a service is started from the copy.

use anyhow::ensure;
use tokio::process::Command;

use super::crowd::Crowd;
use super::waiting::until_more;
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server, own_directory};

const CALLERS: u64 = 8;

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let copies = setting.either(2, 20);
    let mut ledger = Ledger::new(format!("Backup: {copies} copies under load, SQLite"));
    let data = Data::fresh(Engine::Sqlite, "backup").await?;
    let server = Server::serve(&data, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let (mut missing, mut held, mut audits) = (0, 0, 0);
    for number in 0..copies {
        let work = crowd.begin(&[&server.target.address]).await?;
        until_more(&crowd).await?;
        let before = crowd.all_acknowledged();
        let copy = data.directory()?.join(format!("copy-{number}.db"));
        let copied = Command::new(own_directory()?.join("svc"))
            .arg("backup")
            .arg(&copy)
            .args(["--database", &data.url])
            .output()
            .await?;
        ensure!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        work.stop().await;
        let restored = Data::at(format!("sqlite:{}", copy.display()));
        let from_copy = Server::serve(&restored, &[]).await?;
        let caller = crowd.caller_at(&from_copy.target.address).await?;
        for (id, reference) in &before {
            let stored = caller.query(id).await?;
            missing += u64::from(stored.is_none_or(|stored| stored.reference != *reference));
        }
        held += before.len();
        let verify = ["audit", "verify", "--database", &restored.url];
        let verified = Command::new(own_directory()?.join("svc")).args(verify).output().await?;
        audits += u64::from(!verified.status.success());
        ensure!(from_copy.stop().await?.success(), "the copy's service ended well");
    }
    ledger.tell("orders acknowledged before a copy, looked up in it", held);
    ledger.never("orders missing in a copy", missing);
    ledger.never("copies whose history does not verify", audits);
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}
