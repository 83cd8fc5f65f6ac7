//! Sending what was paid: after the webhook was answered, once, also if the process ended in between.

use std::time::Duration;

use crate::Shop;

/// Whoever rings is heard at once; this finds what was left by an earlier life.
const PERIOD: Duration = Duration::from_secs(2);

pub(crate) async fn run(shop: Shop) {
    loop {
        if let Err(fault) = fulfil_all(&shop) {
            tracing::warn!(%fault, "paid orders could not be read; they are tried again");
        }
        let _ = tokio::time::timeout(PERIOD, shop.paid.notified()).await;
    }
}

/// Here a real shop packs a parcel or sends a mail: something that may be done twice at worst, keyed by
/// the order.
fn fulfil_all(shop: &Shop) -> Result<(), crate::StoreError> {
    for order in shop.store.to_fulfil()? {
        match shop.store.fulfilled(&order, shop.now_ms()) {
            Ok(()) => tracing::info!(order, "fulfilled"),
            // It must not hold up those behind it.
            Err(fault) => tracing::warn!(order, %fault, "not fulfilled; it is tried again"),
        }
    }
    Ok(())
}
