//! Power cuts. kill -9 proves nothing about a disk: what was written and not synced survives it.
//!
//! A life under load is traced; then, at random places of the trace, the files are made as a cut
//! would leave them: what was synced is there, of the rest each write may be there, or not, or torn.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use rusqlite::Connection;

use super::crowd::Crowd;
use super::shim::Shim;
use super::trace::{self, FILES, Happening, learnt};
use super::{Ledger, Setting};
use crate::Engine;
use crate::process::{Data, Server};
use crate::target::mix;

/// Each ends with a checkpoint, and the next begins from what it left.
const LIVES: u64 = 4;
const LIFE: Duration = Duration::from_millis(700);
const CALLERS: u64 = 8;
const SECTOR_BYTES: usize = 512;

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let cuts = setting.either(300, 5_000);
    let mut ledger = Ledger::new(format!("Power: {cuts} cuts, SQLite"));
    let data = Data::fresh(Engine::Sqlite, "power").await?;
    let directory = data.directory()?;
    let shim = Shim::build(directory, true)?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    // The trace begins with an empty file; what was there before it, it does not know.
    let before = [read_file(directory, FILES[0])?, read_file(directory, FILES[1])?];
    for _ in 0..LIVES {
        let environment = shim.environment();
        let more = ["--private-webhook-targets"];
        let server = Server::serve_in(&environment, &data.url, &more).await?;
        let work = crowd.begin(&[&server.target.address]).await?;
        tokio::time::sleep(LIFE).await;
        work.stop().await;
        ensure!(server.stop().await?.success(), "the service did not end well");
    }
    let trace = trace::read(&directory.join("trace"))?;
    let told = trace.iter().filter(|h| is_promise(h)).count();
    ensure!(told > 100, "only {told} promises were made: this proves nothing");
    ledger.tell("happenings traced", trace.len());
    ledger.tell("promises made (answers and webhooks)", told);
    ledger.tell("syncs", trace.iter().filter(|h| matches!(h, Happening::SyncEnded { .. })).count());
    ledger.never("promises made before their row was synced", too_early(&trace)?);
    let at = directory.join("cut");
    std::fs::create_dir_all(&at)?;
    let found = cut(&trace, before, cuts, setting.seed, &at)?;
    ledger.tell("writes that a cut found unsynced", found.unsynced);
    ledger.never("files that were damaged", found.damaged);
    ledger.never("promised orders or states lost", found.lost);
    ledger.never("states without their event, or events without their state", found.orphans);
    Ok(ledger)
}

fn read_file(directory: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    match std::fs::read(directory.join(name)) {
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => Ok(read?),
    }
}

fn is_promise(happening: &Happening) -> bool {
    matches!(happening, Happening::Sent(bytes) if learnt(bytes).is_some())
}

/// Answers that left before a sync of the log which began after their row was written.
fn too_early(trace: &[Happening]) -> anyhow::Result<u64> {
    let promised: HashMap<String, usize> = trace
        .iter()
        .enumerate()
        .filter_map(|(at, happening)| match happening {
            Happening::Sent(bytes) => learnt(bytes).map(|(reference, _)| (reference, at)),
            _ => None,
        })
        // The first one counts.
        .rev()
        .collect();
    let first = promised.keys().next().context("a promise")?;
    // References begin with their time: of one run, with the same characters.
    let prefix = &first.as_bytes()[..4];
    let mut written: HashMap<&str, usize> = HashMap::new();
    let mut safe_at: HashMap<&str, usize> = HashMap::new();
    let (mut unsynced, mut syncing) = (Vec::new(), Vec::new());
    for (at, happening) in trace.iter().enumerate() {
        match happening {
            Happening::Written { file: 1, bytes, .. } => {
                for window in bytes.windows(first.len()).filter(|w| w.starts_with(prefix)) {
                    let text = std::str::from_utf8(window).unwrap_or_default();
                    let Some((reference, _)) = promised.get_key_value(text) else { continue };
                    if written.insert(reference, at).is_none() {
                        unsynced.push(reference.as_str());
                    }
                }
            }
            Happening::SyncBegun { file: 1 } => syncing.append(&mut unsynced),
            Happening::SyncEnded { file: 1 } => {
                safe_at.extend(syncing.drain(..).map(|reference| (reference, at)));
            }
            _ => {}
        }
    }
    let is_early = |(reference, told): (&String, &usize)| {
        safe_at.get(reference.as_str()).is_none_or(|safe| safe > told)
    };
    Ok(promised.iter().filter(|promise| is_early(*promise)).count() as u64)
}

#[derive(Default)]
struct Found {
    unsynced: u64,
    damaged: u64,
    lost: u64,
    orphans: u64,
}

/// A file as the disk has it, and what has not been synced yet.
#[derive(Default)]
struct OnDisk<'a> {
    image: Vec<u8>,
    pending: Vec<&'a Happening>,
    /// So many of the pending ones were there when a sync began.
    syncing: usize,
}

fn cut(
    trace: &[Happening],
    before: [Vec<u8>; 2],
    cuts: u64,
    seed: u64,
    at: &Path,
) -> anyhow::Result<Found> {
    let mut disk = before.map(|image| OnDisk { image, ..OnDisk::default() });
    let first = trace.iter().position(is_promise).context("a promise")?;
    let mut places: Vec<usize> = (0..cuts)
        .map(|number| first + (mix(seed ^ mix(number)) as usize) % (trace.len() - first))
        .collect();
    places.sort_unstable();
    let (mut places, mut promised, mut found) =
        (places.into_iter().peekable(), HashMap::new(), Found::default());
    for (place, happening) in trace.iter().enumerate() {
        while let Some(number) = places.next_if_eq(&place) {
            let mut chance = Chance(mix(seed ^ mix(number as u64 + 1)));
            for (file, name) in disk.iter().zip(FILES) {
                found.unsynced += file.pending.len() as u64;
                std::fs::write(at.join(name), file.after_cut(&mut chance))?;
            }
            look(at, &promised, &mut found)?;
        }
        match happening {
            Happening::Written { file, .. } | Happening::Truncated { file, .. } => {
                disk[*file].pending.push(happening);
            }
            Happening::SyncBegun { file } => disk[*file].syncing = disk[*file].pending.len(),
            Happening::SyncEnded { file } => disk[*file].sync(),
            Happening::Sent(bytes) => {
                let Some((reference, status)) = learnt(bytes) else { continue };
                if status != "PEN" || !promised.contains_key(&reference) {
                    promised.insert(reference, status);
                }
            }
            Happening::Started => {}
        }
    }
    Ok(found)
}

impl OnDisk<'_> {
    fn sync(&mut self) {
        for happening in self.pending.drain(..self.syncing) {
            apply(&mut self.image, happening, usize::MAX);
        }
        self.syncing = 0;
    }

    fn after_cut(&self, chance: &mut Chance) -> Vec<u8> {
        let mut image = self.image.clone();
        // Mostly a mixture; sometimes nothing of it has arrived, or all.
        let mood = chance.below(4);
        for happening in &self.pending {
            let kept = match (mood, chance.below(3)) {
                (0, _) | (2.., 0) => continue,
                (1, _) | (_, 1) => usize::MAX,
                _ => chance.below(9) * SECTOR_BYTES,
            };
            apply(&mut image, happening, kept);
        }
        image
    }
}

/// Does to an image what was done to the file, up to so many bytes.
fn apply(image: &mut Vec<u8>, happening: &Happening, kept: usize) {
    match happening {
        Happening::Written { offset, bytes, .. } => {
            let bytes = &bytes[..bytes.len().min(kept)];
            if image.len() < offset + bytes.len() {
                image.resize(offset + bytes.len(), 0);
            }
            image[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Happening::Truncated { size, .. } if kept > 0 => image.resize(*size, 0),
        _ => {}
    }
}

/// Opens what the cut left, as the service would, and counts what is wrong.
fn look(at: &Path, promised: &HashMap<String, String>, found: &mut Found) -> anyhow::Result<()> {
    let _ = std::fs::remove_file(at.join("svc.db-shm"));
    let db = Connection::open(at.join(FILES[0]))?;
    let verdict = db.query_row("pragma integrity_check", [], |row| row.get::<_, String>(0));
    if verdict.as_deref() != Ok("ok") {
        found.damaged += 1;
        return Ok(());
    }
    let mut orders = db.prepare("select reference_number, status from orders")?;
    let stored: HashMap<String, String> =
        orders.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let is_kept = |(reference, status): &(&String, &String)| {
        stored.get(*reference).is_some_and(|now| now == *status || *status == "PEN")
    };
    found.lost += promised.iter().filter(|promise| !is_kept(promise)).count() as u64;
    // Of every order: its event of being pending and, once it is settled, that of its end.
    let orphans: u32 = db.query_row(
        "select (select count(*) from orders o where not exists
                     (select 1 from outbox e where e.reference_number = o.reference_number
                      and e.status = o.status))
              + (select count(*) from outbox e where not exists
                     (select 1 from orders o where o.reference_number = e.reference_number
                      and (o.status = e.status or e.status = 'PEN')))
              + (select count(*) from orders o where o.status <> 'PEN' and not exists
                     (select 1 from audit a where a.subject = o.reference_number))",
        [],
        |row| row.get(0),
    )?;
    found.orphans += u64::from(orphans);
    Ok(())
}

/// The same numbers for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = mix(self.0);
        (self.0 % end as u64) as usize
    }
}
