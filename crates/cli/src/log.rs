//! Logs go to stderr: text for a person at a terminal, JSON for a machine.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What is logged: a level, or filters such as `info,svc_service=debug`.
pub(crate) const VARIABLE: &str = "SVC_SERVER_LOG";

pub(crate) fn start() {
    let filter = EnvFilter::builder()
        .with_env_var(VARIABLE)
        .with_default_directive(tracing::Level::INFO.into())
        .from_env_lossy();
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        logs.with_target(false).init();
    } else {
        logs.json().flatten_event(true).with_ansi(false).init();
    }
}
