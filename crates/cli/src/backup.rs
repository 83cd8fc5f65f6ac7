//! `svc backup`: a consistent copy of the embedded database.

use std::path::PathBuf;

use crate::output;
use crate::settings::{DataArgs, Settings};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  svc backup --database sqlite:svc.db backups/svc-today.db")]
pub(crate) struct Args {
    /// Where to write the copy; the file must not exist
    to: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Settings { config, database, .. } = args.data.settings()?;
    database.backup(&args.to, config.environment)?;
    output::note(format_args!("Copied and checked: {}", args.to.display()));
    Ok(())
}
