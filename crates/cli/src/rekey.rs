//! `svc rekey`: the present master key takes over from the one before.

use anyhow::Context;
use svc_service::domain::Author;
use svc_service::rekey::{RekeyError, rekey};

use crate::output;
use crate::settings::DataArgs;

#[derive(clap::Args)]
#[command(after_help = "\
Give the new master key in SVC_SERVER_MASTER_KEY_FILE and the one before in
SVC_SERVER_OTHER_MASTER_KEY_FILE, restart the service with both, run this,
then take the other away (docs/operate.md, Changing the master key).

Example:
  svc rekey --config /etc/svc/svc.toml")]
pub(crate) struct Args {
    /// Go on although some secrets can be read with neither key; they stay as they are
    #[arg(long)]
    leave_unreadable: bool,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let app = args.data.settings()?.open().await?;
    let outcome = rekey(&app, args.leave_unreadable, &Author::command_line(None)).await;
    let done = match &outcome {
        Err(RekeyError::NoOther) => {
            outcome.context("name the file of the old master key in SVC_SERVER_OTHER_MASTER_KEY_FILE")
        }
        Err(RekeyError::NotServed) => {
            outcome.context("restart the service with both master keys, then run this again")
        }
        Err(RekeyError::GoesByIt) => outcome.context(
            "to make the other one the master key, swap master_key and other_master_key and restart the service first",
        ),
        Err(RekeyError::Unreadable(_)) => outcome.context(
            "they are damaged, or of a third master key; --leave-unreadable goes on without them",
        ),
        Err(RekeyError::Meanwhile) => outcome.context("run this again"),
        Err(RekeyError::Store(_)) | Ok(_) => outcome.map_err(anyhow::Error::from),
    }?;
    output::line(format_args!(
        "Sealed anew: {} webhook secrets, {} telephone numbers, {} seeds of one-time codes.",
        done.webhook_secrets, done.phones, done.one_time_codes
    ));
    for row in &done.unreadable {
        output::note(format_args!("Left as it is, because neither key opens it: {row}"));
    }
    output::note(format_args!(
        "The database goes by master key {}. The service no longer needs the other one: take it out of the settings and \
         restart. Copies of the database from before still need it.",
        app.keys.id()
    ));
    Ok(())
}
