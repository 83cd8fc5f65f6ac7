//! `svc keygen`: a new master key.

use secrecy::ExposeSecret;
use svc_service::app::Random;
use svc_service::keys::master_key_from;

use crate::output;

pub(crate) fn run() -> anyhow::Result<()> {
    let key = master_key_from(Random::system().bytes());
    output::line(key.expose_secret());
    output::note(
        "Keep it in a file only the service can read; without it no stored secret can be used.",
    );
    Ok(())
}
