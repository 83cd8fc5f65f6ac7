//! What every black-box test needs: a place for data, the real binary, one HTTP call, a merchant.
//! What few need lives in a file of its own.

#[macro_use]
mod engines;
pub(crate) mod backend;
pub(crate) mod crowd;
pub(crate) mod handler;
pub(crate) mod http;
pub(crate) mod merchant;
pub(crate) mod postgres;
pub(crate) mod receiver;
pub(crate) mod shop;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything here takes on a busy machine; only a fault makes a test wait for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

/// A directory of one test, removed with everything in it unless somebody wants to look at it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("svc-test-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).expect("a temporary directory can be made");
        Self(path)
    }

    /// The path of something inside.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("temporary paths are text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !is_kept() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// ./test searches what is left for secrets.
pub(crate) fn is_kept() -> bool {
    std::env::var_os("SVC_TEST_KEEP").is_some()
}

/// A database and the folder of its test.
pub(crate) struct Place {
    pub(crate) database: String,
    pub(crate) folder: Folder,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let mut place = Self { database: String::new(), folder: Folder::new() };
        place.database = format!("sqlite:{}", place.folder.path("svc.db"));
        place
    }

    /// Runs a command on this database to its end.
    pub(crate) fn svc(&self, arguments: &[&str]) -> Ran {
        run(svc(arguments).args(["--database", &self.database]))
    }

    /// The command that serves this database, on a free port.
    pub(crate) fn serving(&self, more: &[&str]) -> Command {
        let arguments = ["serve", "--json", "--listen", "127.0.0.1:0", "--database"];
        let mut command = svc(&arguments);
        command.arg(&self.database).args(more);
        command
    }

    /// Starts the service on this database.
    pub(crate) fn serve(&self) -> Service {
        Service::start(&mut self.serving(&[]))
    }

    /// Starts one that may send webhooks to this machine.
    pub(crate) fn serve_locally(&self) -> Service {
        Service::start(&mut self.serving(&["--private-webhook-targets"]))
    }

    /// The credentials of a new partner.
    pub(crate) fn partner(&self) -> Value {
        self.svc(&["partner", "create", "Loja Kianda", "--json"]).json()
    }
}

/// The binary, free of settings that the machine of the test may have.
pub(crate) fn svc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SVC_SERVER_") {
            command.env_remove(name);
        }
    }
    command.args(arguments);
    command
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The one JSON document on stdout of a command that succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    /// Exit code 1 and a sentence on stderr that holds `part`.
    pub(crate) fn refused(&self, part: &str) {
        self.ended_with(1, part);
    }

    /// Of commands whose 1 says that they looked.
    pub(crate) fn could_not_look(&self, part: &str) {
        self.ended_with(2, part);
    }

    fn ended_with(&self, code: i32, part: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        // Log lines may stand before it, and what a parser says may have several lines.
        let lines = self.stderr.lines().skip_while(|line| !line.starts_with("error: "));
        let told = lines.collect::<Vec<_>>().join("\n");
        assert!(told.contains(part), "{part:?} is not told: {self:?}");
    }
}

/// Runs a command to its end; one that does not end is killed and fails the test.
pub(crate) fn run(command: &mut Command) -> Ran {
    Service::spawn(command).ended()
}

/// A running process; dropped, it is killed.
pub(crate) struct Service {
    pub(crate) child: Child,
    /// The first line of stdout, once it came.
    pub(crate) first_line: String,
    pub(crate) lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
}

impl Service {
    /// Starts a process and waits for its first line, which means it is ready.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut service = Self::spawn(command);
        match service.lines.recv_timeout(PATIENCE) {
            Ok(line) => service.first_line = line,
            Err(_) => panic!("it did not get ready: {:?}", service.ended()),
        }
        service
    }

    /// Starts a process that says nothing until there is something to say.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command can be run");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let log = std::env::temp_dir().join(format!("svc-test-log-{}", child.id()));
        let mut log = is_kept().then(|| File::create(log).expect("a log can be kept"));
        let stderr = std::thread::spawn(move || {
            let (mut text, mut part) = (Vec::new(), [0; 4_096]);
            while let Ok(count @ 1..) = stderr.read(&mut part) {
                text.extend(&part[..count]);
                // At once: who is killed is not waited for.
                let _ = log.as_mut().map(|log| log.write_all(&part[..count]));
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { child, first_line: String::new(), lines, stderr: Some(stderr) }
    }

    /// What it printed when it was ready.
    pub(crate) fn ready(&self) -> Value {
        serde_json::from_str(&self.first_line)
            .unwrap_or_else(|fault| panic!("{fault}: {:?}", self.first_line))
    }

    pub(crate) fn base_url(&self) -> String {
        self.ready()["baseUrl"].as_str().expect("baseUrl is told").to_owned()
    }

    /// Asks it to stop and waits for the end.
    pub(crate) fn stop(self) -> Ran {
        self.terminate();
        self.ended()
    }

    /// SIGTERM, as a service manager sends it.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("kill can be run");
        assert!(sent.success(), "SIGTERM could not be sent to {pid}");
    }

    /// Waits for the end of the process.
    pub(crate) fn ended(mut self) -> Ran {
        let status = until("the process ends", PATIENCE, || self.exit_status());
        let stderr = self.stderr.take().expect("it is taken once");
        Ran {
            code: status.code(),
            stdout: self.lines.iter().map(|line| line + "\n").collect(),
            stderr: stderr.join().expect("reading stderr does not panic"),
        }
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child is ours to wait for")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until there is an answer; fails with `what` when the time is over.
pub(crate) fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < within, "within {within:?} this did not come true: {what}");
        std::thread::sleep(POLL);
    }
}

#[expect(clippy::disallowed_methods, reason = "deadlines of tests are in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
