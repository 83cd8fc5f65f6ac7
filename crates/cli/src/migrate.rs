//! `svc migrate`: makes the database, or brings it up to date.

use crate::output;
use crate::settings::DataArgs;

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  svc migrate --environment production --database sqlite:/var/lib/svc/svc.db"
)]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let mut settings = args.data.settings()?;
    settings.config.create_database = true;
    let store = settings.open_store().await?;
    output::note(format_args!(
        "The {} database ({}) is up to date.",
        store.environment().as_str(),
        store.engine_name()
    ));
    Ok(())
}
