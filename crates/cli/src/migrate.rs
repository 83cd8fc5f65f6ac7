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
    let is_new = settings.database.is_missing();
    let place = settings.database.to_string();
    let store = settings.open_store().await?;
    let environment = store.environment().as_str();
    match is_new {
        true => output::note(format_args!("Made a new {environment} database: {place}")),
        false => output::note(format_args!("The {environment} database is up to date: {place}")),
    }
    Ok(())
}
