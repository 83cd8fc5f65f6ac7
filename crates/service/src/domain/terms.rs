//! What an order is about.

use super::{AdditionalInfo, Kwanza, Label, PayerId, Quantity};

/// What the merchant asked for: the part that must be equal when the same id comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub payer_id: PayerId,
    pub name: Label,
    pub amount: Kwanza,
    pub quantity: Quantity,
    pub additional_info: AdditionalInfo,
}

impl Terms {
    /// The contract's names of the fields in which a request differs from what is stored.
    pub fn differences(&self, stored: &Self) -> Vec<&'static str> {
        [
            ("clientId", self.payer_id == stored.payer_id),
            ("name", self.name == stored.name),
            ("amount", self.amount == stored.amount),
            ("quantity", self.quantity == stored.quantity),
            ("additionalInfo", self.additional_info.is_stored_as(&stored.additional_info)),
        ]
        .into_iter()
        .filter_map(|(field, same)| (!same).then_some(field))
        .collect()
    }
}
