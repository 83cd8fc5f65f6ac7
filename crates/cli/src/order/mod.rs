//! `svc order`: which there are, one with its whole story, and how an operator ends it.

mod list;

use anyhow::{Context, bail};
use serde::Serialize;
use svc_service::config::Config;
use svc_service::domain::{
    ApplicationId, AttemptId, CancelReason, Dossier, Instrument, PaymentAttempt, Reason,
    ReferenceNumber, Status,
};
use svc_service::orders::{self, Answered, Cancelling, Found};
use svc_service::rails::Simulator;
use svc_service::store::{
    AuditEntry, Directory, EventFilter, ExceptionFilter, Scope, Store, change_text,
};

use crate::arguments::{By, not_blank};
use crate::settings::{DataArgs, Shown};
use crate::{exception, output, webhook};

/// Of an order's events and exceptions, each.
const SHOWN_MAX: usize = 50;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List orders, newest first
    List(list::List),
    /// Show an order with its payment attempts, webhooks, exceptions and history
    Show(Show),
    /// Cancel a pending order; one that is being paid is cancelled only if that fails
    Cancel(Cancel),
    /// Say what became of a payment whose rail keeps silent: only once you know it from the rail
    Answer(Answer),
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// Its referenceNumber, the merchant's id for it, its bank reference, or the rail's id of its payment
    order: String,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct Cancel {
    /// Its referenceNumber, the merchant's id for it, its bank reference, or the rail's id of its payment
    order: String,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(clap::Args)]
#[group(id = "found", required = true, multiple = false, args = ["paid", "not_paid"])]
pub(crate) struct Answer {
    /// Its referenceNumber, the merchant's id for it, its bank reference, or the rail's id of its payment
    order: String,
    /// The full amount arrived, by this payment of the rail's: the order is paid
    #[arg(long, value_name = "RAIL_PAYMENT_ID", value_parser = not_blank)]
    paid: Option<String>,
    /// No money moved: the payer may try again
    #[arg(long)]
    not_paid: bool,
    /// Which payment, where several are unknown: its id in `svc order show`
    #[arg(long, value_name = "ATTEMPT", value_parser = attempt)]
    attempt: Option<AttemptId>,
    /// How you know, for the record
    #[arg(long, value_name = "TEXT", value_parser = not_blank)]
    reason: String,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    data: DataArgs,
}

fn attempt(text: &str) -> Result<AttemptId, &'static str> {
    AttemptId::parse(text).ok_or("that is no id of a payment attempt; svc order show lists them")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrderView {
    reference_number: String,
    external_transaction_id: String,
    merchant: String,
    application: String,
    payment_status: &'static str,
    amount: i64,
    name: String,
    created_at: String,
    expires_at: String,
    settled_at: Option<String>,
    /// Waits for the payment under way.
    cancel_requested_by: Option<&'static str>,
    attempts: Vec<AttemptView>,
    webhooks: Vec<webhook::EventView>,
    exceptions: Vec<exception::View>,
    history: Vec<HistoryView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptView {
    id: String,
    method: &'static str,
    /// Entity and reference, telephone or code: what the payer sees.
    by: String,
    rail: String,
    state: &'static str,
    reason: Option<String>,
    created_at: String,
}

#[derive(Serialize)]
struct HistoryView {
    at: String,
    actor: String,
    action: String,
    before: Option<String>,
    after: Option<String>,
    cause: String,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list::list(args).await,
        Command::Show(args) => show(args).await,
        Command::Cancel(args) => cancel(args).await,
        Command::Answer(args) => answer(args).await,
    }
}

async fn show(args: Show) -> anyhow::Result<()> {
    let settings = args.shown.settings()?;
    let store = settings.open_store().await?;
    let reference = find(&store, &settings.config, &Scope::Everything, &args.order).await?;
    let dossier = store.dossier(&reference).await?.context("the order is gone")?;
    let view = order_view(&store, &dossier).await?;
    if args.shown.json {
        output::json(&view);
    } else {
        print(&view);
    }
    Ok(())
}

async fn cancel(args: Cancel) -> anyhow::Result<()> {
    let app = args.data.settings()?.open().await?;
    let reference = find(&app.store, &app.config, &Scope::Everything, &args.order).await?;
    match orders::cancel(&app, &reference, CancelReason::Operator, &args.by.author()).await? {
        Cancelling::Settled(Status::Cancelled) => {
            output::line(format_args!("The order {} is CAN.", reference.as_str()));
        }
        Cancelling::Settled(status) => {
            let (reference, status) = (reference.as_str(), status.code());
            bail!("the order {reference} is {status}: it can no longer be cancelled");
        }
        Cancelling::Waits => {
            let held =
                app.store.dossier(&reference).await?.is_some_and(|dossier| dossier.is_held());
            let told = match held {
                true => {
                    "is held for money that does not fit it (svc exception list); it is cancelled once that is refunded"
                }
                false => "is being paid; it is cancelled if that fails",
            };
            output::line(format_args!("The order {} {told}.", reference.as_str()));
        }
    }
    Ok(())
}

async fn answer(args: Answer) -> anyhow::Result<()> {
    let app = args.data.settings()?.open().await?;
    let reference = find(&app.store, &app.config, &Scope::Everything, &args.order).await?;
    let found = args.paid.map_or(Found::NotPaid, |rail_payment_id| Found::Paid { rail_payment_id });
    let answered = Answered { attempt: args.attempt, found, why: args.reason };
    orders::answer(&app, &reference, answered, &args.by.author()).await?;
    let dossier = app.store.dossier(&reference).await?;
    let status = dossier.map_or("", |dossier| dossier.order.status.code());
    output::line(format_args!("Noted. The order {} is {status}.", reference.as_str()));
    Ok(())
}

/// A reference number names one order, whatever else looks like it.
pub(crate) async fn find(
    store: &Store,
    config: &Config,
    scope: &Scope,
    id: &str,
) -> anyhow::Result<ReferenceNumber> {
    if let Ok(reference) = ReferenceNumber::parse(id)
        && store.order_by_reference(&reference).await?.is_some()
    {
        return Ok(reference);
    }
    let rails = config.rails.iter().map(|rail| rail.name.as_str()).chain([Simulator::NAME]);
    let rails: Vec<_> = rails.map(str::to_owned).collect();
    let mut found = store.find_orders(scope, id, &rails).await?;
    match found.as_slice() {
        [] => bail!("there is no order {id} in this database"),
        [_] => Ok(found.remove(0)),
        several => {
            let all: Vec<_> = several.iter().map(ReferenceNumber::as_str).collect();
            bail!(
                "several orders go by {id}: name one by its referenceNumber, {}",
                all.join(" or ")
            )
        }
    }
}

async fn order_view(store: &Store, dossier: &Dossier) -> anyhow::Result<OrderView> {
    let order = &dossier.order;
    let reference = &order.reference_number;
    let directory = store.directory().await?;
    let (merchant, application) = names(&directory, order.application);
    let of_order =
        EventFilter { reference_number: Some(reference.clone()), ..EventFilter::default() };
    let money = ExceptionFilter {
        reference_number: Some(reference.clone()),
        resolved_too: true,
        ..ExceptionFilter::default()
    };
    let events = store.events(of_order, SHOWN_MAX).await?;
    let exceptions = store.exceptions(money, SHOWN_MAX).await?;
    let audit = store.audit_of(reference.as_str()).await?;
    Ok(OrderView {
        reference_number: reference.as_str().to_owned(),
        external_transaction_id: order.external_transaction_id.as_str().to_owned(),
        merchant,
        application,
        payment_status: order.status.code(),
        amount: order.terms.amount.get(),
        name: order.terms.name.as_str().to_owned(),
        created_at: order.created_at.to_string(),
        expires_at: order.expires_at.to_string(),
        settled_at: dossier.settled_at.map(|at| at.to_string()),
        cancel_requested_by: dossier.cancel_requested.map(CancelReason::as_str),
        attempts: dossier.attempts.iter().map(attempt_view).collect(),
        webhooks: webhook::event_views(store, &directory, &events).await?,
        exceptions: exceptions.iter().map(exception::view).collect(),
        history: audit.into_iter().map(history_view).collect(),
    })
}

/// Of the merchant and of its application.
fn names(directory: &Directory, application: ApplicationId) -> (String, String) {
    let application = directory.applications.iter().find(|a| a.id == application);
    let partner = application
        .and_then(|application| directory.partners.iter().find(|p| p.id == application.partner));
    (
        partner.map(|partner| partner.name.clone()).unwrap_or_default(),
        application.map(|application| application.name.clone()).unwrap_or_default(),
    )
}

fn attempt_view(attempt: &PaymentAttempt) -> AttemptView {
    AttemptView {
        id: attempt.id.as_str().to_owned(),
        method: attempt.instrument.method().code(),
        by: match &attempt.instrument {
            Instrument::Push { phone_masked, .. } => phone_masked.clone(),
            Instrument::Reference(Some(bank)) => format!("{} {}", bank.entity(), bank.spaced()),
            Instrument::Code(Some(wallet)) => wallet.code.clone(),
            Instrument::Reference(None) | Instrument::Code(None) => String::new(),
        },
        rail: attempt.rail.clone(),
        state: attempt.state.as_str(),
        reason: attempt.reason.as_ref().map(Reason::to_text),
        created_at: attempt.created_at.to_string(),
    }
}

fn history_view(row: AuditEntry) -> HistoryView {
    HistoryView {
        at: row.at.to_string(),
        actor: row.actor,
        action: row.action,
        before: row.before,
        after: row.after,
        cause: row.cause,
    }
}

fn print(view: &OrderView) {
    output::line(output::bold(&view.reference_number));
    for (name, value) in [
        ("status", view.payment_status.to_owned()),
        ("merchant", format!("{}, {}", view.merchant, view.application)),
        ("merchant's id", view.external_transaction_id.clone()),
        ("amount", format!("{} Kz", view.amount)),
        ("for", view.name.clone()),
        ("created", view.created_at.clone()),
        ("expires", view.expires_at.clone()),
        ("settled", view.settled_at.clone().unwrap_or_else(|| "not yet".into())),
    ] {
        output::line(format_args!("{name:14} {}", output::printable(&value)));
    }
    if let Some(by) = view.cancel_requested_by {
        output::line(format_args!("{:14} if the payment under way fails ({by})", "cancelled"));
    }
    output::line("");
    let attempts: Vec<_> = view
        .attempts
        .iter()
        .map(|a| {
            let reason = a.reason.clone().unwrap_or_default();
            let (method, state) = (a.method.to_owned(), a.state.to_owned());
            let (by, rail) = (a.by.clone(), a.rail.clone());
            [a.id.clone(), method, by, rail, state, reason, a.created_at.clone()]
        })
        .collect();
    output::table(["ATTEMPT", "METHOD", "BY", "RAIL", "STATE", "REASON", "STARTED"], &attempts);
    output::line("");
    webhook::print_events(&view.webhooks);
    if view.webhooks.len() == SHOWN_MAX {
        output::note(format_args!(
            "The first {SHOWN_MAX} only; svc webhook list --order shows more."
        ));
    }
    output::line("");
    if !view.exceptions.is_empty() {
        exception::print_all(&view.exceptions);
        output::line("");
    }
    let history: Vec<_> = view
        .history
        .iter()
        .map(|h| {
            let change = change_text(h.before.as_deref(), h.after.as_deref());
            [h.at.clone(), h.actor.clone(), h.action.clone(), change, h.cause.clone()]
        })
        .collect();
    output::table(["AT", "WHO", "WHAT", "CHANGE", "WHY"], &history);
}
