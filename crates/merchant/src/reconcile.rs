//! The safety net: pending orders nobody reported on are asked about, and go the same way as a webhook.

use svc_client::{Error, PaymentStatus};

use crate::Shop;
use crate::report::{Report, take};
use crate::store::StoreError;

pub(crate) async fn run(shop: Shop) {
    loop {
        // First of all, because an earlier life may have left some.
        if let Err(fault) = ask_about_all(&shop).await {
            tracing::warn!(%fault, "pending orders could not be looked through");
        }
        tokio::time::sleep(shop.settings.limits.reconcile_period).await;
    }
}

/// Page by page: references live for days, and those in front must not hide what is behind them.
async fn ask_about_all(shop: &Shop) -> Result<(), HealError> {
    let age_ms = i64::try_from(shop.settings.limits.reconcile_age.as_millis()).unwrap_or(i64::MAX);
    let created_before_ms = shop.now_ms().saturating_sub(age_ms);
    let mut after = (i64::MIN, String::new());
    loop {
        let page = shop.store.pending(created_before_ms, &after)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.clone();
        for (_, order) in &page {
            match heal(shop, order).await {
                Ok(()) => {}
                Err(HealError::Service(Error::Refused { status: 404, .. })) => lost(shop, order)?,
                // The next would wait as long for the same answer.
                Err(HealError::Service(fault @ (Error::Unreachable(_) | Error::TimedOut))) => {
                    return Err(fault.into());
                }
                Err(fault) => tracing::warn!(order, %fault, "an order could not be asked about"),
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum HealError {
    #[error(transparent)]
    Service(#[from] Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Asks for the state of one order and applies it.
pub(crate) async fn heal(shop: &Shop, id: &str) -> Result<(), HealError> {
    let order = shop.client.payment_by_external_transaction(id).await?;
    if order.status == PaymentStatus::Pending {
        return Ok(());
    }
    take(
        shop,
        &Report {
            external_transaction_id: id,
            status: order.status,
            reference_number: Some(&order.reference_number),
            amount: Some(order.amount),
            by: "query",
        },
    )?;
    Ok(())
}

/// The service never heard of it: this process ended before it could ask, and nobody can pay it.
fn lost(shop: &Shop, id: &str) -> Result<(), StoreError> {
    match shop.store.order(id)? {
        Some(order) if order.reference_number.is_none() => {
            shop.store.give_up(id, "the payment service was never asked", shop.now_ms())
        }
        // It had a reference, so it was there: that is for a person.
        _ => {
            tracing::error!(
                order = id,
                "the service does not know an order it gave a reference to"
            );
            Ok(())
        }
    }
}
