//! `svc merchant`: the reference shop alone, against any service.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use secrecy::SecretString;
use serde::Serialize;
use svc_merchant::{Clock, Limits, Server, Settings, Shop};

use crate::output;
use crate::serve::StopSignals;
use crate::settings::listen_address;

#[derive(clap::Args)]
#[command(after_help = "Example:
  SVC_PUBLISHABLE_KEY=pk_test_… SVC_CLIENT_ID=… \\
  SVC_CLIENT_SECRET=… SVC_WEBHOOK_SECRET=… \\
    svc merchant --base-url http://127.0.0.1:8080

The secrets are read from the variables SVC_CLIENT_SECRET, SVC_WEBHOOK_SECRET
and SVC_WEBHOOK_SECRET_PREVIOUS only.")]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDR", value_parser = listen_address)]
    listen: SocketAddr,
    /// Where the shop keeps its orders
    #[arg(long, default_value = "svc-shop", value_name = "DIR")]
    data: PathBuf,
    /// Address of the service [default: http://127.0.0.1:8080]
    #[arg(long, env = "SVC_BASE_URL", value_name = "URL")]
    base_url: Option<String>,
    /// Where the SDK is loaded from [default: the service]
    #[arg(long, env = "SVC_SDK_URL", value_name = "URL")]
    sdk_url: Option<String>,
    /// How payers and the service reach the shop [default: the address it is called by]
    #[arg(long, env = "SVC_SHOP_URL", value_name = "URL")]
    public_url: Option<String>,
    /// Print one line of JSON with the shop's address when ready
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    shop_url: String,
}

const BASE_URL_DEFAULT: &str = "http://127.0.0.1:8080";

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let settings = settings(&args);
    // Before anything is made: a refused start must leave nothing behind.
    settings.check()?;
    std::fs::create_dir_all(&args.data)
        .with_context(|| format!("cannot make the directory {}", args.data.display()))?;
    let shop = Shop::open(settings)?;
    let server = bind(shop, args.listen).await?;
    let shop_url = format!("http://{}", server.address());
    let stop = StopSignals::listen()?;
    if args.json {
        output::json(&Ready { shop_url });
    } else {
        output::line(format_args!("The shop is open: {shop_url}"));
    }
    server.run(stop.received()).await;
    Ok(())
}

/// An empty value counts as none, as `.env.example` has them.
fn settings(args: &Args) -> Settings {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let given = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    let base_url = given(&args.base_url).unwrap_or_else(|| BASE_URL_DEFAULT.to_owned());
    let previous = given(&Some(text("SVC_WEBHOOK_SECRET_PREVIOUS")));
    Settings {
        sdk_url: given(&args.sdk_url).unwrap_or_else(|| base_url.clone()),
        base_url,
        publishable_key: text("SVC_PUBLISHABLE_KEY"),
        client_id: text("SVC_CLIENT_ID"),
        client_secret: text("SVC_CLIENT_SECRET").into(),
        webhook_secret: text("SVC_WEBHOOK_SECRET").into(),
        webhook_secret_previous: previous.map(SecretString::from),
        public_url: given(&args.public_url),
        database: args.data.join("shop.db"),
        clock: Clock::system(),
        limits: Limits::default(),
    }
}

pub(crate) async fn bind(shop: Shop, listen: SocketAddr) -> anyhow::Result<Server> {
    let refused = || {
        format!(
            "the shop cannot listen on {listen}; give another --listen (svc demo: --shop-listen)"
        )
    };
    Server::bind(shop, listen).await.with_context(refused)
}
