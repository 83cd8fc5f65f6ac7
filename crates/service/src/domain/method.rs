//! The payment methods of spec 1, by their codes.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaymentMethod {
    /// Express wallet of a card network.
    ExpressWallet,
    /// Bank payment reference: entity and reference, paid at an ATM or in a banking app.
    BankReference,
    /// The service's own method: always the default, cannot be disabled.
    Direct,
}

impl PaymentMethod {
    pub const ALL: [Self; 3] = [Self::Direct, Self::ExpressWallet, Self::BankReference];

    pub fn code(self) -> &'static str {
        match self {
            Self::ExpressWallet => "FPMCXEXPRSS",
            Self::BankReference => "FPSOLPGEXT",
            Self::Direct => "FPSOLPG",
        }
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_specs_and_read_back() {
        for code in ["FPMCXEXPRSS", "FPSOLPGEXT", "FPSOLPG"] {
            assert_eq!(PaymentMethod::from_code(code).map(PaymentMethod::code), Some(code));
        }
        assert_eq!(PaymentMethod::from_code("fpsolpg"), None);
    }
}
