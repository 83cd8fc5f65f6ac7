//! The safety net: pending orders nobody reported on are asked about, and go the same way as a webhook.

use std::time::Duration;

use crate::Shop;
use crate::reply::now_ms;
use crate::store::{Applied, Report};

const PERIOD: Duration = Duration::from_secs(60);
/// Younger orders are most likely being paid.
const AGE_MS: i64 = 3 * 60 * 1000;

pub(crate) async fn run(shop: Shop) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let stale = match shop.store.pending_since(now_ms() - AGE_MS) {
            Ok(stale) => stale,
            Err(fault) => {
                tracing::warn!(%fault, "pending orders could not be read");
                continue;
            }
        };
        for id in stale {
            if let Err(fault) = heal(&shop, &id).await {
                tracing::warn!(order = id, %fault, "an order could not be asked about");
            }
        }
    }
}

/// Asks for the state of one order and applies it.
pub(crate) async fn heal(
    shop: &Shop,
    id: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let order = shop.client.payment_by_external_transaction(id).await?;
    if order.status == svc_client::PaymentStatus::Pending {
        return Ok(());
    }
    let report = Report {
        external_transaction_id: id,
        status: order.status,
        reference_number: &order.reference_number,
        amount: order.amount,
        by: "query",
    };
    if shop.store.apply(&report, now_ms())? == Applied::Confirmed {
        shop.paid.notify_one();
    }
    Ok(())
}
