//! A day's statement of a rail beside our books: what it has and we have not, and the other way round.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Date;

use super::settle;
use super::settle::spoken_of;
use crate::app::App;
use crate::domain::{
    AttemptId, Centimos, ExceptionKind, Notice, ReferenceNumber, Word, luanda_midnight,
};
use crate::rails::{Connector, ConnectorError, Listing, Rail};
use crate::store::{Received, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error("the simulator moves no money and has no statements")]
    NoStatements,
    #[error(transparent)]
    Rail(#[from] ConnectorError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reconciliation {
    pub findings: Vec<Finding>,
    /// Lines of the statement that say nothing we understand, as they came.
    pub unread: Vec<String>,
    /// Why nothing is told as missing there: the statement of the day before, where it may stand, was not to be had.
    pub unasked: Option<ConnectorError>,
}

/// A payment that one of the two has, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rail's id; we know none of a payment that it does not have.
    pub rail_payment_id: Option<String>,
    pub order: Option<ReferenceNumber>,
    pub amount: Centimos,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Matched,
    /// Both have it, and we with another amount.
    AmountDiffers {
        ours: Centimos,
    },
    /// The rail has it and we have not.
    MissingHere,
    /// It was missing here; now its order is paid.
    Confirmed,
    /// It was missing here; now it is among the exceptions.
    Exception(ExceptionKind),
    /// It was missing here; now it is on record and changes nothing.
    Noted,
    /// Our order was paid by the rail that day, and its statements do not have it.
    MissingThere,
}

/// With `apply`, what is missing here is settled as if the rail had told us that day.
pub async fn reconcile(
    app: &App,
    rail: &Rail,
    date: Date,
    apply: bool,
) -> Result<Reconciliation, ReconcileError> {
    let rail = rail.connector().ok_or(ReconcileError::NoStatements)?;
    let Listing { mut notices, unread } = rail.statement(date).await?;
    // Money that was taken back the same day pays nothing.
    notices.sort_by_key(|notice| !matches!(notice.word, Word::Reversed(_)));
    let mut findings = Vec::new();
    let mut paid = HashSet::new();
    for notice in notices {
        let finding = compare(app, notice, apply, &mut paid).await?;
        findings.push(finding);
    }
    let unasked = match missing_there(app, rail, date, paid).await {
        Ok(missing) => {
            findings.extend(missing);
            None
        }
        // What was settled is told all the same.
        Err(ReconcileError::Rail(fault)) => Some(fault),
        Err(fault) => return Err(fault),
    };
    Ok(Reconciliation { findings, unread, unasked })
}

async fn compare(
    app: &App,
    notice: Notice,
    apply: bool,
    paid: &mut HashSet<ReferenceNumber>,
) -> Result<Finding, StoreError> {
    let (order, attempt) = spoken_of(app, &notice).await?.unzip();
    let order = order.map(|dossier| dossier.order.reference_number);
    if notice.word.is_payment() {
        paid.extend(order.clone());
    }
    let (id, amount) = (notice.rail_payment_id.clone(), notice.word.amount());
    let ours = received(app, &notice, order.as_ref(), attempt.flatten().as_ref()).await?;
    let verdict = match ours {
        Some(ours) if ours == amount => Verdict::Matched,
        Some(ours) => Verdict::AmountDiffers { ours },
        None if !apply => Verdict::MissingHere,
        None => match settle(app, notice, "").await? {
            Received::Confirmed => Verdict::Confirmed,
            Received::Exception(kind) => Verdict::Exception(kind),
            // Its notice came while we looked.
            Received::Duplicate => Verdict::Matched,
            Received::Noted => Verdict::Noted,
        },
    };
    Ok(Finding { rail_payment_id: Some(id), order, amount, verdict })
}

/// What we know of this money: by its id, if that is not of another order's or attempt's; or by the name of its
/// own that other money under a used id has.
async fn received(
    app: &App,
    notice: &Notice,
    order: Option<&ReferenceNumber>,
    attempt: Option<&AttemptId>,
) -> Result<Option<Centimos>, StoreError> {
    let by_id = app.store.received(notice).await?.filter(|known| known.is_of(order, attempt));
    match by_id {
        Some(known) if known.amount == notice.word.amount() => Ok(Some(known.amount)),
        _ => {
            let rail_payment_id = notice.own_name(order, attempt);
            let named = Notice { rail_payment_id, ..notice.clone() };
            let by_name = app.store.received(&named).await?;
            Ok(by_name.or(by_id).map(|known| known.amount))
        }
    }
}

async fn order_of(app: &App, notice: &Notice) -> Result<Option<ReferenceNumber>, StoreError> {
    Ok(spoken_of(app, notice).await?.map(|(dossier, _)| dossier.order.reference_number))
}

/// Around midnight a payment may stand in the statement of the day before or after.
async fn missing_there(
    app: &App,
    rail: &Connector,
    date: Date,
    mut told: HashSet<ReferenceNumber>,
) -> Result<Vec<Finding>, ReconcileError> {
    let begin = |day| luanda_midnight(day).unwrap_or(Timestamp::MAX);
    let (from, until) = (begin(date), begin(date.saturating_add(jiff::Span::new().days(1))));
    let mut ours = app.store.paid_by_rail(rail.name(), from, until).await?;
    ours.retain(|(order, _)| !told.contains(order));
    if ours.is_empty() {
        return Ok(Vec::new());
    }
    for day in [date.yesterday(), date.tomorrow()].into_iter().flatten() {
        let notices = match rail.statement(day).await {
            Ok(listing) => listing.notices,
            // What is not told by then is missing: the rail may not have closed the next day yet.
            Err(_) if day > date => Vec::new(),
            Err(fault) => return Err(fault.into()),
        };
        for notice in notices.iter().filter(|notice| notice.word.is_payment()) {
            told.extend(order_of(app, notice).await?);
        }
    }
    let missing = ours.into_iter().filter(|(order, _)| !told.contains(order));
    Ok(missing
        .map(|(order, amount)| Finding {
            rail_payment_id: None,
            order: Some(order),
            amount,
            verdict: Verdict::MissingThere,
        })
        .collect())
}
