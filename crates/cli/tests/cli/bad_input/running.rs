//! The real binary: its commands, and servers of it that end with the test.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::wait;

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What `svc partner create --json` and `svc demo --json` print.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    pub client_id: String,
    pub client_secret: String,
    pub publishable_key: String,
    #[serde(rename = "applicationUUID")]
    pub application_uuid: String,
    pub webhook_secret: String,
}

/// A database, its master key and a directory for the files beside it.
pub(crate) struct Home {
    directory: Directory,
    database: String,
    pub master_key: String,
}

impl Home {
    pub(crate) fn sandbox() -> Self {
        let directory = Directory::new();
        let database = format!("sqlite:{}", directory.0.join("svc.db").display());
        Self { directory, database, master_key: new_master_key() }
    }

    pub(crate) fn production() -> Self {
        let home = Self::sandbox();
        home.run(&["migrate", "--environment", "production"]);
        home
    }

    pub(crate) fn on(database: String) -> Self {
        Self { directory: Directory::new(), database, master_key: new_master_key() }
    }

    /// A partner with one application.
    pub(crate) fn partner(&self, name: &str) -> Credentials {
        let printed = self.run(&["partner", "create", name, "--json"]);
        serde_json::from_str(&printed).expect("svc partner create --json prints credentials")
    }

    /// Runs a command to its end; what it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let done = self
            .command(arguments)
            .args(["--database", &self.database])
            .output()
            .expect("svc starts");
        let complaint = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "svc {arguments:?} failed: {complaint}");
        String::from_utf8(done.stdout).expect("svc prints text")
    }

    /// A server of this database.
    pub(crate) fn serve(&self, flags: &[&str]) -> Running {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let mut command = self.command(&arguments);
        command.args(["--database", &self.database]).args(flags);
        Running::start(command, &self.directory)
    }

    /// As production runs behind a proxy on this machine.
    pub(crate) fn serve_production(&self) -> Running {
        self.serve(&["--public-url", "https://api.svc.ao", "--trusted-proxy", "127.0.0.0/8"])
    }

    /// `svc demo`, which brings a database and a partner of its own.
    pub(crate) fn demo(&self) -> (Running, Credentials) {
        let data = self.directory.0.join("demo").display().to_string();
        let arguments = ["demo", "--listen", "127.0.0.1:0", "--data", &data, "--json"];
        let running = Running::start(self.command(&arguments), &self.directory);
        let credentials = serde_json::from_value(running.ready.clone());
        (running, credentials.expect("svc demo --json prints credentials"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = svc();
        command.args(arguments).env("SVC_SERVER_MASTER_KEY", &self.master_key);
        command
    }
}

/// A server; killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub address: SocketAddr,
    log: PathBuf,
    ready: Value,
}

impl Running {
    fn start(mut command: Command, directory: &Directory) -> Self {
        let (printed, log) = (directory.file("out"), directory.file("log"));
        let create = |path: &Path| File::create(path).expect("a file in our own directory");
        let child = command
            .env("SVC_SERVER_LOG", "debug")
            .stdout(create(&printed))
            .stderr(create(&log))
            .spawn()
            .expect("svc starts");
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut running = Self { child, address, log, ready: Value::Null };
        running.ready = wait::until("svc is ready", START_TIMEOUT, || {
            let ended = running.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "svc ended at once: {}", running.log());
            first_line(&printed)
        });
        // A demo tells its secrets there.
        std::fs::remove_file(&printed).expect("a file in our own directory");
        running.address = running.find_address();
        running
    }

    /// Where it listens: its log knows, since the base URL may be that of a proxy.
    fn find_address(&self) -> SocketAddr {
        let logged = self.log().lines().find_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            line["address"].as_str()?.parse().ok()
        });
        let printed = || self.ready["baseUrl"].as_str()?.strip_prefix("http://")?.parse().ok();
        logged.or_else(printed).expect("a ready server tells its address")
    }

    /// Everything it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log is ours to read")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_line(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    let (line, _) = text.split_once('\n')?;
    Some(serde_json::from_str(line).expect("--json prints JSON"))
}

fn new_master_key() -> String {
    let done = svc().arg("keygen").output().expect("svc starts");
    String::from_utf8(done.stdout).expect("a key is text").trim().to_owned()
}

/// Settings of whoever runs the tests must not reach the server.
fn svc() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// A number no other test of this machine uses.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// ./test searches what is left for secrets.
pub(crate) fn is_kept() -> bool {
    std::env::var_os("SVC_TEST_KEEP").is_some()
}

/// Removed when dropped, unless it is kept.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("svc_bad_input_{}", unique()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Self(path)
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.0.join(format!("{}.{kind}", unique()))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !is_kept() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
