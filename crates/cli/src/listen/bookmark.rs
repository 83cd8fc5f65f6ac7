//! Where `svc listen` got to: the feed's cursor, and which of the young events after it were forwarded.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

pub(super) struct Bookmark {
    place: Place,
    kept: Kept,
    /// Ids of the reading under way, which becomes the next set of young ones.
    reading: BTreeSet<String>,
    is_new: bool,
}

/// Which file it is.
pub(super) enum Place {
    /// By a person: its folder is not ours to make.
    Named(PathBuf),
    Standard(PathBuf),
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// Somebody has listened with it: what comes after it is news. Before that, older events are passed over.
    /// (Files of older versions do not say it; they have a cursor by then.)
    begun: Option<bool>,
    cursor: Option<String>,
    /// The cursor stays half a minute behind: these come again and are known.
    forwarded: BTreeSet<String>,
}

impl Bookmark {
    /// Nothing is written until the service has answered.
    pub(super) fn open(place: Place, anew: bool) -> anyhow::Result<Self> {
        let path = place.path();
        let kept = match std::fs::read_to_string(path) {
            Ok(_) if anew => None,
            Ok(text) => Some(serde_json::from_str(&text).with_context(|| {
                format!("{} is damaged; remove it to begin with what happens now", path.display())
            })?),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => None,
            Err(fault) => {
                let refused = || format!("cannot read {}; name another --cursor", path.display());
                return Err(fault).with_context(refused);
            }
        };
        let mut kept: Kept = kept.unwrap_or_default();
        let is_new = !kept.begun.unwrap_or(kept.cursor.is_some());
        kept.begun = Some(!is_new);
        // We may have ended in the middle of a reading, whose earlier pages will come again.
        Ok(Self { place, reading: kept.forwarded.clone(), kept, is_new })
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Before anything is forwarded: whoever cannot remember would forward it all again.
    pub(super) fn begun(&mut self) -> anyhow::Result<()> {
        self.kept.begun = Some(true);
        self.write()
    }

    pub(super) fn cursor(&self) -> Option<&str> {
        self.kept.cursor.as_deref()
    }

    pub(super) fn knows(&self, id: &str) -> bool {
        self.kept.forwarded.contains(id)
    }

    pub(super) fn forwarded(&mut self, id: &str) -> anyhow::Result<()> {
        self.kept.forwarded.insert(id.to_owned());
        self.write()
    }

    /// A page is done. With the last page of a reading, older ids need not be known any more.
    pub(super) fn turn(
        &mut self,
        cursor: Option<String>,
        ids: Vec<String>,
        has_more: bool,
    ) -> anyhow::Result<()> {
        let before = (self.kept.cursor.clone(), self.kept.forwarded.len());
        self.reading.extend(ids);
        self.kept.cursor = cursor.or(self.kept.cursor.take());
        if has_more {
            self.kept.forwarded.extend(self.reading.iter().cloned());
        } else {
            self.kept.forwarded = std::mem::take(&mut self.reading);
        }
        if before == (self.kept.cursor.clone(), self.kept.forwarded.len()) {
            return Ok(());
        }
        self.write()
    }

    /// Whole or not at all: a new file takes the place of the old one.
    fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string(&self.kept).expect("texts always serialise");
        self.place.write(&text).with_context(|| {
            format!("cannot write {}; name another --cursor", self.place.path().display())
        })
    }
}

impl Place {
    /// One for each server and application.
    pub(super) fn standard(server: &str, application: &str) -> anyhow::Result<Self> {
        let folder =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let state = folder("XDG_STATE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".local").join("state")));
        let Some(state) = state else {
            bail!("there is no HOME to keep the cursor in; say where with --cursor FILE");
        };
        let plain = |text: &str| -> String {
            let kept = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
            text.chars().map(kept).collect()
        };
        let name = format!("listen-{}-{}.json", plain(server), plain(application));
        Ok(Self::Standard(state.join("svc").join(name)))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Standard(path) => path,
        }
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        if let Self::Standard(path) = self
            && let Some(folder) = path.parent()
        {
            std::fs::create_dir_all(folder)?;
        }
        let mut beside = self.path().as_os_str().to_owned();
        beside.push(".new");
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(beside, self.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_listened_to_the_end_of_the_past_hears_what_was_missed() {
        let folder = std::env::temp_dir().join(format!("svc_bookmark_{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("cursor.json");
        let open = |anew| Bookmark::open(Place::Named(path.clone()), anew).unwrap();
        let is_new = |text: &str| {
            std::fs::write(&path, text).unwrap();
            open(false).is_new()
        };
        assert!(is_new(r#"{"begun":false,"cursor":"c","forwarded":[]}"#), "it was interrupted");
        assert!(!is_new(r#"{"begun":true,"cursor":null,"forwarded":[]}"#), "nothing was there yet");
        assert!(!is_new(r#"{"cursor":"c","forwarded":[]}"#), "of an older version");
        let mut first = open(true);
        assert!(first.is_new());
        assert!(!open(false).is_new(), "nothing was written yet");
        first.turn(Some("d".into()), Vec::new(), true).unwrap();
        assert!(open(false).is_new(), "it has not begun");
        first.begun().unwrap();
        assert!(!open(false).is_new());
        let _ = std::fs::remove_dir_all(&folder);
    }
}
