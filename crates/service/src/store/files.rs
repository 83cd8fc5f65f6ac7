//! The files of an embedded database: their names, who may read them, and what is said when one cannot be had.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::StoreError;

/// A file of the database or beside it.
pub(super) fn not_opened(what: &str, path: &Path, fault: &std::io::Error) -> StoreError {
    let folder = folder_of(path).display();
    StoreError::Refused(match fault.kind() {
        ErrorKind::NotFound => format!("the folder {folder} does not exist: mkdir -p {folder}"),
        ErrorKind::PermissionDenied => format!(
            "this user may not write {}: run this as the service's user, or give that user {folder}",
            path.display()
        ),
        _ => {
            format!(
                "cannot {what} {}: {fault}; it is to be on a disk that can be written",
                path.display()
            )
        }
    })
}

/// Under one name, whatever link leads to it, also where that leads to nothing yet.
pub(super) fn where_it_leads(path: &Path) -> PathBuf {
    const LINKS_MAX: usize = 16;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path.canonicalize().unwrap_or(path)
}

/// Nobody else on the machine may read it, nor hold its lock. Through no link: root restores in a folder of the
/// service's, where that could lay one to anywhere.
pub(super) fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).write(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options.open(path)
}

pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
