//! `svc exception`: money that fits no order, and what an operator did about it.

use serde::Serialize;
use svc_service::domain::ExceptionKind;
use svc_service::orders::{self, Resolution};
use svc_service::store::{ExceptionFilter, ExceptionRecord, Scope};

use crate::application::application_id;
use crate::arguments::{Between, By, not_blank, one_of, whole};
use crate::settings::Shown;
use crate::{order, output};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List money that fits no order, newest first
    List(List),
    /// Record what was done about one of them
    Resolve(Resolve),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc exception list
  svc exception list --kind mismatch --since 2026-11-15
  svc exception list --application pk_test_0b6f… --all
  svc exception list --order 01JC4E9V7Q3M8Y5T2K6R1N0WXZ --all --json")]
pub(crate) struct List {
    /// Only of this kind
    #[arg(long, value_parser = one_of(&ExceptionKind::ALL, ExceptionKind::as_str))]
    kind: Option<ExceptionKind>,
    /// Only of this order, by its referenceNumber or the merchant's own id
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// Only of this application's orders: its publishable key or applicationUUID
    #[arg(long, value_name = "KEY")]
    application: Option<String>,
    #[command(flatten)]
    created: Between,
    /// Also those that are resolved
    #[arg(long)]
    all: bool,
    /// List at most N
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc exception resolve 12 --accept --reason \"1 Kz missing, agreed\"
  svc exception resolve 13 --refund --reason \"returned by transfer 4711\"
  svc exception resolve 14 --dismiss --reason \"test payment of the bank\"

--accept takes the money for the full amount and confirms the order, which
was held for it: another amount, or a payment whose id was already used.
--refund says that the money went back; an order held for it is cancelled.")]
pub(crate) struct Resolve {
    /// Its number in the list
    #[arg(value_parser = whole)]
    id: i64,
    #[command(flatten)]
    how: How,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", value_parser = not_blank)]
    reason: String,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct How {
    /// The money is taken for the order's full amount: the order is paid
    #[arg(long)]
    accept: bool,
    /// The money went back
    #[arg(long)]
    refund: bool,
    /// Nothing is to be done
    #[arg(long)]
    dismiss: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    id: i64,
    kind: &'static str,
    reference_number: Option<String>,
    amount: String,
    rail: String,
    rail_payment_id: String,
    detail: String,
    created_at: String,
    resolution: Option<String>,
    resolved_by: Option<String>,
    resolved_at: Option<String>,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list(args).await,
        Command::Resolve(args) => resolve(args).await,
    }
}

async fn list(args: List) -> anyhow::Result<()> {
    let settings = args.shown.settings()?;
    let store = settings.open_store().await?;
    let scope = match &args.application {
        Some(given) => Scope::Applications(vec![application_id(&store.directory().await?, given)?]),
        None => Scope::Everything,
    };
    let order = match &args.order {
        Some(id) => Some(order::find(&store, &settings.config, &scope, id).await?),
        None => None,
    };
    let (since, until) = args.created.moments(&store).await?;
    let filter = ExceptionFilter {
        scope,
        kind: args.kind,
        reference_number: order,
        since,
        until,
        resolved_too: args.all,
        ..Default::default()
    };
    let mut found = store.exceptions(filter, args.limit.saturating_add(1)).await?;
    output::first(&mut found, args.limit);
    let views: Vec<_> = found.iter().map(view).collect();
    if args.shown.json {
        output::json(&views);
    } else {
        print_all(&views);
    }
    Ok(())
}

async fn resolve(args: Resolve) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let how = match args.how {
        How { accept: true, .. } => Resolution::Accept,
        How { refund: true, .. } => Resolution::Refund,
        How { .. } => Resolution::Dismiss,
    };
    let resolved = orders::resolve(&app, args.id, how, &args.by.author(), &args.reason).await?;
    let view = view(&resolved);
    if args.shown.json {
        output::json(&view);
    } else {
        output::line(format_args!("{}: {}", view.id, view.resolution.unwrap_or_default()));
    }
    Ok(())
}

pub(crate) fn print_all(views: &[View]) {
    let rows: Vec<_> = views.iter().map(row).collect();
    output::table(
        ["ID", "AT", "KIND", "AMOUNT", "ORDER", "RAIL", "PAYMENT", "WHAT", "RESOLVED"],
        &rows,
    );
}

pub(crate) fn view(record: &ExceptionRecord) -> View {
    let resolved = record.resolved.as_ref();
    View {
        id: record.id,
        kind: record.kind.as_str(),
        reference_number: record.reference_number.as_ref().map(|r| r.as_str().to_owned()),
        amount: record.amount.to_string(),
        rail: record.rail.clone(),
        rail_payment_id: record.rail_payment_id.clone(),
        detail: record.detail.clone(),
        created_at: record.created_at.to_string(),
        resolution: resolved.map(|resolved| resolved.resolution.clone()),
        resolved_by: resolved.map(|resolved| resolved.by.clone()),
        resolved_at: resolved.map(|resolved| resolved.at.to_string()),
    }
}

fn row(view: &View) -> [String; 9] {
    [
        view.id.to_string(),
        view.created_at.clone(),
        view.kind.into(),
        view.amount.clone(),
        view.reference_number.clone().unwrap_or_default(),
        view.rail.clone(),
        view.rail_payment_id.clone(),
        view.detail.clone(),
        view.resolution.clone().unwrap_or_default(),
    ]
}
