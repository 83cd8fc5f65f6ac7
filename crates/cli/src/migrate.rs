//! `svc migrate`: makes the database, or brings it up to date.

use svc_service::app::App;

use crate::output;
use crate::settings::{DataArgs, Settings};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  svc migrate --environment production --database sqlite:/var/lib/svc/svc.db"
)]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Settings { mut config, database } = args.data.settings()?;
    config.create_database = true;
    let app = App::open(config, &database).await?;
    output::note(format_args!(
        "The {} database ({}) is up to date.",
        app.environment.as_str(),
        app.store.engine_name()
    ));
    Ok(())
}
