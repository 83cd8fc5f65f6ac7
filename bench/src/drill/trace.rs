//! What went to the disk and to the network, in the order in which it happened.

use std::path::Path;

use anyhow::bail;

/// The database and its log.
pub(super) const FILES: [&str; 2] = ["svc.db", "svc.db-wal"];

pub(super) enum Happening {
    /// The service was started.
    Started,
    Written {
        file: usize,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncated {
        file: usize,
        size: usize,
    },
    SyncBegun {
        file: usize,
    },
    SyncEnded {
        file: usize,
    },
    /// Sent to a caller or a merchant.
    Sent(Vec<u8>),
}

pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Happening>> {
    let bytes = std::fs::read(path)?;
    let (mut left, mut all) = (&bytes[..], Vec::new());
    while let Some((head, rest)) = left.split_first_chunk::<16>() {
        let length = u32::from_ne_bytes(head[4..8].try_into()?) as usize;
        let offset = usize::try_from(u64::from_ne_bytes(head[8..].try_into()?))?;
        // The last record of a process that was killed may be cut short.
        let Some((body, rest)) = rest.split_at_checked(length) else { break };
        let file = usize::from(head[1]);
        all.push(match head[0] {
            b'S' => Happening::Started,
            b'W' => Happening::Written { file, offset, bytes: body.to_vec() },
            b'T' => Happening::Truncated { file, size: offset },
            b'B' => Happening::SyncBegun { file },
            b'E' => Happening::SyncEnded { file },
            b'A' => Happening::Sent(body.to_vec()),
            other => bail!("a record of kind {other}"),
        });
        left = rest;
    }
    Ok(all)
}

/// What a caller or a merchant learns from these bytes: a reference and its status.
pub(super) fn learnt(sent: &[u8]) -> Option<(String, String)> {
    let is_good = sent.starts_with(b"HTTP/1.1 200") || sent.starts_with(b"POST ");
    let body = sent.windows(4).position(|four| four == b"\r\n\r\n").filter(|_| is_good)? + 4;
    let message: serde_json::Value = serde_json::from_slice(&sent[body..]).ok()?;
    let reference = message["data"]["referenceNumber"].as_str()?;
    let status = message["data"]["paymentStatus"].as_str()?;
    Some((reference.to_owned(), status.to_owned()))
}
