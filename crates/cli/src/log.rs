//! Logs go to stderr: text for a person at a terminal, JSON for a machine.

use std::io::IsTerminal;

use anyhow::{Context, bail};
use tracing::Level;
use tracing_subscriber::EnvFilter;

/// What is logged: a level, or filters such as `info,svc_service=debug`.
pub(crate) const VARIABLE: &str = "SVC_SERVER_LOG";

pub(crate) fn start(default: Level) -> anyhow::Result<()> {
    let given = std::env::var(VARIABLE).unwrap_or_default();
    // A bare word that is no level would switch everything off.
    let known =
        |part: &str| part.contains(['=', '[']) || part.parse::<Level>().is_ok() || part == "off";
    if !given.is_empty() && !given.split(',').all(|part| known(part.trim())) {
        bail!(
            "{VARIABLE} is {given:?}: give a level (info, debug, …) or filters such as info,svc_service=debug"
        );
    }
    let filter = EnvFilter::builder()
        .with_default_directive(default.into())
        .parse(&given)
        .with_context(|| format!("{VARIABLE} is {given:?}"))?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // On a full disk, say: a line that cannot be written is no reason to end, and saying so would be one.
        .log_internal_errors(false);
    if std::io::stderr().is_terminal() {
        logs.with_target(false).init();
    } else {
        logs.json().flatten_event(true).with_ansi(false).init();
    }
    Ok(())
}
