//! What the service says about an order, by webhook or when asked: one way in for both.

use svc_client::PaymentStatus;

use crate::Shop;
use crate::store::{Applied, StoreError};

pub(crate) struct Report<'a> {
    pub external_transaction_id: &'a str,
    pub status: PaymentStatus,
    pub reference_number: Option<&'a str>,
    pub amount: Option<i64>,
    /// `webhook` or `query`.
    pub by: &'static str,
}

/// Applies the table of spec 3. When this returns, it is committed.
pub(crate) fn take(shop: &Shop, report: &Report<'_>) -> Result<(), StoreError> {
    let order = report.external_transaction_id;
    match shop.store.apply(report, shop.now_ms())? {
        Applied::Confirmed => shop.paid.notify_one(),
        Applied::Held(why) => {
            tracing::error!(order, why, "paid, but not as asked for: a person must look");
        }
        Applied::Unknown => tracing::warn!(order, "a report on an order this shop does not have"),
        Applied::Cancelled | Applied::Unchanged => {}
    }
    Ok(())
}
