//! `svc audit`: the history of the service, and whether anybody changed it.

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use serde::Serialize;
use svc_service::audit::{self, Fault, Verdict};
use svc_service::store::AuditFilter;

use crate::output;
use crate::settings::{DataArgs, Shown};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Read the whole history and find where rows were edited, removed, added or moved, as exactly as it was sealed:
    /// exit code 0 nowhere, 1 somewhere, 2 could not look
    Verify(Verify),
    /// Print the last seal, to be kept elsewhere; on SQLite everything is sealed first, on PostgreSQL a running
    /// service does that
    Head(Head),
    /// List what was done, newest first
    List(List),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc audit verify
  svc audit verify --head 12:9f3c…    # was anything cut off since that seal?")]
pub(crate) struct Verify {
    /// A seal that was noted elsewhere, as `svc audit head` prints it
    #[arg(long, value_name = "NUMBER:HEX")]
    head: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

#[derive(clap::Args)]
pub(crate) struct Head {
    #[command(flatten)]
    data: DataArgs,
}

#[derive(clap::Args)]
pub(crate) struct List {
    /// Only what was done to this order, partner, application or person
    #[arg(long)]
    subject: Option<String>,
    /// List at most this many rows
    #[arg(long, default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    intact: bool,
    rows: i64,
    seals: i64,
    unsealed: i64,
    head: Option<String>,
    faults: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: i64,
    at: String,
    actor: String,
    action: String,
    subject: String,
    before: Option<String>,
    after: Option<String>,
    cause: String,
    request_id: String,
}

pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Verify(args) => return verify(args).await,
        Command::Head(args) => head(args).await?,
        Command::List(args) => list(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn verify(args: Verify) -> anyhow::Result<ExitCode> {
    let kept = args.head.as_deref().map(parse_head).transpose()?;
    let app = args.shown.settings()?.open().await?;
    let kept = kept.as_ref().map(|(id, mac)| (*id, mac.as_slice()));
    let verdict = audit::verify(&app, kept).await?;
    let report = report(&verdict);
    if args.shown.json {
        output::json(&report);
    } else {
        for fault in &report.faults {
            output::line(fault);
        }
        output::line(format_args!(
            "{} rows under {} seals, {} not sealed yet; last seal {}",
            report.rows,
            report.seals,
            report.unsealed,
            report.head.as_deref().unwrap_or("none")
        ));
    }
    if report.intact {
        return Ok(ExitCode::SUCCESS);
    }
    output::error(&anyhow!(
        "the history is not as it was sealed ({} found); compare with a backup from before",
        verdict.faults.len()
    ));
    Ok(ExitCode::FAILURE)
}

fn report(verdict: &Verdict) -> Report {
    let head = verdict.head.as_ref().map(ToString::to_string);
    Report {
        intact: verdict.faults.is_empty(),
        rows: verdict.rows,
        seals: verdict.seals,
        unsealed: verdict.unsealed,
        head,
        faults: verdict.faults.iter().map(told).collect(),
    }
}

fn told(fault: &Fault) -> String {
    match fault {
        Fault::Rows { seal, after_id, last_id, sealed, found } => format!(
            "rows {} to {last_id} are not as seal {seal} found them ({sealed} then, {found} now)",
            after_id + 1
        ),
        Fault::Known { id } => format!(
            "seal {id} is not the one that was the last when the master key was changed, or it is gone"
        ),
        Fault::Seal { id } => format!("seal {id} is missing"),
        Fault::Head => {
            "the seal given with --head is not in the history: its end was cut off, or it was rewritten".into()
        }
    }
}

fn parse_head(text: &str) -> anyhow::Result<(i64, Vec<u8>)> {
    let parsed =
        text.split_once(':').and_then(|(id, mac)| Some((id.parse().ok()?, hex::decode(mac).ok()?)));
    parsed.with_context(|| format!("{text} is no seal; svc audit head prints one, like 12:9f3c…"))
}

async fn head(args: Head) -> anyhow::Result<()> {
    let app = args.data.settings()?.open().await?;
    let mut sealer = audit::Sealer::default();
    sealer.tick(&app).await?;
    match app.store.last_seal().await? {
        Some(seal) => output::line(seal),
        None => output::note("nothing is sealed yet; a running service seals within a minute"),
    }
    Ok(())
}

async fn list(args: List) -> anyhow::Result<()> {
    let app = args.shown.settings()?.open().await?;
    let filter = AuditFilter { before_id: None, subject: args.subject };
    let mut rows = app.store.audit_page(filter, args.limit.saturating_add(1)).await?;
    output::first(&mut rows, args.limit);
    if args.shown.json {
        let rows = rows.into_iter().map(|row| Row {
            id: row.id,
            at: row.at.to_string(),
            actor: row.actor,
            action: row.action,
            subject: row.subject,
            before: row.before,
            after: row.after,
            cause: row.cause,
            request_id: row.request_id,
        });
        output::json(&rows.collect::<Vec<_>>());
        return Ok(());
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|row| {
            [row.id.to_string(), row.at.to_string(), row.actor, row.action, row.subject, row.cause]
        })
        .collect();
    output::table(["ROW", "AT", "WHO", "WHAT", "SUBJECT", "WHY"], &rows);
    Ok(())
}
