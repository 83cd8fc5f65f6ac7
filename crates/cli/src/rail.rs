//! `svc rail`: what an acquirer says beside what we know.

use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::civil::Date;
use serde::Serialize;
use svc_service::domain::luanda;
use svc_service::orders::{self, Finding, Verdict};

use crate::arguments::{By, day};
use crate::output;
use crate::settings::DataArgs;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Compare a day's statement of a rail with our orders: exit code 0 if both say the same, else 1
    Reconcile(Reconcile),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc rail reconcile acquirer 2026-11-15
  svc rail reconcile acquirer 2026-11-15 --apply

A day is one of Luanda. --apply settles what is missing here as if the rail
had told us that day: its order is paid, or the money goes to the exceptions.
What differs otherwise is for a person.")]
pub(crate) struct Reconcile {
    /// The rail's name in the settings
    rail: String,
    /// Which day: 2026-11-15
    #[arg(value_parser = day)]
    date: Date,
    /// Settle what is missing here
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    by: By,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON, with what agrees too
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    matched: usize,
    findings: Vec<FindingView>,
    unread: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingView {
    result: &'static str,
    rail_payment_id: Option<String>,
    reference_number: Option<String>,
    amount: Option<String>,
    /// On record here, if it is another or the only one.
    our_amount: Option<String>,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    let Command::Reconcile(args) = command;
    let app = args.data.settings()?.open().await?;
    let rail = app.rails.named(&args.rail).with_context(|| {
        format!("there is no rail {}; rails are in the settings, see docs/rails.md", args.rail)
    })?;
    let (now, date) = (app.clock.now(), args.date);
    let today = luanda(now).date();
    if date > today {
        bail!("{date} has not begun in Luanda: name a day that is over");
    }
    if date == today {
        output::note("The day is not over in Luanda: the rail may have more to tell.");
    }
    let told = orders::reconcile(&app, rail, date, args.apply).await?;
    if args.apply {
        let what = date.to_string();
        app.store.note(now, &args.by.author(), "rail.reconcile", rail.name(), &what).await?;
    }
    let (matched, differing): (Vec<_>, Vec<_>) =
        told.findings.iter().partition(|finding| finding.verdict == Verdict::Matched);
    let agree = differing.is_empty() && told.unread.is_empty() && told.unasked.is_none();
    let shown = if args.json { told.findings.iter().collect() } else { differing };
    let view = View {
        matched: matched.len(),
        findings: shown.into_iter().map(view).collect(),
        unread: told.unread,
    };
    if args.json {
        output::json(&view);
    } else {
        print(view);
    }
    if let Some(fault) = told.unasked {
        output::note(format_args!(
            "Not checked: which of our payments the rail does not have. Its statement of the day before cannot be read: {fault}"
        ));
    }
    Ok(if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn view(finding: &Finding) -> FindingView {
    let result = match finding.verdict {
        Verdict::Matched => "matched",
        Verdict::AmountDiffers { .. } => "amount_differs",
        Verdict::MissingHere => "missing_here",
        Verdict::Confirmed => "confirmed_now",
        Verdict::Exception(_) => "exception_now",
        Verdict::Noted => "noted_now",
        Verdict::MissingThere => "missing_there",
    };
    let amount = finding.amount.to_string();
    let (amount, our_amount) = match finding.verdict {
        Verdict::AmountDiffers { ours } => (Some(amount), Some(ours.to_string())),
        Verdict::MissingThere => (None, Some(amount)),
        _ => (Some(amount), None),
    };
    FindingView {
        result,
        rail_payment_id: finding.rail_payment_id.clone(),
        reference_number: finding.order.as_ref().map(|order| order.as_str().to_owned()),
        amount,
        our_amount,
    }
}

fn print(view: View) {
    let rows: Vec<_> = view
        .findings
        .into_iter()
        .map(|one| {
            let (payment, order) = (one.rail_payment_id, one.reference_number);
            let (theirs, ours) =
                (one.amount.unwrap_or_default(), one.our_amount.unwrap_or_default());
            let (payment, order) = (payment.unwrap_or_default(), order.unwrap_or_default());
            [one.result.to_owned(), payment, order, theirs, ours]
        })
        .collect();
    if !rows.is_empty() {
        output::table(["RESULT", "PAYMENT", "ORDER", "AMOUNT", "OURS"], &rows);
    }
    for line in &view.unread {
        output::note(format_args!("Not understood: {line}"));
    }
    output::line(format_args!("{} matched, {} not.", view.matched, rows.len() + view.unread.len()));
}
