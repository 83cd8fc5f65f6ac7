//! The history of the service, sealed: any row that was edited, removed, added or moved is found.
//!
//! Rows are written in the transaction of the change they tell of, many at a time, and a chain from
//! row to row would make those wait for each other. So a seal covers a stretch of rows: a keyed hash of
//! them and of the seal before. Whoever can write the database but does not have the master key cannot
//! make one.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::store::{AuditEntry, AuditSeal, StoreError};

/// Rows under one seal: a few hundred kilobytes to read for a check.
const ROWS_MAX: usize = 1_000;
/// How often the log says which seal is the last, while there are new ones.
const TOLD_PERIOD: Duration = Duration::from_hours(1);
/// Seals read at once.
const SEALS_READ: usize = 500;

/// Seals what is old enough that nothing older can still appear.
#[derive(Debug, Default)]
pub struct Sealer {
    mark: Option<(Instant, i64)>,
    /// The last seal this process saw. Should it be gone or another, somebody else was at work: nothing is
    /// sealed over that.
    known: Option<AuditSeal>,
    /// The last seal that was told, and when.
    told: Option<(i64, Instant)>,
}

impl Sealer {
    /// To be called now and then.
    pub async fn tick(&mut self, app: &App) -> Result<(), StoreError> {
        let settles_after = app.store.audit_settles_after();
        if settles_after.is_zero() {
            let last = app.store.last_audit_id().await?;
            return self.seal(app, last).await;
        }
        match self.mark {
            Some((at, last)) if at.elapsed() >= settles_after => {
                if !app.store.audit_is_settled().await? {
                    return Ok(());
                }
                self.mark = None;
                self.seal(app, last).await
            }
            Some(_) => Ok(()),
            None => {
                self.mark = Some((app.clock.stopwatch(), app.store.last_audit_id().await?));
                Ok(())
            }
        }
    }

    async fn seal(&mut self, app: &App, last_id: i64) -> Result<(), StoreError> {
        if let Some(known) = &self.known {
            let stored = app.store.seals_after(known.id - 1, 1).await?;
            if stored.first().is_none_or(|stored| stored.id != known.id || stored.mac != known.mac)
            {
                tracing::error!(
                    seal = known.id,
                    "a seal of the history is gone or was changed: nothing more is sealed; see svc audit verify"
                );
                return Ok(());
            }
        }
        seal_up_to(app, last_id).await?;
        self.known = app.store.last_seal().await?;
        // Who keeps the log elsewhere keeps a witness of the history with it.
        if let Some(seal) = &self.known
            && self.told.is_none_or(|(id, at)| id != seal.id && at.elapsed() >= TOLD_PERIOD)
        {
            self.told = Some((seal.id, app.clock.stopwatch()));
            tracing::info!(head = %seal, "the history is sealed");
        }
        Ok(())
    }
}

/// Seals every row up to this one.
pub async fn seal_up_to(app: &App, last_id: i64) -> Result<(), StoreError> {
    loop {
        let head = app.store.last_seal().await?;
        let after = head.as_ref().map_or(0, |seal| seal.last_id);
        let rows = app.store.audit_rows(after, last_id, ROWS_MAX).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        let mut seal = AuditSeal {
            id: head.as_ref().map_or(1, |seal| seal.id + 1),
            last_id: last.id,
            covered: i64::try_from(rows.len()).unwrap_or(i64::MAX),
            mac: Vec::new(),
            at: app.clock.now(),
        };
        seal.mac = app.keys.seal_history(&told(head.as_ref(), &seal, &rows));
        if !app.store.add_seal(seal).await? {
            // Another node was quicker, and goes on.
            return Ok(());
        }
    }
}

/// What a check of the whole history found.
#[derive(Debug, Default)]
pub struct Verdict {
    pub rows: i64,
    pub seals: i64,
    /// Rows that no seal covers yet.
    pub unsealed: i64,
    /// The last seal, to be kept where nobody can change it.
    pub head: Option<AuditSeal>,
    pub faults: Vec<Fault>,
}

/// A stretch of the history that is not as it was sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Rows of this seal were edited, removed, added or moved.
    Rows { seal: i64, after_id: i64, last_id: i64, sealed: i64, found: i64 },
    /// This seal was the last when the master key was changed; it is gone, or another stands in its place.
    Known { id: i64 },
    /// A seal is missing, or does not follow the one before.
    Seal { id: i64 },
    /// The history ends before the seal that was kept elsewhere, or that seal was another.
    Head,
}

/// Reads the whole history. `kept` is a number and mac of a seal as they were noted elsewhere.
pub async fn verify(app: &App, kept: Option<(i64, &[u8])>) -> Result<Verdict, StoreError> {
    let mut verdict = Verdict::default();
    let mut head: Option<AuditSeal> = None;
    let mut kept_found = kept.is_none();
    let mut known: Vec<_> = app.keys.known_seals().collect();
    loop {
        let after = head.as_ref().map_or(0, |seal| seal.id);
        let seals = app.store.seals_after(after, SEALS_READ).await?;
        if seals.is_empty() {
            break;
        }
        for seal in seals {
            let expected = head.as_ref().map_or(1, |seal| seal.id + 1);
            if seal.id != expected {
                verdict.faults.push(Fault::Seal { id: expected });
            }
            check(app, head.as_ref(), &seal, &mut verdict).await?;
            kept_found |= kept == Some((seal.id, seal.mac.as_slice()));
            known.retain(|known| *known != (seal.id, seal.mac.as_slice()));
            head = Some(seal);
        }
    }
    if !kept_found {
        verdict.faults.push(Fault::Head);
    }
    verdict.faults.extend(known.iter().map(|(id, _)| Fault::Known { id: *id }));
    let after = head.as_ref().map_or(0, |seal| seal.last_id);
    verdict.unsealed = app.store.count_audit_after(after).await?;
    verdict.head = head;
    Ok(verdict)
}

async fn check(
    app: &App,
    before: Option<&AuditSeal>,
    seal: &AuditSeal,
    verdict: &mut Verdict,
) -> Result<(), StoreError> {
    let after = before.map_or(0, |seal| seal.last_id);
    // Numbers begin with one; whatever stands before that was put there.
    let strays = if before.is_none() { app.store.count_audit_before_first().await? } else { 0 };
    let (intact, found) = match app.store.audit_rows(after, seal.last_id, 2 * ROWS_MAX).await {
        Ok(rows) => {
            let found = i64::try_from(rows.len()).unwrap_or(i64::MAX);
            let told = told(before, seal, &rows);
            (app.keys.is_history(seal.id, &told, &seal.mac) && found == seal.covered, found)
        }
        // A row that cannot even be read is not as it was.
        Err(StoreError::Corrupt(_)) => {
            let later = app.store.count_audit_after(seal.last_id).await?;
            (false, app.store.count_audit_after(after).await? - later)
        }
        Err(fault) => return Err(fault),
    };
    let found = found + strays;
    verdict.rows += found;
    verdict.seals += 1;
    if !intact || strays > 0 {
        verdict.faults.push(Fault::Rows {
            seal: seal.id,
            after_id: after,
            last_id: seal.last_id,
            sealed: seal.covered,
            found,
        });
    }
    Ok(())
}

/// What a seal is made of. Its own number, reach and time are part of it, so that none stands in for another.
fn told(before: Option<&AuditSeal>, seal: &AuditSeal, rows: &[AuditEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64 + rows.len() * 200);
    field(&mut bytes, Some(before.map_or(&[][..], |seal| &seal.mac)));
    for number in [seal.id, seal.last_id, seal.covered, seal.at.as_millisecond()] {
        field(&mut bytes, Some(&number.to_be_bytes()));
    }
    for row in rows {
        field(&mut bytes, Some(&row.id.to_be_bytes()));
        field(&mut bytes, Some(&row.at.as_millisecond().to_be_bytes()));
        let texts = [
            Some(&row.actor),
            Some(&row.action),
            Some(&row.subject),
            row.before.as_ref(),
            row.after.as_ref(),
            Some(&row.cause),
            Some(&row.request_id),
        ];
        for text in texts {
            field(&mut bytes, text.map(|text| text.as_bytes()));
        }
    }
    bytes
}

/// With its length before it, so that no text can pass into the next; nothing is not the empty text.
fn field(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    let length = value.map_or(u64::MAX, |value| value.len() as u64);
    bytes.extend(length.to_be_bytes());
    bytes.extend(value.unwrap_or_default());
}
