//! The ways in and out: the public address, and the look-up of merchants.

use std::time::Duration;

use svc_service::config::Config;
use svc_service::webhook::{LookUp, look_up};
use url::Host;

use super::Check;
use crate::http::{Http, Silence};

const TIMEOUT: Duration = Duration::from_secs(5);
/// A name that is never public, whoever is asked.
const PRIVATE_NAME: &str = "localhost";

pub(super) async fn examine(config: &Config, dns_name: Option<&str>) -> Vec<Check> {
    vec![public_url(config).await, dns(config, dns_name).await, guard(config).await]
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
                "start svc serve; if it runs, look at the proxy, the firewall and DNS",
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

async fn dns(config: &Config, given: Option<&str>) -> Check {
    const ID: &str = "dns";
    let own = config.public_url.as_ref().and_then(|url| match url.host() {
        Some(Host::Domain(name)) => Some(name.to_owned()),
        _ => None,
    });
    let Some(name) = given.map(str::to_owned).or(own) else {
        return Check::warning(ID, "no name to ask for", "give one with --dns-name");
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

async fn guard(config: &Config) -> Check {
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
        LookUp::Refused => Check::ok(ID, "refuses private addresses"),
        LookUp::NotFound(why) => Check::warning(
            ID,
            format!("could not be tried, {PRIVATE_NAME} was not found: {why}"),
            "see dns above",
        ),
    }
}
