//! Callers that create, pay and cancel orders whatever happens to the service, remember what they
//! were promised, and ask afterwards whether it was kept.
//!
//! The judge knows nothing of the service but its API, its command line and what merchants heard.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::Value;
use tokio::task::JoinSet;

use super::ledger::Ledger;
use super::waiting::ms;
use crate::merchant::{Heard, Merchant};
use crate::partner::{Caller, Partner};
use crate::process::{Data, Server, svc};
use crate::target::{mix, order_id};

/// No call takes longer, whatever happens behind the service (goal G12).
const CALL_MAX: Duration = Duration::from_secs(10);
/// After the last start everything must have been told within this.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(90);
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// What the callers were promised.
#[derive(Default)]
struct Promised {
    /// Every id a caller ever sent.
    tried: HashSet<String>,
    /// Ids and the reference that was answered.
    created: HashMap<String, String>,
    /// Ids and the final status that was answered.
    settled: HashMap<String, String>,
    refused: u64,
    slowest: Duration,
}

pub(super) struct Crowd {
    partner: Partner,
    merchant: Merchant,
    promised: Arc<Mutex<Promised>>,
    seed: u64,
    callers: u64,
    rounds: u64,
}

/// The callers at work; they stop when this is dropped.
pub(super) struct AtWork(JoinSet<()>);

impl AtWork {
    pub(super) async fn stop(mut self) {
        self.0.shutdown().await;
    }
}

impl Crowd {
    pub(super) async fn gather(data: &Data, seed: u64, callers: u64) -> anyhow::Result<Self> {
        Ok(Self {
            partner: Partner::create(data).await?,
            merchant: Merchant::start().await?,
            promised: Arc::default(),
            seed,
            callers,
            rounds: 0,
        })
    }

    /// Begins to call the service at these addresses, each caller one of them.
    pub(super) async fn begin(&mut self, addresses: &[&str]) -> anyhow::Result<AtWork> {
        let doors = self.callers_at(addresses).await?;
        self.rounds += 1;
        let mut work = JoinSet::new();
        for lot in 0..self.callers {
            let caller = Arc::clone(&doors[lot as usize % doors.len()]);
            let seed = self.seed ^ mix(self.rounds << 20 | lot);
            work.spawn(call_on(caller, self.merchant.url(), seed, Arc::clone(&self.promised)));
        }
        Ok(AtWork(work))
    }

    /// Orders acknowledged so far.
    pub(super) fn acknowledged(&self) -> usize {
        self.promised.lock().expect("no holder panics").created.len()
    }

    /// Ids and references.
    pub(super) fn all_acknowledged(&self) -> Vec<(String, String)> {
        let promised = self.promised.lock().expect("no holder panics");
        promised.created.iter().map(|(id, reference)| (id.clone(), reference.clone())).collect()
    }

    /// Ids and their final status.
    pub(super) fn all_settled(&self) -> Vec<(String, String)> {
        let promised = self.promised.lock().expect("no holder panics");
        promised.settled.iter().map(|(id, status)| (id.clone(), status.clone())).collect()
    }

    /// What nothing may keep in plain.
    pub(super) fn secrets(&self, caller: &Caller) -> Vec<String> {
        let mut secrets = self.partner.secrets();
        secrets.push(caller.token().to_owned());
        secrets
    }

    /// Some order that was acknowledged.
    pub(super) fn any_acknowledged(&self) -> String {
        let promised = self.promised.lock().expect("no holder panics");
        promised.created.keys().next().cloned().unwrap_or_default()
    }

    pub(super) async fn caller_at(&self, address: &str) -> anyhow::Result<Arc<Caller>> {
        Ok(Arc::new(self.partner.caller(address).await?))
    }

    /// One caller for each of these addresses.
    pub(super) async fn callers_at(&self, addresses: &[&str]) -> anyhow::Result<Vec<Arc<Caller>>> {
        let mut callers = Vec::new();
        for address in addresses {
            callers.push(self.caller_at(address).await?);
        }
        Ok(callers)
    }

    pub(super) fn merchant(&self) -> &Merchant {
        &self.merchant
    }

    /// Waits until every event has been told, then holds what is stored against what was promised.
    pub(super) async fn judge(
        self,
        data: &Data,
        server: &Server,
        ledger: &mut Ledger,
    ) -> anyhow::Result<()> {
        ledger.never("events still waiting at the end", until_told(data).await?);
        let caller = self.partner.caller(&server.target.address).await?;
        let promised = std::mem::take(&mut *self.promised.lock().expect("no holder panics"));
        ensure!(!promised.settled.is_empty(), "no state was acknowledged: this proves nothing");
        compare(&promised, &caller, &self.merchant.heard(), ledger).await
    }
}

async fn call_on(
    caller: Arc<Caller>,
    merchant_url: String,
    seed: u64,
    promised: Arc<Mutex<Promised>>,
) {
    let all = || promised.lock().expect("no holder panics");
    for number in 0.. {
        let id = order_id(seed, number);
        all().tried.insert(id.clone());
        let Some(created) = timed(&promised, caller.create(&id, &merchant_url)).await else {
            continue;
        };
        all().created.insert(id.clone(), created);
        // Some stay pending.
        let outcome = ["confirm", "cancel", "confirm", ""][(mix(seed ^ number) % 4) as usize];
        if outcome.is_empty() {
            continue;
        }
        let Some(status) = timed(&promised, caller.simulate(&id, outcome)).await else { continue };
        all().settled.insert(id, status);
    }
}

/// What was answered, if it was good; the time is kept in any case.
#[expect(clippy::disallowed_methods, reason = "callers measure real time")]
async fn timed<T>(
    promised: &Mutex<Promised>,
    call: impl Future<Output = anyhow::Result<T>>,
) -> Option<T> {
    let begun = Instant::now();
    let answer = tokio::time::timeout(CALL_MAX * 2, call).await;
    let mut all = promised.lock().expect("no holder panics");
    all.slowest = all.slowest.max(begun.elapsed());
    let answer = answer.ok().and_then(Result::ok);
    all.refused += u64::from(answer.is_none());
    answer
}

/// How many events are still queued when none is left or time is up.
async fn until_told(data: &Data) -> anyhow::Result<u64> {
    let looks = DRAIN_TIMEOUT.as_millis() / LOOK_PERIOD.as_millis();
    let mut left = u64::MAX;
    for _ in 0..looks {
        let arguments = ["webhook", "list", "--state", "queued", "--json", "--database", &data.url];
        let listed: Value = svc(&arguments).await?;
        left = listed.as_array().map_or(0, Vec::len) as u64;
        if left == 0 {
            break;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    Ok(left)
}

#[derive(Default)]
struct Broken {
    lost: u64,
    other_reference: u64,
    reference_twice: u64,
    taken_back: u64,
    not_told: u64,
    told_wrong: u64,
    told_stale: u64,
    told_of_nothing: u64,
    two_ends: u64,
    told_twice: u64,
}

async fn compare(
    promised: &Promised,
    caller: &Caller,
    heard: &[Heard],
    ledger: &mut Ledger,
) -> anyhow::Result<()> {
    let mut told: HashMap<&str, Vec<&Heard>> = HashMap::new();
    for event in heard {
        told.entry(&event.order).or_default().push(event);
    }
    let (mut stored_orders, mut references, mut broken) = (0, HashSet::new(), Broken::default());
    for id in &promised.tried {
        let events = told.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        let Some(stored) = caller.query(id).await? else {
            broken.lost += u64::from(promised.created.contains_key(id));
            broken.told_of_nothing += u64::from(!events.is_empty());
            continue;
        };
        stored_orders += 1;
        let differs =
            promised.created.get(id).is_some_and(|answered| *answered != stored.reference);
        broken.other_reference += u64::from(differs);
        let differs = promised.settled.get(id).is_some_and(|answered| *answered != stored.status);
        broken.taken_back += u64::from(differs);
        // Nothing final is told but the truth, and nothing older after it.
        broken.not_told += u64::from(!events.iter().any(|event| event.status == stored.status));
        let wrong = |event: &&Heard| event.status != "PEN" && event.status != stored.status;
        broken.told_wrong += u64::from(events.iter().any(wrong));
        let mut after_the_end = events.iter().skip_while(|event| event.status == "PEN");
        broken.told_stale += u64::from(after_the_end.any(|event| event.status == "PEN"));
        broken.reference_twice += u64::from(!references.insert(stored.reference));
    }
    // Also of orders that others have created.
    for events in told.values() {
        let ends: HashSet<_> =
            events.iter().map(|event| &event.status).filter(|status| *status != "PEN").collect();
        broken.two_ends += u64::from(ends.len() > 1);
        let news: HashSet<_> = events.iter().map(|event| (&event.status, &event.id)).collect();
        let statuses: HashSet<_> = events.iter().map(|event| &event.status).collect();
        broken.told_twice += u64::from(news.len() > statuses.len());
    }
    let distinct: HashSet<_> = heard.iter().map(|event| (&event.id, &event.body)).collect();
    let ids: HashSet<_> = heard.iter().map(|event| &event.id).collect();
    ledger.tell("orders tried", promised.tried.len());
    ledger.tell("orders acknowledged", promised.created.len());
    ledger.tell("orders stored", stored_orders);
    ledger.tell("final states acknowledged", promised.settled.len());
    ledger.tell("calls refused or cut", promised.refused);
    ledger.tell("events heard", ids.len());
    ledger.tell("deliveries repeated", heard.len() - ids.len());
    ledger.promise("slowest call", ms(promised.slowest), promised.slowest <= CALL_MAX);
    ledger.never("acknowledged orders lost", broken.lost);
    ledger.never("acknowledged states taken back", broken.taken_back);
    ledger.never("orders whose reference changed", broken.other_reference);
    ledger.never("references given twice", broken.reference_twice);
    ledger.never("states whose merchant was not told", broken.not_told);
    ledger.never("merchants told what did not happen", broken.told_wrong + broken.told_of_nothing);
    ledger.never("orders whose merchant was told two ends", broken.two_ends);
    ledger.never("changes told by two events", broken.told_twice);
    ledger.never("older events after newer ones", broken.told_stale);
    ledger.never("events whose bytes changed", (distinct.len() - ids.len()) as u64);
    Ok(())
}
