//! The real binary: its commands, and servers of it that end with the test.

use std::fs::File;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{Folder, PATIENCE, Place, run, svc, until};

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

/// A database with its master key.
pub(crate) struct Home {
    place: Place,
    pub master_key: String,
}

impl Home {
    pub(crate) fn sandbox() -> Self {
        Self::on(Place::sqlite())
    }

    pub(crate) fn production() -> Self {
        let home = Self::sandbox();
        home.run(&["migrate", "--environment", "production"]);
        home
    }

    pub(crate) fn on(place: Place) -> Self {
        let master_key = run(&mut svc(&["keygen"])).stdout.trim().to_owned();
        Self { place, master_key }
    }

    /// A partner with one application.
    pub(crate) fn partner(&self, name: &str) -> Credentials {
        let printed = self.run(&["partner", "create", name, "--json"]);
        serde_json::from_str(&printed).expect("svc partner create --json prints credentials")
    }

    /// Runs a command to its end; what it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let ran = run(self.command(arguments).args(["--database", &self.place.database]));
        assert_eq!(ran.code, Some(0), "svc {arguments:?} failed: {}", ran.stderr);
        ran.stdout
    }

    /// A server of this database.
    pub(crate) fn serve(&self, flags: &[&str]) -> Running {
        let mut command = self.place.serving(flags);
        command.env("SVC_SERVER_MASTER_KEY", &self.master_key);
        Running::start(command, &self.place.folder)
    }

    /// As production runs behind a proxy on this machine.
    pub(crate) fn serve_production(&self) -> Running {
        self.serve(&["--public-url", "https://api.svc.ao", "--trusted-proxy", "127.0.0.0/8"])
    }

    /// `svc demo`, which brings a database and a partner of its own.
    pub(crate) fn demo(&self) -> (Running, Credentials) {
        let data = self.place.folder.path("demo");
        let arguments = ["demo", "--listen", "127.0.0.1:0", "--data", &data, "--json"];
        let running = Running::start(self.command(&arguments), &self.place.folder);
        let credentials = serde_json::from_value(running.ready.clone());
        (running, credentials.expect("svc demo --json prints credentials"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = svc(arguments);
        command.env("SVC_SERVER_MASTER_KEY", &self.master_key);
        command
    }
}

/// A server; killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub address: SocketAddr,
    log: String,
    ready: Value,
}

impl Running {
    fn start(mut command: Command, folder: &Folder) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (printed, log) =
            (folder.path(&format!("{number}.out")), folder.path(&format!("{number}.log")));
        let create = |path: &str| File::create(path).expect("a file in our own folder");
        let child = command
            .env("SVC_SERVER_LOG", "debug")
            .stdin(Stdio::null())
            .stdout(create(&printed))
            .stderr(create(&log))
            .spawn()
            .expect("svc starts");
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut running = Self { child, address, log, ready: Value::Null };
        running.ready = until("svc is ready", PATIENCE, || {
            let ended = running.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "svc ended at once: {}", running.log());
            first_line(&printed)
        });
        // A demo tells its secrets there.
        std::fs::remove_file(&printed).expect("a file in our own folder");
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

fn first_line(path: &str) -> Option<Value> {
    let text = std::fs::read_to_string(path).ok()?;
    let (line, _) = text.split_once('\n')?;
    Some(serde_json::from_str(line).expect("--json prints JSON"))
}
