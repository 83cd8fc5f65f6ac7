//! `svc doctor`: looks at a deployment with the settings of `svc serve`, changes nothing, and says the
//! fix for whatever is wrong.

mod data;
mod machine;
mod rails;
mod reach;
mod tls;

use std::process::ExitCode;

use ipnet::IpNet;
use serde::Serialize;
use svc_service::domain::Environment;

use crate::output;
use crate::settings::{ServiceArgs, Settings};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc doctor --config /etc/svc/svc.toml
  svc doctor --database sqlite:svc.db --json

Takes the flags, variables and file of svc serve, and changes nothing. Works
before the first start, while the service runs and after it has stopped.

Exit code: 0 nothing is wrong (there may be warnings), 1 something is, 2 the
settings cannot be read.")]
pub(crate) struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// A public name to look up, to see whether DNS works [default: the host of the public URL]
    #[arg(long, value_name = "NAME")]
    dns_name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    id: &'static str,
    state: State,
    what: String,
    /// What to do, unless all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// It works, but not for ever or not everywhere.
    Warning,
    Failed,
}

impl Check {
    fn ok(id: &'static str, what: impl Into<String>) -> Self {
        Self { id, state: State::Ok, what: what.into(), fix: None }
    }

    fn warning(id: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, state: State::Warning, what: what.into(), fix: Some(fix.into()) }
    }

    fn failed(id: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id, state: State::Failed, what: what.into(), fix: Some(fix.into()) }
    }
}

#[derive(Serialize)]
struct Diagnosis<'a> {
    ok: bool,
    checks: &'a [Check],
}

pub(crate) async fn run(args: Args) -> ExitCode {
    let settings = match args.service.settings() {
        Ok(settings) => settings,
        Err(fault) => {
            output::error(&fault);
            return output::COULD_NOT_RUN.into();
        }
    };
    let checks = examine(&settings, args.dns_name.as_deref()).await;
    let ok = checks.iter().all(|check| check.state != State::Failed);
    if args.json {
        output::json(&Diagnosis { ok, checks: &checks });
    } else {
        print(&checks);
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn examine(settings: &Settings, dns_name: Option<&str>) -> Vec<Check> {
    let (mut checks, environment) = data::examine(settings).await;
    checks.push(rules(settings, environment));
    checks.extend(proxies(&settings.config.trusted_proxies));
    checks.extend(tls::examine(&settings.config));
    checks.extend(machine::examine(settings));
    checks.extend(rails::examine(&settings.config, environment).await);
    checks.extend(reach::examine(&settings.config, environment, dns_name).await);
    checks
}

/// What production refuses.
fn rules(settings: &Settings, environment: Environment) -> Check {
    match settings.config.check(environment) {
        Ok(()) => Check::ok("settings", format!("fit for {}", environment.as_str())),
        Err(fault) => Check::failed(
            "settings",
            format!("refused in {}", environment.as_str()),
            fault.to_string(),
        ),
    }
}

/// Whoever is trusted says for whom it asks: limits and the request log believe it.
fn proxies(trusted: &[IpNet]) -> Option<Check> {
    let everybody = trusted.iter().find(|net| net.prefix_len() == 0)?;
    Some(Check::warning(
        "trusted proxies",
        format!("{everybody} is everybody: any caller can give itself another address"),
        "name your proxies' own addresses or network",
    ))
}

fn print(checks: &[Check]) {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or_default();
    for Check { id, state, what, fix } in checks {
        let (mark, colour) = match state {
            State::Ok => ("✓", "32"),
            State::Warning => ("!", "33"),
            State::Failed => ("✗", "31"),
        };
        let line = format!("{mark} {id:width$}  {what}");
        output::line(output::painted(colour, line));
        if let Some(fix) = fix {
            output::line(format_args!("  {:width$}  → {fix}", ""));
        }
    }
    let count = |wanted| checks.iter().filter(|check| check.state == wanted).count();
    let (fine, warnings, wrong) = (count(State::Ok), count(State::Warning), count(State::Failed));
    let plural = if warnings == 1 { "" } else { "s" };
    output::line("");
    output::line(format_args!("{fine} fine, {warnings} warning{plural}, {wrong} wrong."));
}
