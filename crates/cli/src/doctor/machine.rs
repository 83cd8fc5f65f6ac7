//! The machine: room on the disk, and how many files and sockets may be open.

use std::path::Path;

use svc_service::store::Database;

use super::Check;
use crate::settings::Settings;

/// A month of a busy shop, and the copy a backup makes.
const DISK_BYTES_LOW: u64 = 1024 * 1024 * 1024;
/// Not even the log of the database fits any more.
const DISK_BYTES_MIN: u64 = 128 * 1024 * 1024;
/// Beside the connections of callers: the database, webhooks under way, connections kept for the next ones,
/// files.
const FILES_SPARE: u64 = 4_096;

pub(super) fn examine(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Database::Sqlite(path) = &settings.database {
        checks.push(disk(path));
    }
    checks.extend(settings.secret_files.iter().map(|path| private("secret file", path)));
    checks.push(open_files(settings.config.limits.connections as u64));
    checks
}

#[cfg(unix)]
fn disk(database: &Path) -> Check {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match rustix::fs::statvfs(folder) {
        Ok(found) => room(found.f_bavail.saturating_mul(found.f_frsize)),
        Err(fault) => Check::failed(
            "disk",
            format!("{}: {fault}", folder.display()),
            "make the directory, and give it to the service's user",
        ),
    }
}

fn room(free: u64) -> Check {
    let what = format!("{} MiB are free", free / (1024 * 1024));
    let fix = "make room: without it new orders are answered with 503";
    match free {
        0..DISK_BYTES_MIN => Check::failed("disk", what, fix),
        DISK_BYTES_MIN..DISK_BYTES_LOW => Check::warning("disk", what, fix),
        _ => Check::ok("disk", what),
    }
}

#[cfg(unix)]
fn open_files(connections: u64) -> Check {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    files(limit, connections)
}

fn files(limit: Option<u64>, connections: u64) -> Check {
    let needed = connections + FILES_SPARE;
    match limit {
        None => Check::ok("open files", "no limit"),
        Some(limit) if limit >= needed => Check::ok("open files", format!("{limit} allowed")),
        Some(limit) => Check::warning(
            "open files",
            format!("{limit} allowed, {connections} connections and {FILES_SPARE} files wanted"),
            format!("LimitNOFILE={needed} in the unit, or a smaller --connections"),
        ),
    }
}

/// Hashes, sealed secrets, private keys.
#[cfg(unix)]
pub(super) fn private(id: &'static str, path: &Path) -> Check {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    match mode & 0o007 {
        0 => Check::ok(id, format!("{} is closed to other users", path.display())),
        _ => Check::warning(
            id,
            format!("everybody on this machine may read or write {}", path.display()),
            format!("chmod 600 {}", path.display()),
        ),
    }
}

#[cfg(not(unix))]
pub(super) fn private(id: &'static str, _: &Path) -> Check {
    Check::ok(id, "not looked at on this system")
}

#[cfg(not(unix))]
fn disk(_: &Path) -> Check {
    Check::ok("disk", "not looked at on this system")
}

#[cfg(not(unix))]
fn open_files(connections: u64) -> Check {
    files(None, connections)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn little_room_is_told_and_none_is_a_fault() {
        for (free, state) in [
            (DISK_BYTES_LOW, State::Ok),
            (DISK_BYTES_LOW - 1, State::Warning),
            (DISK_BYTES_MIN - 1, State::Failed),
        ] {
            assert_eq!(room(free).state, state, "{free}");
        }
    }

    #[test]
    fn a_limit_below_the_connections_is_told() {
        assert_eq!(files(Some(14_096), 10_000).state, State::Ok);
        assert_eq!(files(None, 10_000).state, State::Ok);
        let told = files(Some(1_024), 10_000);
        assert_eq!(told.state, State::Warning);
        assert!(told.fix.is_some_and(|fix| fix.contains("LimitNOFILE=14096")));
    }
}
