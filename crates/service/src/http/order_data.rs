//! An order as every call reports it (spec 2.3), so that one parser serves them all.

use serde::Serialize;

use crate::domain::{ExternalTransactionId, Order, Standing};

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderData {
    /// The merchant's id of the order.
    #[schema(example = "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff")]
    external_transaction_id: String,
    /// `PEN`, `CON` or `CAN`.
    #[schema(example = "PEN")]
    payment_status: &'static str,
    /// Handed to the SDK popup.
    #[schema(example = "01JC4E9V7Q3M8Y5T2K6R1N0WXZ")]
    reference_number: String,
    /// Whole kwanza.
    #[schema(example = 15000, minimum = 1, maximum = 999_999_999_999i64)]
    amount: i64,
}

impl OrderData {
    pub(crate) fn new(id: ExternalTransactionId, standing: Standing) -> Self {
        Self {
            external_transaction_id: id.into(),
            payment_status: standing.status.code(),
            reference_number: standing.reference_number.into(),
            amount: standing.amount.get(),
        }
    }
}

impl From<Order> for OrderData {
    fn from(order: Order) -> Self {
        let Order { reference_number, status, terms, .. } = order;
        let standing = Standing { reference_number, status, amount: terms.amount };
        Self::new(order.external_transaction_id, standing)
    }
}
