//! Places where a drill makes the service fail on purpose. A release build has none of them.

/// A drill wants this place to fail.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("failed on purpose")]
pub(crate) struct OnPurpose;

/// Goes on, unless a drill has put a fault here.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn pass(_place: &'static str) -> Result<(), OnPurpose> {
    Ok(())
}

#[cfg(debug_assertions)]
pub(crate) use armed::pass;

#[cfg(debug_assertions)]
mod armed {
    use std::collections::HashMap;
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{LazyLock, Mutex, PoisonError};

    use super::OnPurpose;

    /// `SVC_FAULT=place=error|panic|abort@n`: what happens at the n-th passage of a place.
    static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| {
        let text = std::env::var("SVC_FAULT").ok()?;
        let (place, rest) = text.split_once('=')?;
        let (kind, passage) = rest.split_once('@')?;
        let (place, kind, at) = (place.to_owned(), kind.to_owned(), passage.parse().ok()?);
        Some(Fault { place, kind, at, passed: AtomicU64::new(0) })
    });

    /// `SVC_FAULT_PLACES=file`: every place that is passed is written there, each of the first times.
    static PLACES: LazyLock<Option<Mutex<Places>>> = LazyLock::new(|| {
        let path = std::env::var("SVC_FAULT_PLACES").ok()?;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path).ok()?;
        Some(Mutex::new(Places { file, passed: HashMap::new() }))
    });

    /// Written of one place; nobody wants a fault later than that.
    const PASSAGES_MAX: u32 = 12;

    struct Fault {
        place: String,
        kind: String,
        at: u64,
        passed: AtomicU64,
    }

    struct Places {
        file: std::fs::File,
        passed: HashMap<&'static str, u32>,
    }

    /// `SVC_FAULT_STRUCK=file`: so that a drill knows that its fault was met.
    fn tell_struck(place: &str) {
        let Ok(path) = std::env::var("SVC_FAULT_STRUCK") else { return };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        if let Ok(mut file) = file {
            let _ = writeln!(file, "{place}");
        }
    }

    pub(crate) fn pass(place: &'static str) -> Result<(), OnPurpose> {
        if let Some(places) = &*PLACES {
            let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
            let passed = places.passed.entry(place).or_default();
            *passed += 1;
            if *passed <= PASSAGES_MAX {
                let _ = writeln!(places.file, "{place}");
            }
        }
        let Some(fault) = &*FAULT else { return Ok(()) };
        if fault.place != place || fault.passed.fetch_add(1, Ordering::Relaxed) + 1 != fault.at {
            return Ok(());
        }
        tell_struck(place);
        match fault.kind.as_str() {
            "abort" => std::process::abort(),
            "panic" => panic!("failed on purpose: {place}"),
            _ => Err(OnPurpose),
        }
    }
}
