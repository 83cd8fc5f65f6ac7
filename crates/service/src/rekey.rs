//! One master key takes over from another: all that was sealed with the one before is sealed anew.
//!
//! Both are known to the service meanwhile, so that nothing stops. What cannot be made anew outlives the
//! key, sealed with its successor: the pepper of hashes, and the key of the history up to this day.

use crate::app::App;
use crate::domain::Author;
use crate::keys::KeyError;
use crate::store::{SealedIn, SealedRow, StoreError};

/// Rows looked at, and secrets sealed anew, in one go.
const ROWS_MAX: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum RekeyError {
    #[error("no other master key is given, so there is none to take over from")]
    NoOther,
    #[error("the service has not begun with this master key yet")]
    NotServed,
    #[error("the database goes by this master key already, and the other was never in use")]
    GoesByIt,
    /// Table and key of each.
    #[error("{} stored secrets can be read with neither key: {}", .0.len(), some(.0))]
    Unreadable(Vec<String>),
    #[error("somebody else has changed the master key just now")]
    Meanwhile,
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn some(rows: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    rows[..rows.len().min(SHOWN_MAX)].join(", ")
}

/// How many secrets of each kind were sealed anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedAnew {
    pub webhook_secrets: usize,
    pub phones: usize,
    pub one_time_codes: usize,
    /// Table and key of what is left as it is.
    pub unreadable: Vec<String>,
}

/// May be cut off and run again. With `leave_unreadable`, what neither key opens stays as it is.
pub async fn rekey(
    app: &App,
    leave_unreadable: bool,
    by: &Author,
) -> Result<SealedAnew, RekeyError> {
    let other = app.keys.other_id().ok_or(RekeyError::NoOther)?;
    let served = app.store.served_with().await?;
    if !served.contains(&app.keys.id()) {
        return Err(RekeyError::NotServed);
    }
    // Else somebody goes back to it, after the other has been in use.
    if app.keys.is_the_databases() && !app.keys.has_taken_over() && !served.contains(&other) {
        return Err(RekeyError::GoesByIt);
    }
    let mut done = SealedAnew::default();
    seal_all_anew(app, &mut done).await?;
    if !done.unreadable.is_empty() && !leave_unreadable {
        return Err(RekeyError::Unreadable(done.unreadable));
    }
    if !app.keys.has_taken_over() {
        let last = app.store.last_seal().await?;
        let last = last.as_ref().map(|seal| (seal.id, &seal.mac[..]));
        let stored = app.keys.bequest(last, app.random.bytes());
        let (from, id, now) = (app.keys.stored(), app.keys.id(), app.clock.now());
        if !app.store.change_master_key(from, &stored, &id, now, by).await? {
            return Err(RekeyError::Meanwhile);
        }
    }
    // Until now a command that knew only the other key could seal with it behind our back.
    done.unreadable.clear();
    seal_all_anew(app, &mut done).await?;
    Ok(done)
}

async fn seal_all_anew(app: &App, done: &mut SealedAnew) -> Result<(), StoreError> {
    for place in SealedIn::ALL {
        let rows = seal_anew(app, place, &mut done.unreadable).await?;
        match place {
            SealedIn::WebhookSecrets | SealedIn::PreviousWebhookSecrets => {
                done.webhook_secrets += rows;
            }
            SealedIn::Phones => done.phones += rows,
            SealedIn::OneTimeCodes => done.one_time_codes += rows,
        }
    }
    Ok(())
}

async fn seal_anew(
    app: &App,
    place: SealedIn,
    unreadable: &mut Vec<String>,
) -> Result<usize, StoreError> {
    let (mut done, mut last) = (0, None);
    loop {
        let rows = app.store.sealed_rows(place, last.as_ref(), ROWS_MAX).await?;
        let Some(end) = rows.last().cloned() else { return Ok(done) };
        let (mut anew, mut strange) = (Vec::new(), Vec::new());
        for row in rows {
            match sealed_anew(app, &row) {
                Ok(None) => {}
                Ok(Some(sealed)) => anew.push((row, sealed)),
                Err(_) => strange.push(row.to_string()),
            }
        }
        let count = anew.len();
        // What somebody has changed meanwhile is another secret, sealed by the service as it is now.
        if count == 0 || app.store.seal_anew(place, anew).await? {
            done += count;
            unreadable.append(&mut strange);
            last = Some(end);
        }
    }
}

/// Nothing where there is no secret, or one of the current key.
fn sealed_anew(app: &App, row: &SealedRow) -> Result<Option<Vec<u8>>, KeyError> {
    match &row.sealed {
        Some(sealed) if !app.keys.is_current(sealed) => {
            app.keys.sealed_anew(sealed, app.random.bytes()).map(Some)
        }
        _ => Ok(None),
    }
}
