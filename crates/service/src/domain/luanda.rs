//! Time in Luanda: an hour ahead of UTC, all year.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

const OFFSET: Offset = Offset::constant(1);

/// What clocks show there.
pub fn luanda(at: Timestamp) -> DateTime {
    OFFSET.to_datetime(at)
}

/// When a day begins there; `None` at the end of time.
pub fn luanda_midnight(day: Date) -> Option<Timestamp> {
    OFFSET.to_timestamp(day.at(0, 0, 0, 0)).ok()
}
