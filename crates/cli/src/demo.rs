//! `svc demo`: a sandbox and a shop that are ready to use, with credentials and a walk to paste.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use svc_service::app::App;
use svc_service::config::{Config, Limits};
use svc_service::domain::{ApplicationUuid, Author, ClientId, Login, Role};
use svc_service::server::Server;
use svc_service::store::Database;
use svc_service::{console, credentials};

use svc_merchant::{Clock, Settings, Shop};

use crate::partner::Credentials;
use crate::settings::listen_address;
use crate::{merchant, output, serve};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc demo
  svc demo --listen 127.0.0.1:0 --json > demo.json &")]
pub(crate) struct Args {
    /// Where the demo keeps its database and credentials
    #[arg(long, default_value = "svc-demo", value_name = "DIR")]
    data: PathBuf,
    /// Address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR", value_parser = listen_address)]
    listen: SocketAddr,
    /// Address of the shop [default: 127.0.0.1:3000, or a free port if that is taken]
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    shop_listen: Option<SocketAddr>,
    /// Status requests of one order's checkout page per second before 429; raise it for tests with a fast clock
    #[arg(long, default_value_t = Limits::default().checkout_polls_per_second, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    checkout_polls_per_second: u32,
    /// Print one line of JSON with the addresses and credentials when ready
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready<'a> {
    base_url: &'a str,
    sdk_url: &'a str,
    shop_url: &'a str,
    console_url: &'a str,
    #[serde(flatten)]
    credentials: &'a Credentials,
    /// While the webhook secret is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret_previous: Option<&'a str>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.data).with_context(|| {
        format!("cannot make the folder {}; --data names another", args.data.display())
    })?;
    let database = Database::Sqlite(args.data.join("svc.db"));
    let _lock = database.lock_for_service().with_context(|| {
        let other = "a second demo needs a --data and a --listen of its own";
        format!("no demo can begin in {}; {other}", args.data.display())
    })?;
    let checkout_polls_per_second = args.checkout_polls_per_second;
    let config = Config {
        private_webhook_targets: true,
        limits: Limits { checkout_polls_per_second, ..Limits::default() },
        ..Config::sandbox(args.listen)
    };
    let app = App::open(config, &database).await?;
    let (credentials, previous) = seeded_credentials(&app, &args.data).await?;
    let previous = previous.as_deref();
    let server = Server::bind(app.clone()).await?;
    let base_url = app.config.base_url(server.address());
    let shop = open_shop(shop(&base_url, &credentials, previous, &args.data)?, &args).await?;
    let shop_url = format!("http://{}", shop.address());
    let console_url = format!("{base_url}{}", console_entry(&app).await?.expose_secret());
    let stop = serve::StopSignals::listen()?;
    let ahead = app.store.clock_ahead().await?;
    if !ahead.is_zero() {
        output::note(format_args!(
            "The clock of this sandbox was moved ahead by {ahead:#} and stays there; remove {} to begin anew.",
            args.data.display()
        ));
    }
    let variables = variables(&base_url, &credentials, previous);
    let file = keep_variables(&args.data, &variables)?;
    if args.json {
        output::json(&Ready {
            base_url: &base_url,
            sdk_url: &base_url,
            shop_url: &shop_url,
            console_url: &console_url,
            credentials: &credentials,
            webhook_secret_previous: previous,
        });
    } else {
        let urls = [&*base_url, &shop_url, &console_url];
        output::line(summary(urls, &credentials, &variables, &file));
    }
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    let shop = tokio::spawn(shop.run(async {
        let _ = closed.await;
    }));
    let ended = serve::until_stopped(server, stop).await;
    drop(close);
    let _ = shop.await;
    ended
}

/// A link that signs in the demo's operator; each start has its own.
async fn console_entry(app: &App) -> anyhow::Result<SecretString> {
    let login = Login::parse("demo")?;
    if app.store.person_by_login(&login).await?.is_none() {
        console::invite(app, &login, None, Role::Owner, &Author::command_line(None)).await?;
    }
    Ok(console::entry(app, &login, &Author::command_line(None)).await?.path)
}

/// Where it was asked for; else where newcomers look for it; else wherever there is room.
async fn open_shop(shop: Shop, args: &Args) -> anyhow::Result<svc_merchant::Server> {
    if let Some(listen) = args.shop_listen {
        return merchant::bind(shop, listen).await;
    }
    let usual = SocketAddr::from(([127, 0, 0, 1], if args.listen.port() == 0 { 0 } else { 3000 }));
    match merchant::bind(shop.clone(), usual).await {
        Ok(server) => Ok(server),
        Err(_) => {
            output::note(format_args!(
                "{usual} is taken: the shop opens elsewhere; --shop-listen chooses where."
            ));
            merchant::bind(shop, ([127, 0, 0, 1], 0).into()).await
        }
    }
}

/// The shop of the demo: a merchant like any other, with the demo's credentials.
fn shop(
    base_url: &str,
    credentials: &Credentials,
    previous: Option<&str>,
    data: &Path,
) -> anyhow::Result<Shop> {
    Ok(Shop::open(Settings {
        base_url: base_url.to_owned(),
        sdk_url: base_url.to_owned(),
        publishable_key: credentials.publishable_key.clone(),
        client_id: credentials.client_id.clone(),
        client_secret: credentials.client_secret.clone().into(),
        webhook_secret: credentials.webhook_secret.clone().into(),
        webhook_secret_previous: previous.map(|secret| secret.to_owned().into()),
        public_url: None,
        database: data.join("shop.db"),
        clock: Clock::system(),
        limits: svc_merchant::Limits::default(),
    })?)
}

/// What the demo wrote down when it made its partner.
#[derive(Serialize, Deserialize)]
struct Kept {
    credentials: Credentials,
}

/// The one partner of the demo: made on the first start, the same ever after. With it the webhook
/// secret that is on its way out, if one is.
async fn seeded_credentials(
    app: &App,
    data: &Path,
) -> anyhow::Result<(Credentials, Option<String>)> {
    let path = data.join("credentials.json");
    if let Ok(text) = std::fs::read_to_string(&path) {
        let kept: Kept = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged; remove it to start anew", path.display()))?;
        if let Some((present, previous)) = present(app, &kept.credentials, &path)? {
            if present.webhook_secret != kept.credentials.webhook_secret {
                keep(&path, &present)?;
            }
            return Ok((present, previous));
        }
    }
    let credentials = Credentials::from(credentials::create_partner(app, "Loja Kianda").await?);
    keep(&path, &credentials)?;
    app.directory.refresh(&app.store).await?;
    Ok((credentials, None))
}

/// The credentials as they are now: secrets may have been rotated since they were written down.
fn present(
    app: &App,
    kept: &Credentials,
    path: &Path,
) -> anyhow::Result<Option<(Credentials, Option<String>)>> {
    let (known, now) = (app.directory.known(), app.clock.now());
    let client = ClientId::parse(kept.client_id.clone())?;
    let uuid = ApplicationUuid::parse(kept.application_uuid.clone())?;
    let (Some(partner), Some(application)) = (known.partner(&client), known.application(&uuid))
    else {
        return Ok(None);
    };
    let old = partner.previous_secret.as_ref().filter(|(_, until)| now < *until);
    let hashes = [Some(&partner.secret_hash), old.map(|(hash, _)| hash)];
    // Only its hash is stored, so the new one cannot be looked up.
    if !hashes.into_iter().flatten().any(|hash| app.keys.matches(hash, &kept.client_secret)) {
        bail!(
            "the demo's client secret was rotated: write the new one into {} as clientSecret, or \
             remove that file to start with a new partner",
            path.display()
        );
    }
    let secret = |sealed: &[u8]| app.keys.open(sealed).map(|secret| secret.expose_secret().into());
    let previous = application.previous_webhook_secret.as_ref().filter(|old| now < old.until);
    let previous = previous.map(|old| secret(&old.sealed)).transpose()?;
    let webhook_secret = secret(&application.webhook_secret)?;
    Ok(Some((Credentials { webhook_secret, ..kept.clone() }, previous)))
}

fn keep(path: &Path, credentials: &Credentials) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&Kept { credentials: credentials.clone() })?;
    write_private(path, &text).with_context(|| format!("cannot write {}", path.display()))
}

/// Readable by its owner only.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    std::io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

/// What a merchant's backend and the commands of this program read.
fn variables(
    base_url: &str,
    credentials: &Credentials,
    previous: Option<&str>,
) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("SVC_BASE_URL", base_url.to_owned()),
        ("SVC_SDK_URL", base_url.to_owned()),
        ("SVC_PUBLISHABLE_KEY", credentials.publishable_key.clone()),
        ("SVC_CLIENT_ID", credentials.client_id.clone()),
        ("SVC_CLIENT_SECRET", credentials.client_secret.clone()),
        ("SVC_WEBHOOK_SECRET", credentials.webhook_secret.clone()),
    ];
    variables.extend(previous.map(|secret| ("SVC_WEBHOOK_SECRET_PREVIOUS", secret.to_owned())));
    variables
}

/// For a shell to read, from whatever folder: the variables, and with them `svc` finds itself and the demo's
/// database.
fn keep_variables(data: &Path, variables: &[(&str, String)]) -> anyhow::Result<String> {
    let (program, data) = (std::env::current_exe()?, std::path::absolute(data)?);
    let mut text = String::new();
    for (name, value) in variables {
        text += &format!("export {name}={}\n", quoted(value));
    }
    let database = format!("sqlite:{}", data.join("svc.db").display());
    text += &format!("export SVC_SERVER_DATABASE={}\n", quoted(&database));
    if let Some(folder) = program.parent() {
        text += &format!("export PATH={}:\"$PATH\"\n", quoted(&folder.display().to_string()));
    }
    let path = data.join("env");
    write_private(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(quoted(&path.display().to_string()))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn summary(
    [base_url, shop_url, console_url]: [&str; 3],
    credentials: &Credentials,
    variables: &[(&str, String)],
    file: &str,
) -> String {
    let Credentials { client_id, client_secret, publishable_key, application_uuid, .. } =
        credentials;
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| format!("  {name}={value}")).collect();
    let variables = variables.join("\n");
    let title = output::bold("The sandbox is ready.");
    let walk = output::bold("Paste this in another terminal:");
    format!(
        r#"{title}  {base_url}   API: {base_url}/docs   Stop: Ctrl-C

  Buy something:  {shop_url}
  Try the button: {base_url}/sdks/playground
  See it happen:  {console_url}
  Phone numbers:  900000000 pays, 900002001 has no money, 900003000 refuses; more in docs/sandbox.md
  Reference:      pay it at {base_url}/sandbox/atm

{variables}

{walk}

# 0. these variables, and svc, for this terminal
. {file}

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
 "additionalInfo":"{{\"returnUrl\":\"{shop_url}/success\",\"cancelUrl\":\"{shop_url}/cancelled\",\"webhookUrl\":\"{shop_url}/api/svc/webhook\"}}"}}
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

# 6. a moment later: the webhook it caused. The shop took it, and says in the other terminal that this order was not
#    made there
sleep 1
svc webhook list
"#
    )
}
