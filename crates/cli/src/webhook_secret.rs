//! The webhook secret of a tool: from its variable or a file, never from a flag, which anyone can list.

use std::path::Path;

use anyhow::{Context, bail};
use secrecy::SecretString;

use crate::secrets::of_merchant;

pub(crate) const VARIABLE: &str = "SVC_WEBHOOK_SECRET";
/// While a secret is replaced, the one before it signs until the switch.
const PREVIOUS: &str = "SVC_WEBHOOK_SECRET_PREVIOUS";
const PREFIX: &str = "whsec_";
/// A secret of the service has 50 characters; shorter than this is a placeholder.
const BYTES_MIN: usize = 24;

/// White space around it is cut off: it comes from the file or the shell, never from the service.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<SecretString> {
    let Some(path) = file else {
        let text = of_merchant(VARIABLE, "svc demo and svc partner create print it")?;
        return checked(VARIABLE, &text);
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the secret file {}", path.display()))?;
    if text.trim().is_empty() {
        bail!("the secret file {} is empty", path.display());
    }
    checked(VARIABLE, &text)
}

/// The one before it, if there is one.
pub(crate) fn read_previous() -> anyhow::Result<Option<SecretString>> {
    let given = std::env::var(PREVIOUS).ok().filter(|text| !text.trim().is_empty());
    given.map(|text| checked(PREVIOUS, &text)).transpose()
}

fn checked(variable: &str, text: &str) -> anyhow::Result<SecretString> {
    let secret = text.trim();
    if !secret.starts_with(PREFIX) {
        bail!("{variable} is no webhook secret: it begins with {PREFIX}, without quotes");
    }
    if secret.len() < BYTES_MIN {
        bail!("{variable} is too short to be one: a webhook secret is {PREFIX} and 44 characters");
    }
    Ok(SecretString::from(secret))
}
