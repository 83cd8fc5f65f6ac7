//! How long the console's pages take when millions of orders are stored.

use std::sync::Arc;

use anyhow::{Context, ensure};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use svc_service::app::{App, Clock};
use svc_service::config::Config;
use svc_service::domain::{
    About, Author, ExternalTransactionId, Login, Notice, ReferenceNumber, Role, Word,
};
use svc_service::orders::{self, OrderRequest};
use svc_service::store::{Application, Database, DeliveryAttempt, LeaseToken, Verdict, Want};
use svc_service::{audit, console, credentials};

use crate::Engine;
use crate::process::{Data, Server};
use crate::report::{self, Spread};
use crate::target::order_id;
use crate::worker::terms;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    /// Orders stored, over the last thirty days
    #[arg(long, default_value_t = 2_000_000)]
    orders: u64,
    /// Times each page is asked for
    #[arg(long, default_value_t = 20)]
    times: u64,
    #[arg(long)]
    report: Option<std::path::PathBuf>,
}

/// What a page may take on the server.
const GOAL_MS: f64 = 200.0;
const DAYS: i64 = 30;
/// Orders made between two moments of the standing clock.
const STEP: u64 = 4_096;
const AT_ONCE: u64 = 256;
/// Every so manieth order is the small merchant's, is left to expire.
const SMALL_EVERY: u64 = 100;
const PENDING_EVERY: u64 = 10;

/// Somebody whose pages are measured.
struct Reader {
    name: &'static str,
    entry: String,
    order: String,
    event: String,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let data = Data::fresh(args.engine, "console").await?;
    let readers = fill(args, &data).await?;
    let server = Server::serve(&data, &[]).await?;
    let mut text = report::heading(
        &format!("console on {:?}, {} orders", args.engine, args.orders).to_lowercase(),
        &format!("Milliseconds from request to last byte, {} times each.", args.times),
    );
    text += "| page | reader | median | most |\n|---|---|---|---|\n";
    let mut worst: f64 = 0.0;
    let mut rows = Vec::new();
    for reader in &readers {
        let browser = Browser::enter(&server.target.address, &reader.entry).await?;
        for (page, path) in pages(reader) {
            let mut took = Vec::new();
            for _ in 0..args.times {
                took.push(browser.get_ms(&path).await?);
            }
            let most = took.iter().copied().fold(0.0, f64::max);
            let median = Spread::of(took).median;
            worst = worst.max(most);
            eprintln!("  {}: {page} {median:.1} ms, most {most:.1}", reader.name);
            text += &format!("| {page} | {} | {median:.1} | {most:.1} |\n", reader.name);
            rows.push(serde_json::json!({
                "page": page, "reader": reader.name, "medianMs": median, "mostMs": most,
            }));
        }
    }
    let verdict = if worst < GOAL_MS { "reached" } else { "not reached" };
    text += &format!(
        "\nThe slowest answer took **{worst:.0} ms** (goal {GOAL_MS:.0} ms: {verdict}).\n"
    );
    println!("{text}");
    report::save(args.report.as_deref(), &text, &serde_json::to_string_pretty(&rows)?)
}

fn pages(reader: &Reader) -> Vec<(&'static str, String)> {
    let Reader { order, event, .. } = reader;
    let mut pages = vec![
        ("home, 24 h", "/console".to_owned()),
        ("home, 7 d", "/console?period=7d".to_owned()),
        ("home, 30 d", "/console?period=30d".to_owned()),
        ("orders", "/console/orders".to_owned()),
        ("orders, pending", "/console/orders?status=PEN".to_owned()),
        ("orders, cancelled", "/console/orders?status=CAN".to_owned()),
        ("orders, far back", format!("/console/orders?before={order}")),
        ("order", format!("/console/orders/{order}")),
        ("search", format!("/console/search?id={order}")),
        ("search, nothing", "/console/search?id=999999999".to_owned()),
        ("webhooks", "/console/webhooks".to_owned()),
        ("webhooks, failing (none)", "/console/webhooks?state=failing".to_owned()),
        ("webhooks, given up (none)", "/console/webhooks?state=exhausted".to_owned()),
        ("webhook", format!("/console/webhooks/{event}")),
        ("exceptions", "/console/exceptions?show=all".to_owned()),
        ("developers", "/console/developers".to_owned()),
        ("requests", "/console/requests".to_owned()),
    ];
    if reader.name == "operator" {
        pages.push(("audit", "/console/audit".to_owned()));
        pages.push(("people", "/console/people".to_owned()));
    }
    pages
}

/// A month of orders: most paid and told, some pending, of a large and a small merchant.
async fn fill(args: &Args, data: &Data) -> anyhow::Result<Vec<Reader>> {
    eprintln!("storing {} orders …", args.orders);
    let start = Clock::system().now() - SignedDuration::from_hours(DAYS * 24);
    let config =
        Config { private_webhook_targets: true, ..Config::sandbox(([127, 0, 0, 1], 0).into()) };
    let database = Database::parse(&data.url)?;
    let app = App::open_at(config.clone(), &database, Clock::standing(start)).await?;
    let large = merchant(&app, "Loja Grande").await?;
    let small = merchant(&app, "Loja Pequena").await?;
    let steps = args.orders.div_ceil(STEP);
    let step = SignedDuration::from_hours(DAYS * 24) / i32::try_from(steps)?;
    let mut seen = (String::new(), String::new());
    for number in 0..steps {
        let (of_large, of_small) = make(&app, &large, &small, number, args.orders).await?;
        // One from the first days, so that its pages are far back.
        if number == steps / 10 {
            seen = (of_large, of_small);
        }
        deliver(&app).await?;
        app.clock.advance(step);
        orders::run_due(&app).await?;
        audit::seal_up_to(&app, app.store.last_audit_id().await?).await?;
        if number % 50 == 0 {
            eprintln!("  {} %", number * 100 / steps);
        }
    }
    // So many hours at a time, until there is nothing more to count.
    let mut counted_to = None;
    loop {
        console::count_figures(&app).await?;
        let now = app.store.figures_counted_to().await?;
        if now == counted_to {
            break;
        }
        counted_to = now;
    }
    drop(app);
    // Links of a month ago have run out.
    let app = App::open_at(config, &database, Clock::system()).await?;
    let operator = reader(&app, "operator", None, &seen.0).await?;
    let partner = reader(&app, "small merchant", Some(&small), &seen.1).await?;
    let large = reader(&app, "large merchant", Some(&large), &seen.0).await?;
    Ok(vec![operator, large, partner])
}

async fn merchant(app: &App, name: &str) -> anyhow::Result<Arc<Application>> {
    let issued = credentials::create_partner(app, name).await?;
    let known = app.directory.refresh(&app.store).await?;
    let uuid = issued.application.publishable_key.application_uuid();
    known.application(uuid).cloned().context("a new application")
}

async fn reader(
    app: &App,
    name: &'static str,
    merchant: Option<&Arc<Application>>,
    order: &str,
) -> anyhow::Result<Reader> {
    let login = Login::parse(&name.replace(' ', "-"))?;
    let partner = merchant.map(|application| application.partner);
    let by = Author::command_line(None);
    console::invite(app, &login, partner, Role::Owner, &by).await?;
    let entry = console::entry(app, &login, &by).await?.path.expose_secret().to_owned();
    let reference = ReferenceNumber::parse(order).ok().context("an order of theirs")?;
    let filter =
        svc_service::store::EventFilter { reference_number: Some(reference), ..Default::default() };
    let event = app.store.events(filter, 1).await?.pop().context("an event of theirs")?;
    Ok(Reader { name, entry, order: order.to_owned(), event: event.id.as_str().to_owned() })
}

/// One step's orders; a paid one of each merchant is returned.
async fn make(
    app: &App,
    large: &Arc<Application>,
    small: &Arc<Application>,
    step: u64,
    orders: u64,
) -> anyhow::Result<(String, String)> {
    let terms = terms(app, "http://127.0.0.1:9000/webhook")?;
    let numbers = step * STEP..((step + 1) * STEP).min(orders);
    let making: Vec<_> = (0..AT_ONCE)
        .map(|lane| {
            let (app, terms) = (app.clone(), terms.clone());
            let (large, small) = (Arc::clone(large), Arc::clone(small));
            let own = numbers.clone().skip(lane as usize).step_by(AT_ONCE as usize);
            tokio::spawn(async move {
                let mut paid = (String::new(), String::new());
                for number in own {
                    let is_small = number % SMALL_EVERY == 0;
                    let request = OrderRequest {
                        application: Arc::clone(if is_small { &small } else { &large }),
                        external_transaction_id: ExternalTransactionId::parse(order_id(9, number))?,
                        terms: terms.clone(),
                        request_id: String::new(),
                    };
                    let order = orders::create(&app, request).await?.order;
                    if number % PENDING_EVERY == 1 {
                        continue;
                    }
                    let reference = order.reference_number.as_str().to_owned();
                    *(if is_small { &mut paid.1 } else { &mut paid.0 }) = reference;
                    let notice = Notice {
                        rail: "simulator".into(),
                        rail_payment_id: format!("bench_{number}"),
                        about: About::Order(order.reference_number),
                        word: Word::Paid(order.terms.amount.into()),
                        raw: Vec::new(),
                    };
                    orders::settle(&app, notice, "").await?;
                }
                anyhow::Ok(paid)
            })
        })
        .collect();
    let mut seen = (String::new(), String::new());
    for task in making {
        let (of_large, of_small) = task.await??;
        if !of_large.is_empty() {
            seen.0 = of_large;
        }
        if !of_small.is_empty() {
            seen.1 = of_small;
        }
    }
    Ok(seen)
}

/// Everything that waits is taken at once, as by a merchant that never fails.
async fn deliver(app: &App) -> anyhow::Result<()> {
    const CLAIM_MAX: usize = 2_000;
    loop {
        let now = app.clock.now();
        let lanes = app.store.lanes(None, 100).await?;
        let wants = lanes.into_iter().map(|due| Want::due_by(now, due.lane, CLAIM_MAX));
        let lease = LeaseToken::assign(app.random.bytes());
        let claimed = app.store.claim(wants.collect(), &lease, app.clock.steady()).await?;
        if claimed.is_empty() {
            return Ok(());
        }
        let taken = claimed.into_iter().map(|event| DeliveryAttempt {
            event: event.id,
            lease: lease.clone(),
            number: event.attempt,
            at: now,
            queued_at: event.queued_at,
            latency_ms: 12,
            http_status: Some(200),
            error: None,
            answer_start: br#"{"received":true}"#.to_vec(),
            verdict: Verdict::Delivered,
        });
        app.store.record(taken.collect()).await?;
    }
}

struct Browser {
    client: Client<HttpConnector, Empty<Bytes>>,
    address: String,
    cookie: String,
}

impl Browser {
    async fn enter(address: &str, entry: &str) -> anyhow::Result<Self> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let request = Request::get(format!("http://{address}{entry}")).body(Empty::new())?;
        let answer = client.request(request).await?;
        let cookie = answer.headers().get("set-cookie").context("a session")?.to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { client, address: address.to_owned(), cookie })
    }

    #[expect(clippy::disallowed_methods, reason = "pages are measured in real time")]
    async fn get_ms(&self, path: &str) -> anyhow::Result<f64> {
        let request = Request::get(format!("http://{}{path}", self.address))
            .header("cookie", &self.cookie)
            .body(Empty::new())?;
        let begun = std::time::Instant::now();
        let answer = self.client.request(request).await?;
        let status = answer.status();
        answer.into_body().collect().await?;
        let took = begun.elapsed().as_secs_f64() * 1_000.0;
        ensure!(status.as_u16() < 500 && status != 401, "{path} was answered {status}");
        Ok(took)
    }
}
