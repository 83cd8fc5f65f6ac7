//! `svc keygen`: a new master key, or a secret that a rail's connector shares with the service.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::ExposeSecret;
use svc_service::app::Random;
use svc_service::keys::master_key_from;

use crate::output;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A secret for a connector (secret or secret_file of a [[rail]])
    #[arg(long)]
    rail: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.rail {
        let secret = STANDARD.encode(Random::system().bytes::<32>());
        output::line(format_args!("whsec_{secret}"));
        return Ok(());
    }
    let key = master_key_from(Random::system().bytes());
    output::line(key.expose_secret());
    output::note(
        "Keep it in a file only the service can read; without it no stored secret can be used.",
    );
    Ok(())
}
