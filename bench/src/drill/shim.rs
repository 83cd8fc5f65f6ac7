//! The layer between a service and the kernel (`bench/shim/shim.c`), built when it is needed.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

const SOURCE: &str = include_str!("../../shim/shim.c");

pub(super) struct Shim {
    library: PathBuf,
    control: PathBuf,
    trace: Option<PathBuf>,
}

impl Shim {
    /// Everything is kept beside the database.
    pub(super) fn build(directory: &Path, is_traced: bool) -> anyhow::Result<Self> {
        let (source, library) = (directory.join("shim.c"), directory.join("shim.so"));
        std::fs::write(&source, SOURCE)?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()?;
        ensure!(built.status.success(), "cc: {}", String::from_utf8_lossy(&built.stderr));
        let control = directory.join("weather");
        std::fs::write(&control, [0; 24])?;
        let trace = is_traced.then(|| directory.join("trace"));
        Ok(Self { library, control, trace })
    }

    pub(super) fn environment(&self) -> Vec<(&'static str, &Path)> {
        let mut all = vec![
            ("LD_PRELOAD", self.library.as_path()),
            ("SVC_SHIM_CONTROL", self.control.as_path()),
        ];
        all.extend(self.trace.as_deref().map(|trace| ("SVC_SHIM_TRACE", trace)));
        all
    }

    /// The wall clock of the service, against the machine's.
    pub(super) fn shift_clock_ms(&self, shift: i64) -> anyhow::Result<()> {
        self.set(0, &shift.to_ne_bytes())
    }

    pub(super) fn fill_disk(&self, is_full: bool) -> anyhow::Result<()> {
        self.set(8, &i32::from(is_full).to_ne_bytes())
    }

    /// So many of the next calls of fsync fail.
    pub(super) fn break_syncs(&self, times: i32) -> anyhow::Result<()> {
        self.set(12, &times.to_ne_bytes())
    }

    /// The files of the database can be read, and that is all.
    pub(super) fn lock_disk(&self, is_read_only: bool) -> anyhow::Result<()> {
        self.set(16, &i32::from(is_read_only).to_ne_bytes())
    }

    /// The offsets of `struct control`.
    fn set(&self, offset: u64, value: &[u8]) -> anyhow::Result<()> {
        let control = std::fs::OpenOptions::new().write(true).open(&self.control)?;
        Ok(control.write_all_at(value, offset)?)
    }
}
