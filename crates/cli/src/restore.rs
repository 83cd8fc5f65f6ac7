//! `svc restore`: a copy made by `svc backup` takes the place of the embedded database.

use std::path::PathBuf;

use crate::output;
use crate::settings::{DataArgs, Settings};

#[derive(clap::Args)]
#[command(after_help = "Example:
  svc restore backups/svc-today.db --database sqlite:/var/lib/svc/svc.db

The service must be stopped. The copy is checked first and stays where it is;
what it replaces is kept beside it under another name. Start with the master
key that the copy goes by, and after svc rail reconcile: what was paid since
the copy was made is not in it.")]
pub(crate) struct Args {
    /// The copy
    from: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Settings { config, database, .. } = args.data.settings()?;
    let kept = database.restore(&args.from, config.environment)?;
    output::note(format_args!("Checked and put in place: {}", args.from.display()));
    if let Some(kept) = kept {
        output::note(format_args!("What was there before is kept: {}", kept.display()));
    }
    output::note(
        "Before you start the service: what was paid since the copy was made is not in it, and such orders would end as \
         CAN. Run svc rail reconcile RAIL DAY --apply for each rail and each day since.",
    );
    output::note(
        "Tokens, sessions and links have ended. Partners, people and secrets are as they were when the copy was \
         made: disable and rotate again what was disabled or rotated since.",
    );
    Ok(())
}
