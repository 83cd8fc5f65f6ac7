//! `svc order list`: which orders there are.

use serde::Serialize;
use svc_service::domain::Status;
use svc_service::store::{Directory, OrderFilter, OrderLine, Scope};

use super::names;
use crate::application::application_id;
use crate::arguments::{Between, one_of, whole};
use crate::output;
use crate::settings::Shown;

/// Asked for at a time.
const PAGE: usize = 1_000;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc order list --status PEN
  svc order list --application pk_test_0b6f… --since 2h
  svc order list --amount 15000 --since 2026-11-15T08:00:00Z --json")]
pub(crate) struct List {
    /// In this state
    #[arg(long, value_parser = one_of(&Status::ALL, Status::code))]
    status: Option<Status>,
    /// Of this amount, in kwanza
    #[arg(long, value_name = "KZ", value_parser = whole)]
    amount: Option<i64>,
    /// Of this application: its publishable key or applicationUUID
    #[arg(long, value_name = "KEY")]
    application: Option<String>,
    #[command(flatten)]
    created: Between,
    /// List at most N
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    shown: Shown,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    reference_number: String,
    external_transaction_id: String,
    merchant: String,
    application: String,
    payment_status: &'static str,
    amount: i64,
    name: String,
    created_at: String,
}

pub(super) async fn list(args: List) -> anyhow::Result<()> {
    let store = args.shown.settings()?.open_store().await?;
    let directory = store.directory().await?;
    let scope = match &args.application {
        Some(given) => Scope::Applications(vec![application_id(&directory, given)?]),
        None => Scope::Everything,
    };
    let (since, until) = args.created.moments(&store).await?;
    let filter = OrderFilter { status: args.status, amount: args.amount, since, until };
    let (mut lines, mut before) = (Vec::new(), None);
    // A page may hold fewer than asked for, and there may be more after it.
    while lines.len() <= args.limit {
        let page = store.order_lines(&scope, filter, before, PAGE).await?;
        lines.extend(page.rows.into_iter().map(|row| line(&directory, row)));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    output::first(&mut lines, args.limit);
    if args.shown.json {
        output::json(&lines);
    } else {
        print(&lines);
    }
    Ok(())
}

fn line(directory: &Directory, order: OrderLine) -> Line {
    let (merchant, application) = names(directory, order.application);
    Line {
        reference_number: order.reference_number.as_str().to_owned(),
        external_transaction_id: order.external_transaction_id,
        merchant,
        application,
        payment_status: order.status.code(),
        amount: order.amount,
        name: order.name,
        created_at: order.created_at.to_string(),
    }
}

fn print(lines: &[Line]) {
    let rows: Vec<_> = lines
        .iter()
        .map(|line| {
            [
                line.reference_number.clone(),
                line.payment_status.to_owned(),
                format!("{} Kz", line.amount),
                line.merchant.clone(),
                line.external_transaction_id.clone(),
                line.name.clone(),
                line.created_at.clone(),
            ]
        })
        .collect();
    let head = ["ORDER", "STATUS", "AMOUNT", "MERCHANT", "MERCHANT'S ID", "FOR", "CREATED"];
    output::table(head, &rows);
}
