//! The service without its API: orders are confirmed as fast as the store allows, and delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use svc_service::app::App;
use svc_service::config::Config;
use svc_service::credentials;
use svc_service::domain::{
    About, AdditionalInfo, ExternalTransactionId, Kwanza, Label, Notice, PayerId, Quantity,
    ReferenceNumber, Terms, Word,
};
use svc_service::orders::{self, OrderRequest};
use svc_service::store::{Application, Database, Received};
use svc_service::webhook::Dispatcher;

use crate::target::order_id;
use crate::webhook::call;

#[derive(clap::Args, Clone)]
pub(crate) struct Args {
    #[arg(long)]
    database: String,
    /// Where healthy merchants' events go
    #[arg(long)]
    url: String,
    #[arg(long)]
    events: u64,
    /// Confirm so many a second instead of as fast as the store allows
    #[arg(long)]
    per_s: Option<u64>,
    #[arg(long, default_value_t = 1)]
    merchants: u64,
    /// Confirm everything before the dispatcher starts, and measure delivery alone
    #[arg(long)]
    backlog: bool,
    /// So many tenths of the merchants are sick: their events go to one --sick-url after the other
    #[arg(long, default_value_t = 0, requires = "sick_url")]
    sick_tenths: u64,
    #[arg(long)]
    sick_url: Vec<String>,
    /// Wait for healthy events to arrive; without it, only for so many seconds of dispatching
    #[arg(long)]
    linger_s: Option<u64>,
}

/// Orders under way at once. With few, each waits for the disk, and what the store allows is not seen.
const AT_ONCE: u64 = 4_096;
const AMOUNT: i64 = 15_000;
/// Longer than any measurement: only a fault makes one wait for it.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the worker found out about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Worked {
    /// Healthy events, from the first confirmation to the last arrival.
    pub delivered_per_s: f64,
    pub confirmed_per_s: f64,
    pub resident_before_bytes: u64,
    pub resident_after_bytes: u64,
    pub cpu: f64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let config =
        Config { private_webhook_targets: true, ..Config::sandbox(([127, 0, 0, 1], 0).into()) };
    let app = App::open(config, &Database::parse(&args.database)?).await?;
    let merchants = merchants(&app, args.merchants).await?;
    let orders = create_orders(&app, &args, &merchants).await?;
    let resident_before_bytes = resident_bytes()?;
    let healthy = orders.iter().filter(|(sick, _)| !sick).count() as u64;
    let (dispatcher, begun) = (Dispatcher::new(app.clone())?, Begun::now(&app)?);
    let (begun, confirmed_per_s, delivering) = if args.backlog {
        confirm_orders(&app, &args, orders).await?;
        let confirmed_per_s = begun.per_s(args.events);
        (Begun::now(&app)?, confirmed_per_s, tokio::spawn(dispatcher.run(std::future::pending())))
    } else {
        let delivering = tokio::spawn(dispatcher.run(std::future::pending()));
        confirm_orders(&app, &args, orders).await?;
        let confirmed_per_s = begun.per_s(args.events);
        (begun, confirmed_per_s, delivering)
    };
    match args.linger_s {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => until_received(&args.url, healthy).await?,
    }
    let worked = Worked {
        delivered_per_s: begun.per_s(healthy),
        confirmed_per_s,
        resident_before_bytes,
        resident_after_bytes: resident_bytes()?,
        cpu: begun.cpu()?,
    };
    delivering.abort();
    println!("{}", serde_json::to_string(&worked)?);
    Ok(())
}

/// A moment to count from.
struct Begun {
    watch: std::time::Instant,
    ticks: u64,
}

impl Begun {
    fn now(app: &App) -> anyhow::Result<Self> {
        Ok(Self { watch: app.clock.stopwatch(), ticks: cpu_ticks()? })
    }

    fn per_s(&self, count: u64) -> f64 {
        count as f64 / self.watch.elapsed().as_secs_f64()
    }

    /// Share of one core.
    fn cpu(&self) -> anyhow::Result<f64> {
        let ticks = cpu_ticks()? - self.ticks;
        Ok(ticks as f64 / 100.0 / self.watch.elapsed().as_secs_f64())
    }
}

async fn merchants(app: &App, count: u64) -> anyhow::Result<Vec<Arc<Application>>> {
    let mut uuids = Vec::new();
    for number in 0..count {
        let issued = credentials::create_partner(app, &format!("Loja {number}")).await?;
        uuids.push(issued.application.publishable_key.application_uuid().clone());
    }
    let known = app.directory.refresh(&app.store).await?;
    uuids.iter().map(|uuid| known.application(uuid).cloned().context("a new application")).collect()
}

/// Each order with whether its merchant is sick.
async fn create_orders(
    app: &App,
    args: &Args,
    merchants: &[Arc<Application>],
) -> anyhow::Result<Vec<(bool, ReferenceNumber)>> {
    let healthy = Arc::new(terms(app, &args.url)?);
    let sick = args.sick_url.iter().map(|url| terms(app, url).map(Arc::new));
    let sick = sick.collect::<anyhow::Result<Vec<_>>>()?;
    let creating: Vec<_> = (0..AT_ONCE)
        .map(|lot| {
            let (app, args, merchants) = (app.clone(), args.clone(), merchants.to_vec());
            let (healthy, sick) = (Arc::clone(&healthy), sick.clone());
            tokio::spawn(async move {
                let mut created = Vec::new();
                for number in (lot..args.events).step_by(AT_ONCE as usize) {
                    let merchant = number % args.merchants;
                    let tenth = merchant % 10;
                    let is_sick = tenth < args.sick_tenths;
                    let terms = if is_sick { &sick[tenth as usize % sick.len()] } else { &healthy };
                    let application = Arc::clone(&merchants[merchant as usize]);
                    let id = ExternalTransactionId::parse(order_id(1, number))?;
                    let request = OrderRequest {
                        application,
                        external_transaction_id: id,
                        terms: (**terms).clone(),
                        request_id: "bench".into(),
                    };
                    let order = orders::create(&app, request).await?.order;
                    created.push((is_sick, order.reference_number));
                }
                anyhow::Ok(created)
            })
        })
        .collect();
    let mut lots = Vec::new();
    for lot in creating {
        lots.push(lot.await??.into_iter());
    }
    // One of each lot in turn: the order of their numbers.
    let mut all = Vec::new();
    while all.len() < args.events as usize {
        all.extend(lots.iter_mut().filter_map(Iterator::next));
    }
    Ok(all)
}

async fn confirm_orders(
    app: &App,
    args: &Args,
    orders: Vec<(bool, ReferenceNumber)>,
) -> anyhow::Result<()> {
    if let Some(per_s) = args.per_s {
        let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / per_s as f64));
        let mut confirming = tokio::task::JoinSet::new();
        for (_, order) in orders {
            pace.tick().await;
            confirming.spawn(confirm(app.clone(), order));
        }
        while let Some(confirmed) = confirming.join_next().await {
            confirmed??;
        }
        return Ok(());
    }
    // As payers do: about in the order in which the orders were made.
    let (orders, next) = (Arc::new(orders), Arc::new(AtomicUsize::new(0)));
    let confirming: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (app, orders, next) = (app.clone(), Arc::clone(&orders), Arc::clone(&next));
            tokio::spawn(async move {
                while let Some((_, order)) = orders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    confirm(app.clone(), order.clone()).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for lot in confirming {
        lot.await??;
    }
    Ok(())
}

/// A rail's notification: read, decide, commit.
async fn confirm(app: App, order: ReferenceNumber) -> anyhow::Result<()> {
    let notice = Notice {
        rail: "bench".into(),
        rail_payment_id: order.as_str().to_owned(),
        word: Word::Paid(Kwanza::parse(AMOUNT)?.into()),
        about: About::Order(order),
        raw: Vec::new(),
    };
    let received = orders::settle(&app, notice, "bench").await?;
    anyhow::ensure!(received == Received::Confirmed, "{received:?}");
    Ok(())
}

pub(crate) fn terms(app: &App, webhook_url: &str) -> anyhow::Result<Terms> {
    let info = serde_json::json!({
        "returnUrl": "https://shop.example.ao/ok", "cancelUrl": "https://shop.example.ao/no",
        "webhookUrl": webhook_url,
    });
    Ok(Terms {
        payer_id: PayerId::parse("user-1".to_owned())?,
        name: Label::parse("Livro de receitas".to_owned())?,
        amount: Kwanza::parse(AMOUNT)?,
        quantity: Quantity::parse(1)?,
        additional_info: AdditionalInfo::parse(&info.to_string(), &app.url_rules)?,
    })
}

async fn until_received(url: &str, count: u64) -> anyhow::Result<()> {
    let (address, _) = url.trim_start_matches("http://").split_once('/').context("a path")?;
    let all_there = async {
        while call("GET", address, "/count").await?.parse::<u64>()? < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, all_there).await.context("events did not arrive")?
}

fn resident_bytes() -> anyhow::Result<u64> {
    crate::process::resident_bytes_of(std::process::id())
}

fn cpu_ticks() -> anyhow::Result<u64> {
    crate::process::cpu_ticks_of(std::process::id())
}
