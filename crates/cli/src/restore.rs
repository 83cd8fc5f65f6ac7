//! `svc restore`: a copy made by `svc backup` takes the place of the embedded database.

use std::path::PathBuf;

use svc_service::app::Clock;

use crate::output;
use crate::settings::DataArgs;

#[derive(clap::Args)]
#[command(after_help = "Example:
  svc restore backups/svc-today.db --database sqlite:/var/lib/svc/svc.db

The service must be stopped. The copy is checked first and stays where it is; what it replaces is kept
beside it under another name. Start with the master key that the copy was made with.")]
pub(crate) struct Args {
    /// The copy
    from: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let database = args.data.settings()?.database;
    let mark = Clock::system().now().strftime(".before-%Y%m%dT%H%M%SZ").to_string();
    let kept = database.restore(&args.from, &mark)?;
    output::note(format_args!("Checked and put in place: {}", args.from.display()));
    if let Some(kept) = kept {
        output::note(format_args!("What was there before is kept: {}", kept.display()));
    }
    Ok(())
}
