//! PostgreSQL clusters that belong to a drill: killed, promoted and brought back at will.

use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, bail, ensure};
use tokio::process::Command;

use super::waiting::until;
use crate::process::psql;

/// One cluster; it ends and is removed with this value.
pub(super) struct Cluster {
    programs: PathBuf,
    home: PathBuf,
    pub port: u16,
}

impl Cluster {
    /// A new cluster that is started and waits for nobody.
    pub(super) async fn start_new(name: &str) -> anyhow::Result<Self> {
        let cluster = Self::place(name).await?;
        let arguments = ["-U", "svc", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        cluster.run("initdb", &[&arguments[..], &[cluster.data().as_str()]].concat()).await?;
        cluster.configure(&[
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("max_connections", "200"),
            ("wal_log_hints", "on"),
            ("wal_keep_size", "1GB"),
            ("port", &cluster.port.to_string()),
        ])?;
        cluster.start().await?;
        Ok(cluster)
    }

    /// A standby of that one, which has a copy of it and follows it.
    pub(super) async fn start_standby_of(primary: &Self, name: &str) -> anyhow::Result<Self> {
        let standby = Self::place(name).await?;
        let (port, data) = (primary.port.to_string(), standby.data());
        let from = ["-h", "127.0.0.1", "-p", &port, "-U", "svc", "-R", "-X", "stream", "--no-sync"];
        let fast = ["--checkpoint=fast", "-D"];
        let arguments = [&from[..], &fast[..], &[data.as_str()]].concat();
        standby.run("pg_basebackup", &arguments).await?;
        standby.configure(&[("port", &standby.port.to_string())])?;
        standby.start().await?;
        Ok(standby)
    }

    pub(super) fn url(&self, database: &str) -> String {
        format!("postgres://svc@127.0.0.1:{}/{database}", self.port)
    }

    pub(super) async fn start(&self) -> anyhow::Result<()> {
        let (data, log) = (self.data(), self.home.join("log").display().to_string());
        self.run("pg_ctl", &["-D", &data, "-l", &log, "-w", "-t", "60", "start"]).await
    }

    /// As a crash: no checkpoint, no good-byes.
    pub(super) async fn restart_at_once(&self) -> anyhow::Result<()> {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]).await?;
        self.start().await
    }

    /// kill -9 of its first process; the others end when they see it.
    pub(super) async fn kill(&self) -> anyhow::Result<()> {
        let file = self.home.join("data/postmaster.pid");
        let pid = std::fs::read_to_string(&file)?.lines().next().context("a pid")?.to_owned();
        ensure!(Command::new("kill").args(["-9", &pid]).status().await?.success(), "kill {pid}");
        let port = self.port;
        until("the killed server is gone", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err()
        })
        .await
    }

    /// After a kill, as it was; but for the standby, which it does not wait for: it would take any write.
    pub(super) async fn start_again(&self) -> anyhow::Result<()> {
        self.configure(&[("synchronous_standby_names", "")])?;
        let pid = self.home.join("data/postmaster.pid");
        until("the killed server can be started", async || {
            let _ = std::fs::remove_file(&pid);
            self.start().await.is_ok()
        })
        .await
    }

    pub(super) async fn promote(&self) -> anyhow::Result<()> {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-t", "60", "promote"]).await
    }

    /// Comes back as a standby of the one that took over, without what only it had.
    pub(super) async fn come_back_behind(&self, primary: &Self) -> anyhow::Result<()> {
        // Before its first checkpoint the new primary's files still speak of the old timeline.
        psql(&primary.url("postgres"), "checkpoint").await?;
        let source = format!("host=127.0.0.1 port={} user=svc dbname=postgres", primary.port);
        let (data, pid) = (self.data(), self.home.join("data/postmaster.pid"));
        let rewind = ["--no-sync", "-D", &data, "--source-server", &source];
        // Its other processes may take a moment to see that the first one is dead.
        until("the old primary is rewound", async || {
            let _ = std::fs::remove_file(&pid);
            self.run("pg_rewind", &rewind).await.is_ok()
        })
        .await?;
        let signal = self.home.join("data/standby.signal");
        std::fs::write(&signal, "")?;
        own(&signal).await?;
        self.configure(&[
            ("port", &self.port.to_string()),
            ("primary_conninfo", &source),
            ("recovery_target_timeline", "latest"),
            ("synchronous_standby_names", ""),
        ])?;
        self.start().await
    }

    /// From now on a commit waits until the standby has it.
    pub(super) async fn wait_for_standby(&self) -> anyhow::Result<()> {
        let url = self.url("postgres");
        let follows = "select count(*) from pg_stat_replication where state = 'streaming'";
        until("the standby follows", async || {
            psql(&url, follows).await.is_ok_and(|count| count == "1")
        })
        .await?;
        psql(&url, "alter system set synchronous_standby_names = '*'").await?;
        psql(&url, "select pg_reload_conf()").await?;
        let is_sync = "select count(*) from pg_stat_replication where sync_state = 'sync'";
        until("the standby is waited for", async || {
            psql(&url, is_sync).await.is_ok_and(|count| count == "1")
        })
        .await
    }

    async fn place(name: &str) -> anyhow::Result<Self> {
        let programs = std::env::var("SVC_TEST_PG_BIN").context("no PostgreSQL: bench/drill")?;
        let home = std::env::temp_dir().join(format!("svc-drill-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&home)?;
        own(&home).await?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(Self { programs: programs.into(), home, port })
    }

    fn data(&self) -> String {
        self.home.join("data").display().to_string()
    }

    /// The last word counts.
    fn configure(&self, settings: &[(&str, &str)]) -> anyhow::Result<()> {
        let path = self.home.join("data/postgresql.auto.conf");
        let mut text = std::fs::read_to_string(&path)?;
        for (name, value) in settings {
            text += &format!("{name} = '{value}'\n");
        }
        Ok(std::fs::write(path, text)?)
    }

    async fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let program = self.programs.join(program);
        let output = as_its_user(&program, &self.home).args(arguments).output().await?;
        told(&program, &output)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stop = ["-D", &self.data(), "-m", "immediate", "stop"].map(str::to_owned);
        let mut command = as_its_user(&self.programs.join("pg_ctl"), &self.home).into_std();
        let _ = command.args(stop).output();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// PostgreSQL refuses to run as root.
fn other_user() -> &'static str {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    if users.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" }
}

fn as_its_user(program: &Path, home: &Path) -> Command {
    let mut command = if is_root() {
        let mut other = Command::new("runuser");
        other.args(["-u", other_user(), "--"]).arg(program);
        other
    } else {
        Command::new(program)
    };
    command.current_dir(home);
    command
}

async fn own(path: &Path) -> anyhow::Result<()> {
    if is_root() {
        let output = Command::new("chown").arg(other_user()).arg(path).output().await?;
        told(Path::new("chown"), &output)?;
    }
    Ok(())
}

fn told(program: &Path, output: &Output) -> anyhow::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    bail!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr))
}
