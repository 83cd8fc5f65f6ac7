//! `svc seed`: fills a sandbox with a believable month of orders, through the real engine.
//!
//! The clock stands a month ago and is led to the present; what is stored is what the service would have
//! stored. Webhooks go to a server of the command itself.

mod dice;
mod journey;
mod receiver;
mod shops;
mod stories;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use svc_service::app::{App, Clock};
use svc_service::config::{Config, WebhookConfig};
use svc_service::credentials;
use svc_service::domain::{Environment, Status};
use svc_service::store::{Application, EventFilter, EventState, ExceptionFilter};
use svc_service::webhook::Dispatcher;

use crate::output;
use crate::settings::{DataArgs, Settings};
use journey::Journey;
use receiver::Receiver;
use shops::SHOPS;
use stories::{DAYS, Story};

/// A service looks at the clock twice a second; three times that shows whether there is one.
const SERVICE_SHOWS_WITHIN: Duration = Duration::from_millis(1_500);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc seed --database sqlite:demo.db
  svc seed --database sqlite:svc-demo/svc.db --orders 1000 --seed-number 7

Only for a sandbox, and while no service runs on it. The same number tells
the same stories; ids and reference numbers are drawn anew. Nobody outside is
called.")]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,
    /// How many orders
    #[arg(long, default_value_t = 400, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    orders: u32,
    /// The same number makes the same orders again, another number other ones
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed_number: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Seeded {
    orders: usize,
    paid: usize,
    cancelled: usize,
    pending: usize,
    exceptions: usize,
    exceptions_open: usize,
    webhooks_delivered: usize,
    webhooks_waiting: usize,
    shops: Vec<&'static str>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let settings = args.data.settings()?.may_create();
    refuse_production(&settings).await?;
    let Settings { config, database, .. } = settings;
    let _lock = database
        .lock_for_service()
        .context("svc seed cannot run while a service runs on this database")?;
    let real_now = Clock::system().now();
    let month = SignedDuration::from_hours(DAYS * 24);
    let app = App::open_at(own(config), &database, Clock::standing(real_now - month)).await?;
    // A sandbox that was moved ahead has its own present.
    let begin = app.clock.now();
    let end = begin.saturating_add(month)?;
    refuse_unfinished(&app, end).await?;
    let receiver = Receiver::bind().await?;
    let shops = open_shops(&app, &receiver).await?;
    let answering = tokio::spawn(receiver.run(app.clone(), receiver::illness(begin, end)));
    let stories = stories::stories(args.orders as usize, args.seed_number);
    let mut journey = Journey {
        dispatcher: Dispatcher::new(app.clone())?,
        orders: vec![None; stories.len() + 1],
        next_webhook: None,
        shops,
        app,
    };
    refuse_company(&mut journey, &stories).await?;
    journey.travel(&stories, begin, end).await?;
    answering.abort();
    report(&journey, args.json).await
}

/// As in the settings, but nothing of it leads outside: no connector, no name server, and webhooks to
/// this machine only.
fn own(config: Config) -> Config {
    Config {
        private_webhook_targets: true,
        rails: Vec::new(),
        webhooks: WebhookConfig::default(),
        ..config
    }
}

async fn refuse_production(settings: &Settings) -> anyhow::Result<()> {
    const REFUSED: &str = "svc seed makes orders up: it is for a sandbox, never for production";
    if settings.config.environment == Some(Environment::Production) {
        bail!(REFUSED);
    }
    if settings.open_store().await?.environment() == Environment::Production {
        bail!(REFUSED);
    }
    Ok(())
}

/// What waits in this sandbox would be done now, at a time in the past, and sent to whoever it is for.
async fn refuse_unfinished(app: &App, end: Timestamp) -> anyhow::Result<()> {
    let waiting = app.store.lanes(None, 1).await?;
    if let Some(found) = waiting.first() {
        bail!(
            "webhooks wait in this sandbox for {}; let svc serve deliver them, or seed a new database",
            found.lane.origin
        );
    }
    if !app.store.due(end, 1).await?.is_empty() {
        bail!(
            "orders of this sandbox have overdue deadlines or payments; let svc serve do them, or seed a new database"
        );
    }
    Ok(())
}

/// On PostgreSQL no lock tells of a service. But an order whose time was up a month ago does not live
/// long where there is one.
async fn refuse_company(journey: &mut Journey, stories: &[Story]) -> anyhow::Result<()> {
    if journey.app.store.engine_name() != "postgres" {
        return Ok(());
    }
    let (last, first) = (stories.len(), stories.first().context("there is a story")?);
    let bait = Story {
        external_transaction_id: format!("{}-0", first.external_transaction_id),
        acts: Vec::new(),
        payer: first.payer.clone(),
        ..*first
    };
    journey.create(last, &bait).await?;
    tokio::time::sleep(SERVICE_SHOWS_WITHIN).await;
    let reference = journey.orders[last].as_ref().context("it was made")?;
    let dossier = journey.app.store.dossier(reference).await?;
    let untouched = dossier.is_some_and(|dossier| {
        dossier.closing_since.is_none() && dossier.order.status == Status::Pending
    });
    if !untouched {
        bail!("a service runs on this database; stop it, and seed again");
    }
    Ok(())
}

async fn open_shops(
    app: &App,
    receiver: &Receiver,
) -> anyhow::Result<Vec<(Arc<Application>, String)>> {
    let mut shops = Vec::new();
    for shop in &SHOPS {
        let issued = credentials::create_partner(app, shop.name).await?;
        let known = app.directory.refresh(&app.store).await?;
        let uuid = issued.application.publishable_key.application_uuid();
        let application = known.application(uuid).context("it was made a moment ago")?;
        shops.push((Arc::clone(application), receiver.url(shop.slug)));
    }
    Ok(shops)
}

async fn report(journey: &Journey, json: bool) -> anyhow::Result<()> {
    let store = &journey.app.store;
    let [pending, paid, cancelled] = journey.count().await?;
    let all = ExceptionFilter { resolved_too: true, ..ExceptionFilter::default() };
    let events = |state| EventFilter { state: Some(state), ..EventFilter::default() };
    let seeded = Seeded {
        orders: pending + paid + cancelled,
        paid,
        cancelled,
        pending,
        exceptions: store.exceptions(all, usize::MAX >> 1).await?.len(),
        exceptions_open: store.exceptions(ExceptionFilter::default(), usize::MAX >> 1).await?.len(),
        webhooks_delivered: store
            .events(events(EventState::Delivered), usize::MAX >> 1)
            .await?
            .len(),
        webhooks_waiting: store.events(events(EventState::Queued), usize::MAX >> 1).await?.len(),
        shops: SHOPS.iter().map(|shop| shop.name).collect(),
    };
    if json {
        output::json(&seeded);
        return Ok(());
    }
    output::line(format_args!(
        "{} orders of {} shops over {DAYS} days: {paid} paid, {cancelled} cancelled, {pending} pending.",
        seeded.orders,
        seeded.shops.len()
    ));
    output::line(format_args!(
        "{} exceptions, {} of them open. {} webhooks delivered, {} waiting.",
        seeded.exceptions,
        seeded.exceptions_open,
        seeded.webhooks_delivered,
        seeded.webhooks_waiting
    ));
    output::note("See svc exception list, svc webhook list and svc partner list.");
    Ok(())
}
