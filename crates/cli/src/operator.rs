//! `svc operator`: who may sign in to the console. Works while the service runs and while it is stopped.

use anyhow::{Context, bail};
use secrecy::ExposeSecret;
use serde::Serialize;
use svc_service::app::App;
use svc_service::console::{self, Invited};
use svc_service::domain::{Author, ClientId, Environment, Login, PartnerId, Role};
use svc_service::store::{Person, PersonChange};
use url::Url;

use crate::arguments::one_of;
use crate::output;
use crate::settings::{DataArgs, Shown, web_address};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Add a person; prints a link that works once, with which they choose a password
    Create(Create),
    /// Print a new link for somebody who lost theirs, or their password
    Invite(Invite),
    /// List those who may sign in
    List(List),
    /// End somebody's sessions and refuse further sign-ins
    Disable(One),
    /// Allow somebody to sign in again
    Enable(One),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc operator create ana --url https://pay.example.ao
  svc operator create joao@loja.ao --partner svc_a1b2 --role developer \\
    --url https://pay.example.ao")]
pub(crate) struct Create {
    /// What they sign in with: a short name or an e-mail address
    login: String,
    /// The partner they work for, by its client id; without it they are an operator and see all
    #[arg(long, value_name = "CLIENT_ID")]
    partner: Option<String>,
    /// What they may do
    #[arg(long, default_value = "owner", value_parser = one_of(&Role::ALL, Role::as_str))]
    role: Role,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct Invite {
    login: String,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct LinkArgs {
    /// How a browser reaches the service [default: the settings' public_url, or http://127.0.0.1:8080]
    #[arg(long, env = "SVC_SERVER_PUBLIC_URL", value_parser = web_address)]
    url: Option<Url>,
}

#[derive(clap::Args)]
pub(crate) struct List {
    /// Those of a partner, by its client id, instead of operators
    #[arg(long, value_name = "CLIENT_ID")]
    partner: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct One {
    login: String,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Link<'a> {
    login: &'a str,
    url: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    login: String,
    role: &'static str,
    state: &'static str,
    created_at: String,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Create(args) => create(args).await,
        Command::Invite(args) => invite(args).await,
        Command::List(args) => list(args).await,
        Command::Disable(args) => change(args, PersonChange::Disable, "disabled").await,
        Command::Enable(args) => change(args, PersonChange::Enable, "enabled").await,
    }
}

async fn create(args: Create) -> anyhow::Result<()> {
    let login = Login::parse(&args.login)?;
    let app = args.shown.settings()?.open().await?;
    let service = args.link.service(&app)?;
    let partner = args.partner.as_deref().map(|client| partner(&app, client)).transpose()?;
    let by = Author::command_line(None);
    let invited = console::invite(&app, &login, partner, args.role, &by).await?;
    print(&service, &invited, args.shown.json);
    Ok(())
}

async fn invite(args: Invite) -> anyhow::Result<()> {
    let login = Login::parse(&args.login)?;
    let app = args.shown.settings()?.open().await?;
    let service = args.link.service(&app)?;
    let invited = console::invite_again(&app, &login, &Author::command_line(None)).await?;
    print(&service, &invited, args.shown.json);
    Ok(())
}

impl LinkArgs {
    /// Before anybody is invited: a link that leads nowhere is a link that was used up.
    fn service(self, app: &App) -> anyhow::Result<Url> {
        let known = self.url.or_else(|| app.config.public_url.clone());
        let url = known.unwrap_or_else(|| "http://127.0.0.1:8080".parse().expect("an address"));
        if app.environment == Environment::Production && url.scheme() != "https" {
            bail!("production is reached by https: say how with --url https://pay.example.ao");
        }
        Ok(url)
    }
}

fn print(service: &Url, invited: &Invited, json: bool) {
    let url = format!("{}{}", service.as_str().trim_end_matches('/'), invited.path.expose_secret());
    if json {
        output::json(&Link { login: &invited.login, url: &url });
    } else {
        output::note("Send this link; it works once, for 72 hours:");
        output::line(url);
    }
}

async fn list(args: List) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let partner = args.partner.as_deref().map(|client| partner(&app, client)).transpose()?;
    let views: Vec<_> = app.store.people(partner).await?.into_iter().map(view).collect();
    if args.shown.json {
        output::json(&views);
        return Ok(());
    }
    let rows: Vec<_> = views
        .into_iter()
        .map(|view| [view.login, view.role.to_owned(), view.state.to_owned(), view.created_at])
        .collect();
    output::table(["LOGIN", "ROLE", "STATE", "CREATED"], &rows);
    Ok(())
}

fn view(person: Person) -> View {
    View {
        role: person.role.as_str(),
        state: match (person.disabled_at, person.password_hash) {
            (Some(_), _) => "disabled",
            (None, Some(_)) => "active",
            (None, None) => "invited",
        },
        created_at: person.created_at.to_string(),
        login: person.login,
    }
}

async fn change(args: One, change: PersonChange, done: &str) -> anyhow::Result<()> {
    let login = Login::parse(&args.login)?;
    let app = args.data.settings()?.open().await?;
    let Some(person) = app.store.person_by_login(&login).await? else {
        bail!("nobody signs in as {}; svc operator list shows who does", login.as_str());
    };
    let (at, by) = (app.clock.now(), Author::command_line(None));
    app.store.change_person(&person, change, at, &by).await?;
    output::note(format_args!("{} is {done}", login.as_str()));
    Ok(())
}

fn partner(app: &App, client: &str) -> anyhow::Result<PartnerId> {
    let known = app.directory.known();
    let found = known.partner(&ClientId::parse(client.to_owned())?);
    found.map(|partner| partner.id).with_context(|| {
        format!("there is no partner {client}; svc partner list shows those there are")
    })
}
