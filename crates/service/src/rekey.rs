//! One master key takes over from another: all that was sealed with the one before is sealed anew.
//!
//! Both are known to the service meanwhile, so that nothing stops. What cannot be made anew outlives the
//! key, sealed with its successor: the pepper of hashes, and the key of the history up to this day.

use crate::app::App;
use crate::domain::Author;
use crate::keys::KeyError;
use crate::store::{SealedIn, StoreError};

/// Secrets sealed anew in one transaction.
const ROWS_MAX: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum RekeyError {
    #[error("no other master key is given, so there is none to take over from")]
    NoOther,
    #[error("the service has not begun with this master key yet")]
    NotServed,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many secrets of each kind were sealed anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedAnew {
    pub webhook_secrets: usize,
    pub phones: usize,
    pub one_time_codes: usize,
}

/// May be cut off and run again.
pub async fn rekey(app: &App, by: &Author) -> Result<SealedAnew, RekeyError> {
    let other = app.keys.other_id().ok_or(RekeyError::NoOther)?;
    if app.store.served_with().await? != Some(app.keys.id()) {
        return Err(RekeyError::NotServed);
    }
    let mut done = SealedAnew::default();
    for place in SealedIn::ALL {
        let rows = seal_anew(app, place).await?;
        match place {
            SealedIn::WebhookSecrets | SealedIn::PreviousWebhookSecrets => {
                done.webhook_secrets += rows;
            }
            SealedIn::Phones => done.phones += rows,
            SealedIn::OneTimeCodes => done.one_time_codes += rows,
        }
    }
    let last_seal = app.store.last_seal().await?.map_or(0, |seal| seal.id);
    let kept = app.keys.bequest(last_seal, app.random.bytes());
    app.store.change_master_key(&other, &app.keys.id(), &kept, app.clock.now(), by).await?;
    Ok(done)
}

async fn seal_anew(app: &App, place: SealedIn) -> Result<usize, RekeyError> {
    let (mut done, mut last) = (0, None);
    loop {
        let rows = app.store.sealed_rows(place, last.as_ref(), ROWS_MAX).await?;
        let Some(end) = rows.last().cloned() else { return Ok(done) };
        let mut anew = Vec::new();
        for row in rows {
            if !app.keys.is_current(&row.sealed) {
                let sealed = app.keys.sealed_anew(&row.sealed, app.random.bytes())?;
                anew.push((row, sealed));
            }
        }
        let count = anew.len();
        // What somebody has changed meanwhile is another secret, sealed by the service as it is now.
        if count == 0 || app.store.seal_anew(place, anew).await? {
            done += count;
            last = Some(end);
        }
    }
}
