//! `svc listen`: an application's events, forwarded to a handler on this machine as they happen.
//!
//! It reads the partner's feed, so no address of this machine need be known to the service. Where it
//! got to is in a file; after a break it goes on from there.

mod bookmark;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::Method;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;
use svc_client::{Client, Error, FeedEvent, FeedPage};
use svc_service::app::Clock;
use svc_service::domain::EventId;
use tokio::sync::watch;

use crate::http::{Exchange, Http, address};
use crate::sandbox::MerchantArgs;
use crate::serve::StopSignals;
use crate::signed_headers::signed_headers;
use crate::{output, webhook_secret};
use bookmark::{Bookmark, Place};

/// How often the feed is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// A handler that does not take an event is asked again after this, doubling.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// As the service itself waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
#[command(override_usage = "svc listen [OPTIONS] --forward-to <URL>")]
#[command(after_help = "Example (with the variables svc demo prints):
  svc listen --forward-to http://127.0.0.1:4000/api/svc/webhook

The first time it begins with what happens from now on (--from-start: with
the oldest event); after that, where it stopped. An event that is not
answered with a 2xx is sent again until it is. Each is signed with
SVC_WEBHOOK_SECRET and has the headers of a real delivery.")]
pub(crate) struct Args {
    /// Address of the handler
    #[arg(long, value_name = "URL", value_parser = address)]
    forward_to: url::Url,
    #[command(flatten)]
    merchant: MerchantArgs,
    /// Where to remember what was forwarded [default: in the user's state directory]
    #[arg(long, value_name = "FILE")]
    cursor: Option<PathBuf>,
    /// Begin with the oldest event, whatever was forwarded before
    #[arg(long)]
    from_start: bool,
    /// Go on when the handler answers 4xx, instead of sending the event again
    #[arg(long)]
    skip_refused: bool,
    /// File with the webhook secret, instead of SVC_WEBHOOK_SECRET
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Print one line of JSON for each answer
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    at: String,
    event: &'a str,
    external_transaction_id: &'a str,
    payment_status: &'a str,
    attempt: u32,
    http_status: Option<u16>,
    ms: u128,
    error: Option<String>,
}

struct Listener {
    client: Client,
    merchant: MerchantArgs,
    http: Http,
    forward_to: String,
    secret: SecretString,
    skip_refused: bool,
    json: bool,
    bookmark: Bookmark,
    stopped: watch::Receiver<bool>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    if args.merchant.is_live() {
        bail!("svc listen is for sandboxes: in production the service delivers webhooks itself");
    }
    let client = args.merchant.client()?;
    let place = match args.cursor {
        Some(path) => Place::Named(path),
        None => Place::standard(args.merchant.base_url(), client.application_uuid())?,
    };
    let mut listener = Listener {
        http: Http::new()?,
        forward_to: args.forward_to.to_string(),
        secret: webhook_secret::read(args.secret_file.as_deref())?,
        skip_refused: args.skip_refused,
        json: args.json,
        bookmark: Bookmark::open(place, args.from_start)?,
        stopped: stop_signal()?,
        merchant: args.merchant,
        client,
    };
    listener.begin(args.from_start).await?;
    listener.listen().await
}

/// Becomes true when somebody wants us to stop.
fn stop_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let signals = StopSignals::listen()?;
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        signals.received().await;
        let _ = tell.send(true);
    });
    Ok(told)
}

impl Listener {
    /// Without a bookmark, what happened before is not news.
    async fn begin(&mut self, from_start: bool) -> anyhow::Result<()> {
        let mut passed = 0;
        if self.bookmark.is_new() && !from_start {
            loop {
                let page = self.events().await.map_err(|fault| self.merchant.explain(fault))?;
                passed += page.events.len();
                let ids = page.events.into_iter().map(|event| event.id).collect();
                self.bookmark.turn(page.next_cursor, ids, page.has_more)?;
                if !page.has_more {
                    break;
                }
            }
        } else {
            // Whether the credentials are right is told now, not with the first event.
            self.events().await.map_err(|fault| self.merchant.explain(fault))?;
        }
        self.bookmark.begun()?;
        output::note(format_args!(
            "Listening; events go to {}. {}Stop: Ctrl-C",
            self.forward_to,
            if passed > 0 { format!("{passed} older ones are left out. ") } else { String::new() }
        ));
        Ok(())
    }

    async fn events(&self) -> Result<FeedPage, Error> {
        self.client.events(self.bookmark.cursor()).await
    }

    async fn listen(&mut self) -> anyhow::Result<()> {
        loop {
            match self.events().await {
                Ok(page) => {
                    for event in &page.events {
                        if !self.bookmark.knows(&event.id) && !self.forward(event).await? {
                            return Ok(());
                        }
                    }
                    let ids = page.events.into_iter().map(|event| event.id).collect();
                    self.bookmark.turn(page.next_cursor, ids, page.has_more)?;
                    if page.has_more {
                        continue;
                    }
                }
                Err(fault) if fault.is_passing() => output::note(self.merchant.explain(fault)),
                Err(fault) => return Err(self.merchant.explain(fault)),
            }
            if self.stopped_within(PERIOD).await {
                return Ok(());
            }
        }
    }

    /// Until the handler takes it; false when we are to stop.
    async fn forward(&mut self, event: &FeedEvent) -> anyhow::Result<bool> {
        let id = EventId::parse(&event.id).context("the feed has an event without an id")?;
        let mut pause = PAUSE_MIN;
        for attempt in 1.. {
            let told = self.post(&id, event, attempt).await;
            self.print(event, attempt, &told);
            let status = told.answer.as_ref().map(|answer| answer.status).ok();
            let taken = status.is_some_and(|status| (200..300).contains(&status));
            let refused = status.is_some_and(|status| (400..500).contains(&status));
            if let Some(advice) = status.filter(|_| attempt == 1).and_then(advice) {
                output::note(advice);
            }
            if taken || (refused && self.skip_refused) {
                self.bookmark.forwarded(&event.id)?;
                return Ok(!*self.stopped.borrow());
            }
            if self.stopped_within(pause).await {
                return Ok(false);
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        Ok(true)
    }

    async fn post(&self, id: &EventId, event: &FeedEvent, attempt: u32) -> Exchange {
        let body = event.payload.get().as_bytes();
        let now = Clock::system().now();
        let headers = signed_headers(self.secret.expose_secret(), id, body, attempt, now);
        let (method, url) = (Method::POST, &self.forward_to);
        self.http.send(method, url, headers, body.to_vec(), ANSWER_TIMEOUT).await
    }

    fn print(&self, event: &FeedEvent, attempt: u32, told: &Exchange) {
        let payload: Value = serde_json::from_str(event.payload.get()).unwrap_or_default();
        let text = |key: &str| payload["data"][key].as_str().unwrap_or_default();
        let line = Line {
            at: Clock::system().now().to_string(),
            event: &event.id,
            external_transaction_id: text("externalTransactionId"),
            payment_status: text("paymentStatus"),
            attempt,
            http_status: told.answer.as_ref().map(|answer| answer.status).ok(),
            ms: told.took.as_millis(),
            error: told.answer.as_ref().err().map(ToString::to_string),
        };
        if self.json {
            output::json(&line);
            return;
        }
        let answer = match (line.http_status, &line.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_default(),
        };
        output::line(format_args!(
            "{}  {}  {}  {answer}  {} ms",
            clock_time(Clock::system().now()),
            line.external_transaction_id,
            line.payment_status,
            line.ms
        ));
    }

    /// Waits, unless we are to stop first.
    async fn stopped_within(&mut self, time: Duration) -> bool {
        let _ = tokio::time::timeout(time, self.stopped.wait_for(|stopped| *stopped)).await;
        *self.stopped.borrow()
    }
}

fn clock_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%H:%M:%SZ").to_string()
}

/// What usually lies behind an answer.
fn advice(status: u16) -> Option<&'static str> {
    match status {
        401 | 403 => Some(
            "The handler refuses the signature: does it have the same SVC_WEBHOOK_SECRET? \
             svc verify tells what is wrong with one.",
        ),
        404 | 405 => {
            Some("Is --forward-to the whole address of the route that takes webhooks by POST?")
        }
        _ => None,
    }
}
