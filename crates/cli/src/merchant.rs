//! `svc merchant`: the reference shop alone, against any service.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use secrecy::SecretString;
use serde::Serialize;
use svc_merchant::{Server, Settings, Shop};

use crate::output;
use crate::serve::StopSignals;

#[derive(clap::Args)]
#[command(after_help = "Example:
  SVC_PUBLISHABLE_KEY=pk_test_… SVC_CLIENT_ID=… SVC_CLIENT_SECRET=… SVC_WEBHOOK_SECRET=… \\
    svc merchant --base-url http://127.0.0.1:8080

The secrets are read from the variables SVC_CLIENT_SECRET, SVC_WEBHOOK_SECRET and
SVC_WEBHOOK_SECRET_PREVIOUS only.")]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDR")]
    listen: SocketAddr,
    /// Where the shop keeps its orders
    #[arg(long, default_value = "svc-shop", value_name = "DIR")]
    data: PathBuf,
    /// Address of the service
    #[arg(long, env = "SVC_BASE_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    base_url: String,
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

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let previous = Some(text("SVC_WEBHOOK_SECRET_PREVIOUS")).filter(|secret| !secret.is_empty());
    std::fs::create_dir_all(&args.data)
        .with_context(|| format!("cannot make the directory {}", args.data.display()))?;
    let shop = Shop::open(Settings {
        sdk_url: args.sdk_url.unwrap_or_else(|| args.base_url.clone()),
        base_url: args.base_url,
        publishable_key: text("SVC_PUBLISHABLE_KEY"),
        client_id: text("SVC_CLIENT_ID"),
        client_secret: text("SVC_CLIENT_SECRET").into(),
        webhook_secret: text("SVC_WEBHOOK_SECRET").into(),
        webhook_secret_previous: previous.map(SecretString::from),
        public_url: args.public_url,
        database: args.data.join("shop.db"),
    })?;
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

pub(crate) async fn bind(shop: Shop, listen: SocketAddr) -> anyhow::Result<Server> {
    let refused = || format!("the shop cannot listen on {listen}; choose another address");
    Server::bind(shop, listen).await.with_context(refused)
}
