//! Where secrets come from: a variable, a file that a variable or the settings name, the settings themselves.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use secrecy::SecretString;

// No flags: those everybody on the machine can list.
pub(crate) const MASTER_KEY: &str = "SVC_SERVER_MASTER_KEY";
pub(crate) const MASTER_KEY_FILE: &str = "SVC_SERVER_MASTER_KEY_FILE";
pub(crate) const OTHER_MASTER_KEY: &str = "SVC_SERVER_OTHER_MASTER_KEY";
pub(crate) const OTHER_MASTER_KEY_FILE: &str = "SVC_SERVER_OTHER_MASTER_KEY_FILE";
pub(crate) const DATABASE_FILE: &str = "SVC_SERVER_DATABASE_FILE";

/// A file that holds a secret: of this variable, or of the settings.
pub(crate) fn named(variable: &str, file: &Option<PathBuf>) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).or(file.clone())
}

pub(crate) fn master_key(
    variable: &str,
    file: Option<PathBuf>,
    written: &Option<String>,
) -> anyhow::Result<Option<SecretString>> {
    let key = match (std::env::var(variable).ok(), file, written) {
        (Some(key), _, _) => Some(key),
        (None, Some(path), _) => Some(read_secret(&path)?),
        (None, None, key) => key.clone(),
    };
    Ok(key.map(SecretString::from))
}

/// What a merchant's backend has in its environment; `printed_by` says who tells it.
pub(crate) fn of_merchant(name: &str, printed_by: &str) -> anyhow::Result<String> {
    match std::env::var(name) {
        Ok(text) if text.trim().is_empty() => bail!("{name} is empty; {printed_by}"),
        Ok(text) => Ok(text),
        Err(_) => bail!("{name} is not set, or not exported; {printed_by}"),
    }
}

pub(crate) fn read_secret(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the secret file {}", path.display()))?;
    Ok(text.trim().to_owned())
}
