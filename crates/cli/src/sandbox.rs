//! `svc sandbox`: what POST /sandbox/… does, from the shell, with the merchant's `SVC_…` variables.

use std::time::Duration;

use hyper::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use anyhow::anyhow;
use secrecy::SecretString;
use svc_client::{Client, Credentials};

use crate::arguments::length;
use crate::output;

#[derive(clap::Args)]
#[command(after_help = "Examples (with the variables svc demo prints):
  svc sandbox confirm order_6f9619ff-…      the payer pays
  svc sandbox clock --advance 24h           a day passes, with all that falls due in it
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
    /// Address of the service
    #[arg(
        long,
        visible_alias = "server",
        env = "SVC_BASE_URL",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL",
        global = true
    )]
    pub base_url: String,
    /// The application's publishable key
    #[arg(long, env = "SVC_PUBLISHABLE_KEY", value_name = "KEY", global = true)]
    publishable_key: Option<String>,
    /// The partner's client id
    #[arg(long, env = "SVC_CLIENT_ID", value_name = "ID", global = true)]
    client_id: Option<String>,
}

/// How often a sandbox that moves is asked whether it has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// No flag: anyone on the machine can list those.
const CLIENT_SECRET: &str = "SVC_CLIENT_SECRET";

impl MerchantArgs {
    pub(crate) fn is_live(&self) -> bool {
        self.publishable_key.as_ref().is_some_and(|key| key.starts_with("pk_live_"))
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let missing = |name: &str| anyhow!("{name} is not set; svc demo prints the variables");
        let key = self.publishable_key.clone().ok_or_else(|| missing("SVC_PUBLISHABLE_KEY"))?;
        let client_id = self.client_id.clone().ok_or_else(|| missing("SVC_CLIENT_ID"))?;
        let secret = std::env::var(CLIENT_SECRET).map_err(|_| missing(CLIENT_SECRET))?;
        let client_secret = SecretString::from(secret);
        let credentials = Credentials { publishable_key: key, client_id, client_secret };
        Ok(Client::new(&self.base_url, credentials)?.speaking("en"))
    }
}

#[derive(clap::Subcommand)]
enum Command {
    /// The payer pays the order
    Confirm(Order),
    /// An attempt to pay it is refused; the order stays pending
    Decline(Order),
    /// A bank reference is issued for it
    Pending(Order),
    /// The payer gives up
    Cancel(Order),
    /// Its deadline passes
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
    #[arg(long, value_name = "TIME", value_parser = length, allow_hyphen_values = true)]
    advance: Option<SignedDuration>,
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
    let data = match args.command {
        Command::Confirm(order) => simulate(&api, &order.order, "confirm").await?,
        Command::Decline(order) => simulate(&api, &order.order, "decline").await?,
        Command::Pending(order) => simulate(&api, &order.order, "pending").await?,
        Command::Cancel(order) => simulate(&api, &order.order, "cancel").await?,
        Command::Expire(order) => simulate(&api, &order.order, "expire").await?,
        Command::Clock(Clock { advance: None }) => {
            api.call(Method::GET, "/sandbox/clock", None).await?
        }
        Command::Clock(Clock { advance: Some(by) }) => travel(&api, by).await?,
        Command::Chaos(chaos) => disturb(&api, &chaos).await?,
    };
    if args.json {
        output::json(&data);
    } else {
        print(&data);
    }
    Ok(())
}

async fn simulate(api: &Client, order: &str, outcome: &str) -> anyhow::Result<Value> {
    let body = json!({
        "applicationUUID": api.application_uuid(),
        "externalTransactionId": order,
        "outcome": outcome,
    });
    Ok(api.call(Method::POST, "/sandbox/simulate", Some(&body)).await?)
}

/// A journey with many stops takes longer than one call waits for it.
async fn travel(api: &Client, by: SignedDuration) -> anyhow::Result<Value> {
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

async fn disturb(api: &Client, chaos: &Chaos) -> anyhow::Result<Value> {
    if chaos.asks_for_nothing() {
        let target = format!("/sandbox/chaos?applicationUUID={}", api.application_uuid());
        return Ok(api.call(Method::GET, &target, None).await?);
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
    Ok(api.call(Method::PUT, "/sandbox/chaos", Some(&body)).await?)
}

/// One fact a line.
fn print(data: &Value) {
    for (name, value) in data.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output::line(format_args!("{name:24} {text}"));
    }
}
