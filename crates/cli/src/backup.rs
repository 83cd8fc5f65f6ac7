//! `svc backup`: a consistent copy of the embedded database.

use std::path::PathBuf;

use crate::output;
use crate::settings::DataArgs;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  svc backup --database sqlite:svc.db backups/svc-today.db")]
pub(crate) struct Args {
    /// Where to write the copy; the file must not exist
    to: PathBuf,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let store = args.data.settings()?.open_store().await?;
    store.backup(args.to.clone()).await?;
    output::note(format_args!("Copied and checked: {}", args.to.display()));
    Ok(())
}
