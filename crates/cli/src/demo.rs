//! `svc demo`: a sandbox that is ready to use, with credentials and a walk to paste.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use svc_service::app::App;
use svc_service::config::Config;
use svc_service::credentials;
use svc_service::domain::ClientId;
use svc_service::server::Server;
use svc_service::store::Database;

use crate::partner::Credentials;
use crate::{output, serve};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc demo
  svc demo --listen 127.0.0.1:0 --json | head -n 1")]
pub(crate) struct Args {
    /// Where the demo keeps its database and credentials
    #[arg(long, default_value = "svc-demo", value_name = "DIR")]
    data: PathBuf,
    /// Address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    listen: SocketAddr,
    /// Print one line of JSON with the addresses and credentials when ready
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready<'a> {
    base_url: &'a str,
    sdk_url: &'a str,
    #[serde(flatten)]
    credentials: &'a Credentials,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.data)
        .with_context(|| format!("cannot make the directory {}", args.data.display()))?;
    let database = Database::Sqlite(args.data.join("svc.db"));
    let _lock = database.lock_for_service()?;
    let config = Config { private_webhook_targets: true, ..Config::sandbox(args.listen) };
    let app = App::open(config, &database).await?;
    let credentials = seeded_credentials(&app, &args.data).await?;
    let server = Server::bind(app.clone()).await?;
    let stop = serve::StopSignals::listen()?;
    let base_url = serve::base_url(&app, &server);
    if args.json {
        output::json(&Ready { base_url: &base_url, sdk_url: &base_url, credentials: &credentials });
    } else {
        output::line(summary(&base_url, &credentials, &look(&args.data)?));
    }
    serve::until_stopped(server, stop).await
}

/// What the demo wrote down when it made its partner; only this file holds the secrets.
#[derive(Serialize, Deserialize)]
struct Kept {
    credentials: Credentials,
}

/// The one partner of the demo: made on the first start, the same ever after.
async fn seeded_credentials(app: &App, data: &Path) -> anyhow::Result<Credentials> {
    let path = data.join("credentials.json");
    if let Ok(text) = std::fs::read_to_string(&path) {
        let kept: Kept = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged; remove it to start anew", path.display()))?;
        let client = ClientId::parse(kept.credentials.client_id.clone())?;
        if app.directory.known().partner(&client).is_some() {
            return Ok(kept.credentials);
        }
    }
    let credentials = Credentials::from(credentials::create_partner(app, "Demo").await?);
    let text = serde_json::to_string_pretty(&Kept { credentials: credentials.clone() })?;
    write_private(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    app.directory.refresh(&app.store).await?;
    Ok(credentials)
}

/// Readable by its owner only.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    std::io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

/// Shows the demo's webhooks from whatever directory it is pasted in.
fn look(data: &Path) -> std::io::Result<String> {
    let (program, data) = (std::env::current_exe()?, std::path::absolute(data)?);
    let database = format!("sqlite:{}", data.join("svc.db").display());
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let program = quoted(&program.display().to_string());
    Ok(format!("{program} webhook list --database {}", quoted(&database)))
}

fn summary(base_url: &str, credentials: &Credentials, look: &str) -> String {
    let Credentials { client_id, client_secret, publishable_key, application_uuid, webhook_secret } =
        credentials;
    let title = output::bold("The sandbox is ready.");
    let walk = output::bold("Paste this in another terminal:");
    format!(
        r#"{title}  {base_url}   API: {base_url}/docs   Stop: Ctrl-C

  SVC_PUBLISHABLE_KEY={publishable_key}
  SVC_CLIENT_ID={client_id}
  SVC_CLIENT_SECRET={client_secret}
  SVC_WEBHOOK_SECRET={webhook_secret}

{walk}

# 1. a token
TOKEN=$(curl -s -u '{client_id}:{client_secret}' \
  -d grant_type=client_credentials -d validity_period=3600 \
  {base_url}/token | sed 's/.*"access_token":"\([^"]*\)".*/\1/')

# 2. an order of 15,000 kwanza
ORDER=order_$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
CREATED=$(curl -s {base_url}/svcpartner/createPaymentOrder \
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d @- <<BODY
{{"externalTransactionId":"$ORDER","clientId":"user-1","applicationUUID":"{application_uuid}",
 "name":"Livro","amount":15000,"quantity":1,
 "additionalInfo":"{{\"returnUrl\":\"http://127.0.0.1:3000/ok\",\"cancelUrl\":\"http://127.0.0.1:3000/cancel\",\"webhookUrl\":\"http://127.0.0.1:3000/api/svc/webhook\"}}"}}
BODY
)
echo "$CREATED"

# 3. its state
curl -s "{base_url}/svcpartner/paymentByExternalTransaction?externalTransactionId=$ORDER&applicationUUID={application_uuid}" \
  -H "Authorization: Bearer $TOKEN"
echo

# 4. what its payer sees: open this address in a browser
echo "{base_url}/checkout/$(echo "$CREATED" | sed 's/.*"referenceNumber":"\([^"]*\)".*/\1/')?key={publishable_key}"

# 5. pay it, as a payer would
curl -s {base_url}/sandbox/simulate \
  -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d @- <<BODY
{{"externalTransactionId":"$ORDER","applicationUUID":"{application_uuid}","outcome":"confirm"}}
BODY
echo

# 6. the webhook it caused; it waits until something answers at http://127.0.0.1:3000
{look}
"#
    )
}
