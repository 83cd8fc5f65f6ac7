//! The ways in and out: the public address, and the look-up of merchants.

use std::time::Duration;

use svc_service::config::Config;
use svc_service::domain::Environment;
use svc_service::webhook::{LookUp, look_up};
use url::Host;

use super::Check;
use crate::http::{Http, Silence};

const TIMEOUT: Duration = Duration::from_secs(5);
/// A name that is never public, whoever is asked.
const PRIVATE_NAME: &str = "localhost";

pub(super) async fn examine(
    config: &Config,
    environment: Environment,
    dns_name: Option<&str>,
) -> Vec<Check> {
    vec![
        public_url(config).await,
        dns(config, environment, dns_name).await,
        guard(config, environment).await,
    ]
}

/// Whether whoever calls the public address reaches this service and nothing else.
async fn public_url(config: &Config) -> Check {
    const ID: &str = "public url";
    if config.public_url.is_none() && config.listen.port() == 0 {
        return Check::ok(ID, "not checked: no public URL, and the port is chosen at the start");
    }
    let base = config.base_url(config.listen);
    let http = match Http::new() {
        Ok(http) => http,
        Err(fault) => return Check::failed(ID, fault.to_string(), "install ca-certificates"),
    };
    let told = http.get(&format!("{base}/readyz"), TIMEOUT).await;
    let answer = match told.answer {
        Ok(answer) => answer,
        Err(Silence::Unreachable(why)) => {
            return Check::warning(
                ID,
                format!("{base} cannot be reached: {why}"),
                "start svc serve, or give --listen or --public-url as the service has it; if it has these, look \
                 at the proxy, the firewall and DNS",
            );
        }
        Err(silence) => {
            let fix = "look at the proxy and the firewall: something takes the call and is silent";
            return Check::failed(ID, format!("{base}: {silence}"), fix);
        }
    };
    let ours = answer.headers.contains_key("x-request-id");
    match (ours, answer.status) {
        (true, 200) => Check::ok(ID, format!("{base} is this service, and ready")),
        (true, status) => Check::failed(
            ID,
            format!("{base} is this service, and not ready ({status})"),
            "its database does not answer; see the log",
        ),
        (false, status) => Check::failed(
            ID,
            format!("{base} is something else: it answered {status} without X-Request-Id"),
            "lead the address to svc, and let the proxy pass headers on",
        ),
    }
}

async fn dns(config: &Config, environment: Environment, given: Option<&str>) -> Check {
    const ID: &str = "dns";
    let own = config.public_url.as_ref().and_then(|url| match url.host() {
        Some(Host::Domain(name)) => Some(name.to_owned()),
        _ => None,
    });
    let Some(name) = given.map(str::to_owned).or(own) else {
        return match environment {
            Environment::Sandbox => Check::ok(ID, "not tried: --dns-name gives a name to ask for"),
            Environment::Production => {
                Check::warning(ID, "no name to ask for", "give one with --dns-name")
            }
        };
    };
    // Our own name may well be private from here; whether names are found at all is the question.
    match look_up(&config.webhooks, true, &name).await {
        LookUp::Found(count) => Check::ok(ID, format!("{name} has {count} addresses")),
        LookUp::Refused => Check::ok(ID, format!("{name} was found")),
        LookUp::NotFound(why) => Check::failed(
            ID,
            format!("{name} was not found: {why}"),
            "let this machine reach its name servers, or name others with --webhook-dns",
        ),
    }
}

async fn guard(config: &Config, environment: Environment) -> Check {
    const ID: &str = "webhook guard";
    if config.private_webhook_targets {
        return Check::warning(
            ID,
            "webhooks may go to private addresses",
            "remove private_webhook_targets, unless this is a sandbox of your own",
        );
    }
    match look_up(&config.webhooks, false, PRIVATE_NAME).await {
        LookUp::Found(_) => Check::failed(
            ID,
            "an address of this machine passed for a public one",
            "do not start: tell the maintainers",
        ),
        LookUp::Refused if environment == Environment::Sandbox => Check::ok(
            ID,
            "refuses private addresses: private_webhook_targets is not set (svc demo sets it)",
        ),
        LookUp::Refused => Check::ok(ID, "refuses private addresses"),
        LookUp::NotFound(why) => Check::warning(
            ID,
            format!("could not be tried, {PRIVATE_NAME} was not found: {why}"),
            "see dns above",
        ),
    }
}
