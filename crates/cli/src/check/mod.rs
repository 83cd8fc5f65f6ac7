//! `svc check`: grades a merchant's webhook handler by its effect (spec 3, 4.6 B, 5.3).
//!
//! `case` names what is tried, `script` tries it, `orders` brings the orders and reads their state,
//! `judge` decides (pure), `finding` says what is wrong with the handler, `report` prints.

mod case;
mod delivery;
mod diagnose;
mod finding;
mod judge;
mod orders;
mod report;
mod script;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use svc_service::config::is_this_machine;
use url::Url;

use crate::http::{Http, address};
use crate::lang::Lang;
use crate::{output, webhook_secret};

#[derive(clap::Args)]
#[command(after_help = "Examples (with SVC_WEBHOOK_SECRET set as the handler has it):
  svc check http://127.0.0.1:3000/api/svc/webhook \\
    --status-url \\
    http://127.0.0.1:3000/api/svc/order/{externalTransactionId}/status \\
    --create-url http://127.0.0.1:3000/api/svc/create-order
  # the answers alone
  svc check http://127.0.0.1:3000/api/svc/webhook --junit report.xml

Orders come from --create-url, or are given with --order (six that are
pending). Each is told to be paid or cancelled without any money, so use a
test system. Without --status-url only answers are graded.

Exit code: 0 all passed, 1 something failed, 2 the check could not run.")]
pub(crate) struct Args {
    /// Address of the handler
    #[arg(value_parser = address)]
    webhook_url: Url,
    /// Where the state of an order can be read, with {externalTransactionId} in it
    #[arg(long, value_name = "URL")]
    status_url: Option<String>,
    /// Where the state is in that answer, such as order.status [default: status or paymentStatus]
    #[arg(long, value_name = "PATH", requires = "status_url")]
    status_field: Option<String>,
    /// Where that answer counts how often the order was fulfilled
    #[arg(long, value_name = "PATH", default_value = "fulfilments", requires = "status_url")]
    count_field: String,
    /// Where orders are made (POST)
    #[arg(long, value_name = "URL", conflicts_with = "orders", value_parser = address)]
    create_url: Option<Url>,
    /// What is posted there
    #[arg(
        long,
        value_name = "JSON",
        default_value = r#"{"items":[{"id":"livro-receitas","quantity":1}]}"#,
        requires = "create_url"
    )]
    create_body: String,
    /// A pending order of the merchant (its externalTransactionId); give it six times
    #[arg(long = "order", value_name = "ID")]
    orders: Vec<String>,
    /// Amount of the events when the status does not tell it
    #[arg(long, value_name = "KWANZA", default_value_t = 15_000)]
    amount: i64,
    /// File with the webhook secret, instead of SVC_WEBHOOK_SECRET
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The handler is on another machine, and it is a test system
    #[arg(long)]
    remote_test_system: bool,
    /// Write the verdicts as JUnit XML too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Language of the table [default: by the locale]
    #[arg(long, value_enum)]
    lang: Option<Lang>,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    match grade(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            output::error(&fault);
            output::COULD_NOT_RUN.into()
        }
    }
}

/// Whether all passed.
async fn grade(args: &Args) -> anyhow::Result<bool> {
    refuse_strangers(args)?;
    let secret = webhook_secret::read(args.secret_file.as_deref())?;
    let http = Http::new()?;
    let orders = orders::Orders::new(args, http.clone())?;
    let sender = delivery::Sender::new(http, args.webhook_url.as_str(), secret);
    let graded = script::run(sender, orders).await?;
    let lang = Lang::pick(args.lang);
    if let Some(path) = &args.junit {
        std::fs::write(path, report::junit(&graded, lang)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        output::json(&report::json(&graded, args.webhook_url.as_str(), lang));
    } else {
        report::table(&graded, args, lang);
    }
    Ok(graded.passed())
}

/// A handler that passes marks orders as paid that nobody paid: not by a slip of the pen on a system
/// that sells.
fn refuse_strangers(args: &Args) -> anyhow::Result<()> {
    if !is_this_machine(&args.webhook_url) && !args.remote_test_system {
        bail!(
            "the handler is on another machine; a check marks orders as paid, so if that is a test \
             system, say --remote-test-system"
        );
    }
    Ok(())
}
