//! Windows of the checkout, as the store knows them.

use jiff::Timestamp;

use super::{Result, time};

/// When the page of a window was last heard of, and when its payer left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckoutVisit {
    pub seen_at: Timestamp,
    pub left_at: Option<Timestamp>,
}

impl CheckoutVisit {
    pub(super) fn read(seen_at_ms: i64, left_at_ms: Option<i64>) -> Result<Self> {
        Ok(Self { seen_at: time(seen_at_ms)?, left_at: left_at_ms.map(time).transpose()? })
    }
}
