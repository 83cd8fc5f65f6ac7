//! Queues that rails keep until they are read: when each is read next.

use jiff::{SignedDuration, Timestamp};

use super::portable::values;
use super::{Result, Store};
use crate::domain::after;

/// Put off for longer than this it was by a clock that was ahead.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(10);

impl Store {
    /// From now on it is read. `false` where that is so already.
    pub async fn open_queue(&self, rail: &str, now: Timestamp) -> Result<bool> {
        let sql = "insert into rail_queues (rail, due_at_ms) values (?1, ?2)
                   on conflict (rail) do update set due_at_ms = excluded.due_at_ms
                   where rail_queues.due_at_ms > ?3";
        let latest = after(now, AHEAD_MAX);
        self.transact_one(sql, values![rail, now, latest]).await
    }

    /// Takes the reading that is due. `false` if another node was quicker.
    pub async fn take_queue(&self, rail: &str, due: Timestamp, next: Timestamp) -> Result<bool> {
        let sql = "update rail_queues set due_at_ms = ?3 where rail = ?1 and due_at_ms = ?2";
        self.transact_one(sql, values![rail, due, next]).await
    }
}
