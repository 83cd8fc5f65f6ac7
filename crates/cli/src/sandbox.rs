//! `svc sandbox`: what POST /sandbox/… does, from the shell, with the merchant's `SVC_…` variables.

use std::time::Duration;

use hyper::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use anyhow::anyhow;
use secrecy::SecretString;
use svc_client::{Client, Credentials, Error, PaymentStatus};

use crate::arguments::length;
use crate::output;
use crate::secrets::of_merchant;

#[derive(clap::Args)]
#[command(after_help = "Examples (with the variables svc demo prints):
  svc sandbox confirm order_6f9619ff-…      the payer pays
  svc sandbox clock --advance 24h    # a day passes, with all that falls due
  svc sandbox chaos --duplicate --drop-first 1 --failure-rate 0.3 --seed 7
  svc sandbox chaos --off")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    merchant: MerchantArgs,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

/// What a merchant's backend has in its environment.
#[derive(clap::Args, Clone)]
pub(crate) struct MerchantArgs {
    /// Address of the service [default: http://127.0.0.1:8080]
    #[arg(long, visible_alias = "server", env = "SVC_BASE_URL", value_name = "URL", global = true)]
    base_url: Option<String>,
    /// The application's publishable key
    #[arg(long, env = "SVC_PUBLISHABLE_KEY", value_name = "KEY", global = true)]
    publishable_key: Option<String>,
    /// The partner's client id; its secret is read from SVC_CLIENT_SECRET
    #[arg(long, env = "SVC_CLIENT_ID", value_name = "ID", global = true)]
    client_id: Option<String>,
}

/// How often a sandbox that moves is asked whether it has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const BASE_URL_DEFAULT: &str = "http://127.0.0.1:8080";
/// No flag: anyone on the machine can list those.
const CLIENT_SECRET: &str = "SVC_CLIENT_SECRET";
const ADVANCE_MAX: SignedDuration = SignedDuration::from_hours(400 * 24);

impl MerchantArgs {
    pub(crate) fn is_live(&self) -> bool {
        self.publishable_key.as_ref().is_some_and(|key| key.starts_with("pk_live_"))
    }

    /// An empty value counts as none, as it does for `svc merchant`.
    fn given_url(&self) -> Option<&str> {
        self.base_url.as_deref().filter(|url| !url.is_empty())
    }

    pub(crate) fn base_url(&self) -> &str {
        self.given_url().unwrap_or(BASE_URL_DEFAULT)
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let text = |name| of_merchant(name, "svc demo prints the variables");
        let given = |value: &Option<String>, name| match value {
            Some(given) if !given.is_empty() => Ok(given.clone()),
            _ => text(name),
        };
        let publishable_key = given(&self.publishable_key, "SVC_PUBLISHABLE_KEY")?;
        let client_id = given(&self.client_id, "SVC_CLIENT_ID")?;
        let client_secret = SecretString::from(text(CLIENT_SECRET)?);
        let credentials = Credentials { publishable_key, client_id, client_secret };
        Ok(Client::new(self.base_url(), credentials)?.speaking("en"))
    }

    /// Whoever was not reached may never have been meant.
    pub(crate) fn explain(&self, fault: Error) -> anyhow::Error {
        let told = match fault {
            Error::TimedOut => format!("{} did not answer in time", self.base_url()),
            Error::Unreachable(_) | Error::Foreign { .. } | Error::Malformed(_) => {
                fault.to_string()
            }
            Error::Refused { .. } | Error::Settings(_) => return fault.into(),
        };
        match self.given_url() {
            Some(_) => anyhow!(told),
            None => {
                anyhow!("{told} (the default: SVC_BASE_URL is not set, or not exported)")
            }
        }
    }
}

#[derive(clap::Subcommand)]
enum Command {
    /// The payer pays the order
    #[command(override_usage = "svc sandbox confirm [OPTIONS] <ORDER>")]
    Confirm(Order),
    /// An attempt to pay it is refused; the order stays pending
    #[command(override_usage = "svc sandbox decline [OPTIONS] <ORDER>")]
    Decline(Order),
    /// A bank reference is issued for it
    #[command(override_usage = "svc sandbox pending [OPTIONS] <ORDER>")]
    Pending(Order),
    /// The payer gives up
    #[command(override_usage = "svc sandbox cancel [OPTIONS] <ORDER>")]
    Cancel(Order),
    /// Its deadline passes
    #[command(override_usage = "svc sandbox expire [OPTIONS] <ORDER>")]
    Expire(Order),
    /// Show the sandbox's clock, or move it forward with --advance
    Clock(Clock),
    /// Show how webhooks are disturbed, or set it with the options
    Chaos(Chaos),
}

#[derive(clap::Args)]
struct Order {
    /// The order's externalTransactionId
    order: String,
}

#[derive(clap::Args)]
struct Clock {
    /// How far to move it: 90s, 24h, 3d
    #[arg(long, value_name = "TIME", value_parser = advance, allow_hyphen_values = true)]
    advance: Option<SignedDuration>,
}

fn advance(text: &str) -> Result<SignedDuration, String> {
    let by = length(text)?;
    if by > ADVANCE_MAX {
        return Err("at most 400d at a time".to_owned());
    }
    Ok(by)
}

#[derive(clap::Args)]
struct Chaos {
    /// Every event comes twice
    #[arg(long)]
    duplicate: bool,
    /// After the last event of an order, send the event before it once more
    #[arg(long)]
    reorder: bool,
    /// Delay the first attempt of every event by this many milliseconds
    #[arg(long, value_name = "MS")]
    delay_ms: Option<i64>,
    /// Lose the first N attempts of every event
    #[arg(long, value_name = "N")]
    drop_first: Option<i64>,
    /// Share of the other attempts to lose, from 0 to 1
    #[arg(long, value_name = "RATE")]
    failure_rate: Option<f64>,
    /// Decides which attempts --failure-rate loses; the same seed loses the same ones
    #[arg(long, value_name = "N")]
    seed: Option<i64>,
    /// Stop disturbing webhooks
    #[arg(long, conflicts_with_all = ["duplicate", "reorder", "delay_ms", "drop_first", "failure_rate"])]
    off: bool,
}

impl Chaos {
    fn asks_for_nothing(&self) -> bool {
        let Self { duplicate, reorder, delay_ms, drop_first, failure_rate, seed, off } = self;
        let set = *duplicate || *reorder || *off || seed.is_some();
        !set && delay_ms.is_none() && drop_first.is_none() && failure_rate.is_none()
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let api = args.merchant.client()?;
    let data = ask(&api, args.command).await.map_err(|fault| args.merchant.explain(fault))?;
    if args.json {
        output::json(&data);
    } else {
        print(&data);
    }
    Ok(())
}

async fn ask(api: &Client, command: Command) -> Result<Value, Error> {
    match command {
        Command::Confirm(order) => simulate(api, &order.order, "confirm").await,
        Command::Decline(order) => simulate(api, &order.order, "decline").await,
        Command::Pending(order) => simulate(api, &order.order, "pending").await,
        Command::Cancel(order) => simulate(api, &order.order, "cancel").await,
        Command::Expire(order) => simulate(api, &order.order, "expire").await,
        Command::Clock(Clock { advance: None }) => {
            api.call(Method::GET, "/sandbox/clock", None).await
        }
        Command::Clock(Clock { advance: Some(by) }) => travel(api, by).await,
        Command::Chaos(chaos) => disturb(api, &chaos).await,
    }
}

async fn simulate(api: &Client, id: &str, outcome: &str) -> Result<Value, Error> {
    let before = api.payment_by_external_transaction(id).await?;
    let body = json!({
        "applicationUUID": api.application_uuid(),
        "externalTransactionId": id,
        "outcome": outcome,
    });
    let after = api.call(Method::POST, "/sandbox/simulate", Some(&body)).await?;
    if before.status != PaymentStatus::Pending {
        output::note(format_args!("It was {} already; nothing changed.", before.status.code()));
    }
    Ok(after)
}

/// A journey with many stops takes longer than one call waits for it.
async fn travel(api: &Client, by: SignedDuration) -> Result<Value, Error> {
    let body = json!({ "advanceSeconds": by.as_secs() });
    let mut data: Value = api.call(Method::POST, "/sandbox/clock", Some(&body)).await?;
    if data["arrived"] == false {
        output::note("The sandbox is still on its way; waiting for it …");
    }
    while data["arrived"] == false {
        tokio::time::sleep(LOOK_EVERY).await;
        data = api.call(Method::GET, "/sandbox/clock", None).await?;
    }
    Ok(data)
}

async fn disturb(api: &Client, chaos: &Chaos) -> Result<Value, Error> {
    if chaos.asks_for_nothing() {
        let target = format!("/sandbox/chaos?applicationUUID={}", api.application_uuid());
        return api.call(Method::GET, &target, None).await;
    }
    let body = json!({
        "applicationUUID": api.application_uuid(),
        "duplicate": chaos.duplicate,
        "reorder": chaos.reorder,
        "delayMs": chaos.delay_ms.unwrap_or(0),
        "dropFirst": chaos.drop_first.unwrap_or(0),
        "failureRate": chaos.failure_rate.unwrap_or(0.0),
        "seed": chaos.seed.unwrap_or(0),
    });
    api.call(Method::PUT, "/sandbox/chaos", Some(&body)).await
}

/// One fact a line.
fn print(data: &Value) {
    for (name, value) in data.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output::line(format_args!("{name:24} {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_nobody_gave_is_told_as_the_default() {
        let told = |base_url: Option<&str>| {
            let base_url = base_url.map(str::to_owned);
            let merchant = MerchantArgs { base_url, publishable_key: None, client_id: None };
            merchant.explain(Error::TimedOut).to_string()
        };
        let default = "http://127.0.0.1:8080 did not answer in time (the default: SVC_BASE_URL is not set, \
                       or not exported)";
        assert_eq!([told(None), told(Some(""))], [default; 2]);
        assert_eq!(told(Some("http://127.0.0.1:9")), "http://127.0.0.1:9 did not answer in time");
    }
}
