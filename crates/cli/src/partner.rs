//! `svc partner`: who may call the API. Works while the service runs and while it is stopped.

use anyhow::anyhow;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use svc_service::app::App;
use svc_service::credentials::{self, Issued};
use svc_service::domain::{Author, PublishableKey, WebhookHosts};
use svc_service::store::{Application, Directory, Partner, PartnerState};

use crate::arguments::length;
use crate::output;
use crate::settings::Shown;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Create a partner with one application; its secrets are shown once
    Create(Create),
    /// List all partners
    List(List),
    /// Show one partner and its applications
    Show(One),
    /// Refuse a partner's credentials and tokens
    Disable(One),
    /// Accept a partner's credentials again
    Enable(One),
    /// Give a partner a new client secret; its tokens stop working now
    RotateSecret(Rotate),
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  svc partner create \"Loja Kianda\" --json")]
pub(crate) struct Create {
    /// The merchant's name
    name: String,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct One {
    /// The partner's client id
    client_id: String,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  svc partner rotate-secret svc_a1b2 --overlap 24h")]
pub(crate) struct Rotate {
    /// The partner's client id
    client_id: String,
    /// How long the old secret still gets tokens
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = length)]
    overlap: SignedDuration,
    #[command(flatten)]
    shown: Shown,
}

/// What a merchant puts into its environment; the keys are the same wherever we print them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credentials {
    pub client_id: String,
    pub client_secret: String,
    pub publishable_key: String,
    #[serde(rename = "applicationUUID")]
    pub application_uuid: String,
    pub webhook_secret: String,
}

impl From<Issued> for Credentials {
    fn from(issued: Issued) -> Self {
        let application = issued.application;
        Self {
            client_id: issued.client_id.as_str().to_owned(),
            client_secret: issued.client_secret.expose_secret().to_owned(),
            publishable_key: application.publishable_key.to_string(),
            application_uuid: application.publishable_key.application_uuid().as_str().to_owned(),
            webhook_secret: application.webhook_secret.expose_secret().to_owned(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartnerView {
    client_id: String,
    name: String,
    state: &'static str,
    created_at: String,
    /// Until when the secret before the present one gets tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_until: Option<String>,
    applications: Vec<ApplicationView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationView {
    #[serde(rename = "applicationUUID")]
    pub application_uuid: String,
    pub publishable_key: String,
    pub name: String,
    pub pending_event: &'static str,
    /// Where its webhooks may go, when that is not any public host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_hosts: Option<WebhookHosts>,
    pub created_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewSecret<'a> {
    client_id: &'a str,
    client_secret: &'a str,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Create(args) => create(args).await,
        Command::List(args) => list(args).await,
        Command::Show(args) => show(args).await,
        Command::Disable(args) => set_state(args, PartnerState::Disabled).await,
        Command::Enable(args) => set_state(args, PartnerState::Active).await,
        Command::RotateSecret(args) => rotate(args).await,
    }
}

async fn create(args: Create) -> anyhow::Result<()> {
    let app = args.shown.settings()?.may_create().open().await?;
    let issued = Credentials::from(credentials::create_partner(&app, &args.name).await?);
    if args.shown.json {
        output::json(&issued);
        return Ok(());
    }
    output::line(format_args!("SVC_PUBLISHABLE_KEY={}", issued.publishable_key));
    output::line(format_args!("SVC_CLIENT_ID={}", issued.client_id));
    output::line(format_args!("SVC_CLIENT_SECRET={}", issued.client_secret));
    output::line(format_args!("SVC_WEBHOOK_SECRET={}", issued.webhook_secret));
    output::note("Keep the two secrets now: they are not shown again.");
    Ok(())
}

async fn list(args: List) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let directory = app.store.directory().await?;
    let views: Vec<_> =
        directory.partners.iter().map(|partner| view(&app, &directory, partner)).collect();
    if args.shown.json {
        output::json(&views);
        return Ok(());
    }
    let rows: Vec<_> = views
        .into_iter()
        .map(|v| {
            [v.client_id, v.name, v.state.into(), v.applications.len().to_string(), v.created_at]
        })
        .collect();
    output::table(["CLIENT ID", "NAME", "STATE", "APPLICATIONS", "CREATED"], &rows);
    Ok(())
}

async fn show(args: One) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    print_one(&app, &args.client_id, args.shown.json).await
}

async fn set_state(args: One, state: PartnerState) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let client = known(&app.store.directory().await?, &args.client_id)?.client_id.clone();
    app.store
        .set_partner_state(&client, state, app.clock.now(), &Author::command_line(None))
        .await?;
    print_one(&app, &args.client_id, args.shown.json).await
}

async fn rotate(args: Rotate) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let directory = app.store.directory().await?;
    let partner = known(&directory, &args.client_id)?;
    let (client, older) = (partner.client_id.clone(), old_secret(&app, partner));
    let by = Author::command_line(None);
    let secret = credentials::rotate_client_secret(&app, &client, args.overlap, true, &by).await?;
    let secret = secret.ok_or_else(|| unknown(&args.client_id))?;
    if args.shown.json {
        output::json(&NewSecret {
            client_id: &args.client_id,
            client_secret: secret.expose_secret(),
        });
        return Ok(());
    }
    output::line(format_args!("SVC_CLIENT_SECRET={}", secret.expose_secret()));
    if args.overlap.is_zero() {
        output::note("The old secret and the tokens issued so far stop working within a second.");
    } else {
        output::note(format_args!(
            "The old secret gets tokens for another {:#}; tokens issued so far stop within a second.",
            args.overlap
        ));
    }
    if let Some(until) = older {
        output::note(format_args!(
            "The secret before that one, which would have worked until {until}, stops working now."
        ));
    }
    Ok(())
}

/// Until when a secret that was replaced still gets tokens.
fn old_secret(app: &App, partner: &Partner) -> Option<Timestamp> {
    let (_, until) = partner.previous_secret.as_ref()?;
    let works = partner.state == PartnerState::Active && *until > app.clock.now();
    works.then_some(*until)
}

async fn print_one(app: &App, client_id: &str, json: bool) -> anyhow::Result<()> {
    let directory = app.store.directory().await?;
    let partner = known(&directory, client_id)?;
    let view = view(app, &directory, partner);
    if json {
        output::json(&view);
        return Ok(());
    }
    output::line(format_args!("{}  {}  {}", view.client_id, view.name, view.state));
    if let Some(until) = &view.previous_secret_until {
        output::line(format_args!("  an old secret gets tokens until {until}"));
    }
    for application in view.applications {
        output::line(format_args!("  {}  {}", application.publishable_key, application.name));
    }
    Ok(())
}

pub(crate) fn known<'a>(directory: &'a Directory, client_id: &str) -> anyhow::Result<&'a Partner> {
    let found = directory.partners.iter().find(|partner| partner.client_id.as_str() == client_id);
    found.ok_or_else(|| unknown(client_id))
}

fn unknown(client_id: &str) -> anyhow::Error {
    anyhow!("there is no partner {client_id}; svc partner list shows all")
}

fn view(app: &App, directory: &Directory, partner: &Partner) -> PartnerView {
    PartnerView {
        client_id: partner.client_id.as_str().to_owned(),
        name: partner.name.clone(),
        state: partner.state.as_str(),
        created_at: partner.created_at.to_string(),
        previous_secret_until: old_secret(app, partner).map(|until| until.to_string()),
        applications: directory
            .applications
            .iter()
            .filter(|application| application.partner == partner.id)
            .map(|application| application_view(app, application))
            .collect(),
    }
}

pub(crate) fn application_view(app: &App, application: &Application) -> ApplicationView {
    let key = PublishableKey::new(app.environment, application.uuid.clone());
    ApplicationView {
        application_uuid: application.uuid.as_str().to_owned(),
        publishable_key: key.to_string(),
        name: application.name.clone(),
        pending_event: application.pending_event.as_str(),
        webhook_hosts: application.webhook_hosts.clone(),
        created_at: application.created_at.to_string(),
    }
}
