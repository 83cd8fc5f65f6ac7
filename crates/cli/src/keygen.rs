//! `svc keygen`: a new master key, or a secret that a rail's connector shares with the service.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use svc_service::app::Random;
use svc_service::credentials::webhook_secret;
use svc_service::keys::master_key_from;

use crate::output;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc keygen --out /etc/svc/master-key
  svc keygen --rail --out /etc/svc/rail-acquirer")]
pub(crate) struct Args {
    /// A secret for a connector (secret or secret_file of a [[rail]])
    #[arg(long)]
    rail: bool,
    /// Write it into a new file that only its owner may read, instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let secret = match args.rail {
        true => webhook_secret(&Random::system()),
        false => master_key_from(Random::system().bytes()),
    };
    match &args.out {
        Some(path) => write(path, &secret)?,
        None => output::line(secret.expose_secret()),
    }
    if !args.rail {
        output::note(
            "Keep it in a file only the service can read, and a copy elsewhere: without it no stored secret \
             can be used.",
        );
    }
    Ok(())
}

/// Never over a file that is there: it may be the only key of a database.
fn write(path: &Path, secret: &SecretString) -> anyhow::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let cannot =
        || format!("cannot write {}; a file that is there is not replaced", path.display());
    let mut file = options.open(path).with_context(cannot)?;
    let written = writeln!(file, "{}", secret.expose_secret()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key is none.
        let _ = std::fs::remove_file(path);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
