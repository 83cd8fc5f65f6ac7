//! `svc application`: a partner's publishable keys and webhook secrets.

use anyhow::anyhow;
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use serde::Serialize;
use svc_service::credentials::{self, Takeover};
use svc_service::domain::{ApplicationId, ApplicationUuid, Author, PublishableKey, WebhookHosts};
use svc_service::store::{Application, Directory, PendingEvent};

use crate::arguments::{By, length};
use crate::output;
use crate::partner::{ApplicationView, application_view, known};
use crate::settings::Shown;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create another application for a partner; its webhook secret is shown once
    Create(Create),
    /// List all applications
    List(List),
    /// Show or say where an application's webhooks may go
    WebhookHosts(Hosts),
    /// Give an application a new webhook secret
    RotateWebhookSecret(Rotate),
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  svc application create \"Loja online\" --partner svc_a1b2")]
pub(crate) struct Create {
    /// What the application is called
    name: String,
    /// The partner's client id
    #[arg(long, value_name = "CLIENT_ID")]
    partner: String,
    /// When the PEN event is sent
    #[arg(long, value_enum, default_value = "instrument")]
    pending_event: PendingEventArg,
    #[command(flatten)]
    shown: Shown,
}

/// When an application hears of PEN.
#[derive(Clone, Copy, clap::ValueEnum)]
enum PendingEventArg {
    /// With the first live instrument (a wallet request, a code or a bank reference)
    Instrument,
    /// When the order is created
    Creation,
    /// Not at all
    Never,
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  # normal: both secrets for a day
  svc application rotate-webhook-secret pk_test_0b6f…
  # it leaked
  svc application rotate-webhook-secret pk_test_0b6f… --switch-after 0s \\
    --overlap 0s")]
pub(crate) struct Rotate {
    /// The applicationUUID or the publishable key
    application: String,
    /// When x-svc-content-token changes over to the new secret
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = length)]
    switch_after: SignedDuration,
    /// How long webhook-signature carries the old secret's signature beside the new one's
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = length)]
    overlap: SignedDuration,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  # shows them
  svc application webhook-hosts pk_live_0b6f…
  # to these and no others, from now on
  svc application webhook-hosts pk_live_0b6f… loja.ao api.loja.ao
  # to any public host again
  svc application webhook-hosts pk_live_0b6f… --any")]
pub(crate) struct Hosts {
    /// The applicationUUID or the publishable key
    application: String,
    /// Instead of those that were named before: a name or an address, without https://, port and path
    #[arg(value_name = "HOST", conflicts_with = "any")]
    hosts: Vec<String>,
    /// To any public host
    #[arg(long)]
    any: bool,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(flatten)]
    application: ApplicationView,
    /// What its partner is called.
    partner: String,
    client_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewApplication<'a> {
    publishable_key: String,
    #[serde(rename = "applicationUUID")]
    application_uuid: &'a str,
    webhook_secret: &'a str,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Create(args) => create(args).await,
        Command::List(args) => list(args).await,
        Command::WebhookHosts(args) => webhook_hosts(args).await,
        Command::RotateWebhookSecret(args) => rotate(args).await,
    }
}

async fn create(args: Create) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let partner = known(&app.store.directory().await?, &args.partner)?.client_id.clone();
    let pending_event = match args.pending_event {
        PendingEventArg::Instrument => PendingEvent::Instrument,
        PendingEventArg::Creation => PendingEvent::Creation,
        PendingEventArg::Never => PendingEvent::Never,
    };
    let issued = credentials::create_application(&app, &partner, &args.name, pending_event).await?;
    print(args.shown.json, &issued.publishable_key, issued.webhook_secret.expose_secret());
    Ok(())
}

async fn list(args: List) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let directory = app.store.directory().await?;
    let listed = directory.applications.iter().map(|application| {
        let partner = directory.partners.iter().find(|partner| partner.id == application.partner);
        let (partner, client_id) = partner
            .map(|found| (found.name.clone(), found.client_id.as_str().to_owned()))
            .unwrap_or_default();
        Listed { application: application_view(&app, application), partner, client_id }
    });
    let listed: Vec<_> = listed.collect();
    if args.shown.json {
        output::json(&listed);
        return Ok(());
    }
    let rows: Vec<_> = listed
        .into_iter()
        .map(|Listed { application: a, partner, .. }| {
            [a.publishable_key, a.name, partner, a.pending_event.into(), a.created_at]
        })
        .collect();
    output::table(["PUBLISHABLE KEY", "NAME", "PARTNER", "PEN EVENT", "CREATED"], &rows);
    Ok(())
}

async fn webhook_hosts(args: Hosts) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let directory = app.store.directory().await?;
    let application = known_application(&directory, &args.application)?;
    let mut hosts = application.webhook_hosts.clone();
    if args.any || !args.hosts.is_empty() {
        hosts = (!args.any).then(|| WebhookHosts::parse(&args.hosts)).transpose()?;
        let (at, by) = (app.clock.now(), args.by.author());
        app.store.set_webhook_hosts(&application.uuid, hosts.as_ref(), at, &by).await?;
    }
    match hosts {
        hosts if args.shown.json => output::json(&serde_json::json!({ "webhookHosts": hosts })),
        Some(hosts) => output::line(hosts),
        None => output::line("any public host"),
    }
    Ok(())
}

async fn rotate(args: Rotate) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let directory = app.store.directory().await?;
    let application = known_application(&directory, &args.application)?;
    let uuid = application.uuid.clone();
    // One that never signed alone is not the old one.
    let now = app.clock.now();
    let before = application.previous_webhook_secret.as_ref();
    let skipped = before.is_some_and(|before| before.switch_at > now);
    let takeover = Takeover { switch_after: args.switch_after, overlap: args.overlap };
    let secret =
        credentials::rotate_webhook_secret(&app, &uuid, takeover, &Author::command_line(None))
            .await?;
    print(args.shown.json, &PublishableKey::new(app.environment, uuid), secret.expose_secret());
    if args.overlap.is_zero() {
        output::note("From now on everything is signed with this secret alone.");
        return Ok(());
    }
    let (switch, end) = (now.checked_add(args.switch_after)?, now.checked_add(args.overlap)?);
    if skipped {
        output::note(
            "The secret that was given out last had not taken over yet and never will: forget it. The old one is still \
             the one before it.",
        );
    }
    output::note(format_args!(
        "x-svc-content-token is signed with the old secret until {switch:.0}: keep that one as \
         SVC_WEBHOOK_SECRET_PREVIOUS until {end:.0}."
    ));
    Ok(())
}

/// People copy the key or the id, whichever they see.
fn application_uuid(text: &str) -> anyhow::Result<ApplicationUuid> {
    match PublishableKey::parse(text) {
        Some(key) => Ok(key.application_uuid().clone()),
        None => ApplicationUuid::parse(text.to_owned())
            .map_err(|issue| anyhow!("the application id {issue}")),
    }
}

pub(crate) fn application_id(directory: &Directory, text: &str) -> anyhow::Result<ApplicationId> {
    Ok(known_application(directory, text)?.id)
}

fn known_application<'a>(directory: &'a Directory, text: &str) -> anyhow::Result<&'a Application> {
    let uuid = application_uuid(text)?;
    let found = directory.applications.iter().find(|found| found.uuid == uuid);
    found.ok_or_else(|| anyhow!("there is no application {text}; svc application list shows all"))
}

fn print(json: bool, key: &PublishableKey, webhook_secret: &str) {
    if json {
        output::json(&NewApplication {
            publishable_key: key.to_string(),
            application_uuid: key.application_uuid().as_str(),
            webhook_secret,
        });
        return;
    }
    output::line(format_args!("SVC_PUBLISHABLE_KEY={key}"));
    output::line(format_args!("SVC_WEBHOOK_SECRET={webhook_secret}"));
    output::note("Keep the secret now: it is not shown again.");
}
