//! `svc webhook`: see what was sent to merchants and what became of it, and send it again.

use std::collections::HashMap;

use anyhow::{anyhow, bail, ensure};
use serde::Serialize;
use serde_json::Value;
use svc_service::config::Config;
use svc_service::domain::{Author, EventId, PublishableKey};
use svc_service::store::{
    DeliveryRecord, Directory, EventFilter, EventRecord, EventState, Scope, Store,
};

use crate::application::application_id;
use crate::arguments::{Between, now, one_of};
use crate::settings::Shown;
use crate::{order, output};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List events, newest first
    List(List),
    /// Show an event, its body and every attempt to deliver it
    Show(Show),
    /// Send events again
    Replay(Replay),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc webhook list --state exhausted
  svc webhook list --application pk_test_0b6f… --since 2h
  svc webhook list --order 01JC4E9V7Q3M8Y5T2K6R1N0WXZ --json")]
pub(crate) struct List {
    #[command(flatten)]
    which: Which,
    /// List at most N events
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// The id of the event (webhook-id)
    event: String,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc webhook replay evt_01JC4E9V7Q3M8Y5T2K6R1N0WXZ
  svc webhook replay --state exhausted --all-merchants
  svc webhook replay --application pk_test_0b6f… --since 2h

The same event goes out again with the same id and bytes, so a handler that
knows it changes nothing; without --state also what was delivered. Only the
latest event of an order can be replayed: an older one must never follow it.")]
pub(crate) struct Replay {
    /// The id of one event (webhook-id)
    event: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Of all merchants, if no order, application or event is named
    #[arg(long)]
    all_merchants: bool,
    #[command(flatten)]
    shown: Shown,
}

/// Which events; conditions are joined by "and".
#[derive(clap::Args)]
struct Which {
    /// Of this order: its referenceNumber, the merchant's id for it, or another of its ids
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// Of this application: its publishable key or applicationUUID
    #[arg(long, value_name = "KEY")]
    application: Option<String>,
    /// In this state
    #[arg(long, value_parser = one_of(&EventState::ALL, EventState::as_str))]
    state: Option<EventState>,
    #[command(flatten)]
    created: Between,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventView {
    id: String,
    state: &'static str,
    payment_status: &'static str,
    reference_number: String,
    external_transaction_id: String,
    publishable_key: String,
    attempts: u32,
    /// What came of the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    created_at: String,
    webhook_url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptView {
    attempt: u32,
    at: String,
    http_status: Option<u16>,
    latency_ms: i64,
    error: Option<String>,
    answer_start: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownEvent {
    #[serde(flatten)]
    event: EventView,
    body: String,
    deliveries: Vec<AttemptView>,
}

#[derive(Serialize)]
struct Replayed {
    replayed: u64,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args).await,
        Command::Show(args) => show(args).await,
        Command::Replay(args) => replay(args).await,
    }
}

async fn list(args: List) -> anyhow::Result<()> {
    let settings = args.shown.settings()?;
    let store = settings.open_store().await?;
    let directory = store.directory().await?;
    let filter = args.which.filter(&store, &directory, &settings.config).await?;
    let mut events = store.events(filter, args.limit.saturating_add(1)).await?;
    output::first(&mut events, args.limit);
    let views = event_views(&store, &directory, &events).await?;
    if args.shown.json {
        output::json(&views);
    } else {
        print_events(&views);
    }
    Ok(())
}

/// Of what came of an attempt, in a table; `svc webhook show` has all of it.
const LAST_CHARS: usize = 40;

pub(crate) fn print_events(views: &[EventView]) {
    let rows: Vec<_> = views
        .iter()
        .map(|v| {
            [
                v.id.clone(),
                v.state.into(),
                v.payment_status.into(),
                v.reference_number.clone(),
                v.external_transaction_id.clone(),
                v.attempts.to_string(),
                v.last.as_deref().unwrap_or_default().chars().take(LAST_CHARS).collect(),
                v.next_attempt_at.clone().unwrap_or_default(),
                v.webhook_url.clone(),
            ]
        })
        .collect();
    let head = ["EVENT", "STATE", "STATUS", "ORDER", "MERCHANT'S ID", "TRIES", "LAST", "DUE", "TO"];
    output::table(head, &rows);
}

async fn show(args: Show) -> anyhow::Result<()> {
    let store = args.shown.settings()?.open_store().await?;
    let id = event_id(&args.event)?;
    let filter = EventFilter { id: Some(id.clone()), ..EventFilter::default() };
    let Some(event) = store.events(filter, 1).await?.pop() else {
        bail!("there is no event {}", id.as_str());
    };
    let directory = store.directory().await?;
    let shown = ShownEvent {
        event: event_views(&store, &directory, std::slice::from_ref(&event)).await?.remove(0),
        body: String::from_utf8_lossy(&event.body).into_owned(),
        deliveries: store.deliveries_of(&id).await?.into_iter().map(attempt_view).collect(),
    };
    if args.shown.json {
        output::json(&shown);
        return Ok(());
    }
    print(&shown);
    Ok(())
}

fn print(shown: &ShownEvent) {
    let ShownEvent { event, body, deliveries } = shown;
    output::line(output::bold(&event.id));
    for (name, value) in [
        ("state", event.state),
        ("order", &event.reference_number),
        ("merchant's id", &event.external_transaction_id),
        ("status", event.payment_status),
        ("application", &event.publishable_key),
        ("to", &event.webhook_url),
        ("created", &event.created_at),
        ("due", event.next_attempt_at.as_deref().unwrap_or("none")),
        ("body", body),
    ] {
        output::line(format_args!("{name:14} {}", output::printable(value)));
    }
    if deliveries.is_empty() {
        output::line("Not tried yet.");
        return;
    }
    output::line("");
    let rows: Vec<_> = deliveries
        .iter()
        .map(|attempt| {
            let status = attempt.http_status.map_or("none".into(), |status| status.to_string());
            let told = attempt.error.as_ref().unwrap_or(&attempt.answer_start);
            [
                attempt.attempt.to_string(),
                attempt.at.clone(),
                status,
                format!("{} ms", attempt.latency_ms),
                told.to_owned(),
            ]
        })
        .collect();
    output::table(["TRY", "AT", "ANSWER", "TOOK", "WHAT CAME"], &rows);
}

async fn replay(args: Replay) -> anyhow::Result<()> {
    let Which { order, application, state, .. } = &args.which;
    let is_of_somebody = args.event.is_some() || order.is_some() || application.is_some();
    ensure!(
        is_of_somebody || args.all_merchants,
        "say whose events: an event id, --order, --application, or --all-merchants"
    );
    if args.event.is_none() && args.which.is_everything() {
        bail!("say which events: --state, --since or --until");
    }
    ensure!(
        *state != Some(EventState::Superseded),
        "a superseded event is never sent again: a newer one of the same order has taken its place"
    );
    let settings = args.shown.settings()?;
    let store = settings.open_store().await?;
    let directory = store.directory().await?;
    let mut filter = args.which.filter(&store, &directory, &settings.config).await?;
    filter.id = args.event.as_deref().map(event_id).transpose()?;
    let one = filter.id.clone();
    let (now, by) = (now(&store).await?, Author::command_line(None));
    let subject = args.event.as_deref().unwrap_or("events");
    let replayed = store.replay(filter.clone(), now, by, subject).await?;
    if let Some(id) = one.filter(|_| replayed == 0) {
        // Say why, instead of a bare 0.
        let alone = EventFilter { id: Some(id.clone()), ..EventFilter::default() };
        return Err(match store.events(alone, 1).await?.is_empty() {
            true => anyhow!("there is no event {}", id.as_str()),
            false if store.events(filter, 1).await?.is_empty() => {
                anyhow!("the event {} does not fit the other conditions", id.as_str())
            }
            false => {
                anyhow!("a newer event of the same order has taken its place: replay that one")
            }
        });
    }
    if args.shown.json {
        output::json(&Replayed { replayed });
    } else {
        output::line(format_args!(
            "{replayed} queued; a running service sends them at once, or, while their destination is failing, \
             one by one with pauses of up to 15 seconds."
        ));
    }
    Ok(())
}

impl Which {
    fn is_everything(&self) -> bool {
        let Self { order, application, state, created } = self;
        order.is_none() && application.is_none() && state.is_none() && created.is_always()
    }

    async fn filter(
        &self,
        store: &Store,
        directory: &Directory,
        config: &Config,
    ) -> anyhow::Result<EventFilter> {
        let application = self.application.as_deref();
        let application = application.map(|given| application_id(directory, given)).transpose()?;
        let scope = application.map_or(Scope::Everything, |one| Scope::Applications(vec![one]));
        let reference_number = match &self.order {
            Some(id) => Some(order::find(store, config, &scope, id).await?),
            None => None,
        };
        let (since, until) = self.created.moments(store).await?;
        let state = self.state;
        Ok(EventFilter {
            application,
            reference_number,
            state,
            since,
            until,
            ..EventFilter::default()
        })
    }
}

fn event_id(text: &str) -> anyhow::Result<EventId> {
    EventId::parse(text).ok_or_else(|| {
        anyhow!("{text} is not an event id: they look like evt_01JC4E9V7Q3M8Y5T2K6R1N0WXZ")
    })
}

pub(crate) async fn event_views(
    store: &Store,
    directory: &Directory,
    events: &[EventRecord],
) -> anyhow::Result<Vec<EventView>> {
    let ids: Vec<_> = events.iter().map(|event| event.id.clone()).collect();
    let last = store.last_deliveries(&ids).await?;
    let view = |event| event_view(store, directory, event, &last);
    Ok(events.iter().map(view).collect())
}

fn event_view(
    store: &Store,
    directory: &Directory,
    event: &EventRecord,
    last: &HashMap<EventId, DeliveryRecord>,
) -> EventView {
    let application = directory.applications.iter().find(|found| found.id == event.application);
    let key = application
        .map(|found| PublishableKey::new(store.environment(), found.uuid.clone()).to_string());
    let queued = event.state == EventState::Queued;
    EventView {
        id: event.id.as_str().to_owned(),
        state: event.state.as_str(),
        payment_status: event.status.code(),
        reference_number: event.reference_number.as_str().to_owned(),
        external_transaction_id: external_transaction_id(&event.body),
        publishable_key: key.unwrap_or_default(),
        attempts: event.attempts,
        last: last.get(&event.id).map(DeliveryRecord::told),
        next_attempt_at: queued.then(|| event.next_attempt_at.to_string()),
        created_at: event.created_at.to_string(),
        webhook_url: event.webhook_url.clone(),
    }
}

/// As the merchant reads it.
fn external_transaction_id(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["data"]["externalTransactionId"].as_str().unwrap_or_default().to_owned()
}

fn attempt_view(attempt: DeliveryRecord) -> AttemptView {
    AttemptView {
        attempt: attempt.number,
        at: attempt.at.to_string(),
        http_status: attempt.http_status,
        latency_ms: attempt.latency_ms,
        error: attempt.error,
        answer_start: String::from_utf8_lossy(&attempt.answer_start).into_owned(),
    }
}
