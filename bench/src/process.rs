//! The processes under test, and what they cost.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rusqlite::Connection;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};

use crate::Engine;
use crate::target::{Target, basic};

/// Whoever refuses to start says so at once.
const REFUSED_WITHIN: Duration = Duration::from_secs(20);

/// A server in a process of its own; it ends with this value.
pub(crate) struct Server {
    child: Child,
    pub target: Target,
    /// From the start of the process to its word that it is ready.
    pub ready_after: Duration,
}

/// A fresh database for one run.
pub(crate) struct Data {
    pub url: String,
    directory: Option<PathBuf>,
}

impl Data {
    /// A database that somebody else keeps.
    pub(crate) fn at(url: String) -> Self {
        Self { url, directory: None }
    }

    pub(crate) async fn fresh(engine: Engine, name: &str) -> anyhow::Result<Self> {
        match engine {
            Engine::Sqlite => {
                // Beside the binaries, on the disk people would use; /tmp may be memory.
                let directory =
                    own_directory()?.join(format!("bench-{}-{name}", std::process::id()));
                std::fs::create_dir_all(&directory)?;
                let url = format!("sqlite:{}", directory.join("svc.db").display());
                Ok(Self { url, directory: Some(directory) })
            }
            Engine::Postgres => {
                let server = std::env::var("SVC_TEST_DATABASE_URL")
                    .context("no PostgreSQL: bench/run starts one")?;
                let database = format!("bench_{}_{name}", std::process::id());
                psql(&server, &format!("create database {database}")).await?;
                let (base, _) =
                    server.rsplit_once('/').context("…/database at the end of the URL")?;
                Ok(Self { url: format!("{base}/{database}"), directory: None })
            }
        }
    }
}

impl Data {
    pub(crate) async fn count_orders(&self) -> anyhow::Result<u64> {
        let sql = "select count(*) from orders";
        let Some(path) = self.url.strip_prefix("sqlite:") else {
            return Ok(psql(&self.url, sql).await?.parse()?);
        };
        let count = Connection::open(path)?.query_row(sql, [], |row| row.get::<_, i64>(0))?;
        Ok(u64::try_from(count)?)
    }

    /// Where SQLite's files are.
    pub(crate) fn directory(&self) -> anyhow::Result<&Path> {
        self.directory.as_deref().context("only SQLite has a directory")
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

pub(crate) async fn psql(url: &str, statement: &str) -> anyhow::Result<String> {
    let output = Command::new("psql").args([url, "-qAtc", statement]).output().await?;
    if !output.status.success() {
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Server {
    /// The bare routes.
    pub(crate) async fn bare() -> anyhow::Result<Self> {
        Self::start(Command::new(own_directory()?.join("svc-bench")).arg("bare")).await
    }

    /// A merchant.
    pub(crate) async fn receiver() -> anyhow::Result<Self> {
        Self::receiver_at("127.0.0.1:0").await
    }

    pub(crate) async fn receiver_at(address: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(own_directory()?.join("svc-bench"));
        Self::start(command.args(["receiver", "--listen", address])).await
    }

    /// The service, with a partner and a token.
    pub(crate) async fn svc(data: &Data, more: &[&str]) -> anyhow::Result<Self> {
        let create = ["partner", "create", "Bench", "--json", "--database", &data.url];
        let credentials: Value = svc(&create).await?;
        let mut server = Self::serve(data, more).await?;
        let text = |key: &str| credentials[key].as_str().unwrap_or_default().to_owned();
        server.target.client_id = text("clientId");
        server.target.client_secret = text("clientSecret");
        server.target.application_uuid = text("applicationUUID");
        server.target.token = token(&server.target).await?;
        Ok(server)
    }

    /// The service alone.
    pub(crate) async fn serve(data: &Data, more: &[&str]) -> anyhow::Result<Self> {
        Self::serve_in(&[], &data.url, more).await
    }

    /// The service in an environment of its own.
    pub(crate) async fn serve_in(
        environment: &[(&str, &Path)],
        database: &str,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        Self::serve_with(&own_directory()?.join("svc"), environment, database, more).await
    }

    /// Why the service does not start.
    pub(crate) async fn refusal_in(
        environment: &[(&str, &Path)],
        database: &str,
    ) -> anyhow::Result<String> {
        let mut command = Command::new(own_directory()?.join("svc"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--database", database]);
        command.envs(environment.iter().copied()).kill_on_drop(true);
        let ran = tokio::time::timeout(REFUSED_WITHIN, command.output()).await;
        let ran = ran.context("the service has started")??;
        ensure!(!ran.status.success(), "the service ended as if all were well");
        Ok(String::from_utf8_lossy(&ran.stderr).into_owned())
    }

    /// The service, which writes all that it can log to a file.
    pub(crate) async fn serve_logging(
        log: &Path,
        database: &str,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(own_directory()?.join("svc"));
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--database", database]);
        command.args(more).env("SVC_SERVER_LOG", "trace").stderr(std::fs::File::create(log)?);
        Self::start_logging(&mut command).await
    }

    /// Another build of the service.
    pub(crate) async fn serve_with(
        program: &Path,
        environment: &[(&str, &Path)],
        database: &str,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--database", database]);
        command.envs(environment.iter().copied());
        Self::start(command.args(more)).await
    }

    /// Asks it to end, and waits until it has; how it ended.
    pub(crate) async fn stop(mut self) -> anyhow::Result<std::process::ExitStatus> {
        signal(self.pid()?, "TERM").await?;
        Ok(self.child.wait().await?)
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<std::process::ExitStatus> {
        Ok(self.child.wait().await?)
    }

    /// kill -9, and wait until it is gone.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    async fn start(command: &mut Command) -> anyhow::Result<Self> {
        Self::start_logging(command.stderr(Stdio::null())).await
    }

    #[expect(clippy::disallowed_methods, reason = "start-up is measured in real time")]
    async fn start_logging(command: &mut Command) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the binary could not be started; bench/run builds it")?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        let ready_after = begun.elapsed();
        let ready: Value = serde_json::from_str(&line.context("the server ended at once")?)?;
        let address = ready["baseUrl"].as_str().unwrap_or_default().trim_start_matches("http://");
        let target = Target { address: address.to_owned(), ..Target::default() };
        Ok(Self { child, target, ready_after })
    }

    pub(crate) fn resident_bytes(&self) -> anyhow::Result<u64> {
        resident_bytes_of(self.pid()?)
    }

    pub(crate) fn cpu_ticks(&self) -> anyhow::Result<u64> {
        cpu_ticks_of(self.pid()?)
    }

    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("the server has ended")
    }
}

/// A process that is killed tells nothing of itself, as one that counts how often it runs through what (dev/release).
pub(crate) async fn until_asked_to_end(
    serving: impl IntoFuture<Output = std::io::Result<()>>,
) -> anyhow::Result<()> {
    let mut asked = unix::signal(SignalKind::terminate())?;
    tokio::select! {
        served = serving.into_future() => Ok(served?),
        _ = asked.recv() => Ok(()),
    }
}

pub(crate) async fn signal(pid: u32, name: &str) -> anyhow::Result<()> {
    let status =
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().await?;
    ensure!(status.success(), "kill -{name} {pid}");
    Ok(())
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_bytes_of(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
    Ok(kib * 1_024)
}

/// Processor time a process has used so far, in ticks of 1/100 s.
pub(crate) fn cpu_ticks_of(pid: u32) -> anyhow::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').context("no name")?.1;
    let fields: Vec<_> = after_name.split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}

/// Runs `svc` and reads the JSON it prints.
pub(crate) async fn svc(arguments: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(own_directory()?.join("svc")).args(arguments).output().await?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn token(target: &Target) -> anyhow::Result<String> {
    let url = format!("http://{}/token", target.address);
    let authorization = format!("Authorization: {}", basic(target));
    let output = Command::new("curl")
        .args([
            "-s",
            "-H",
            &authorization,
            "-d",
            "grant_type=client_credentials",
            "-d",
            "validity_period=86400",
            &url,
        ])
        .output()
        .await?;
    let answer: Value = serde_json::from_slice(&output.stdout).context("no token was answered")?;
    Ok(answer["access_token"].as_str().context("no token was answered")?.to_owned())
}

/// Where `svc` and `svc-bench` were built.
pub(crate) fn own_directory() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    own.parent().map(Path::to_owned).context("a program is in a directory")
}
