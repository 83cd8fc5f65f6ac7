//! How an order stands.

/// The three states of spec 3. `Confirmed` and `Cancelled` are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Pending,
    Confirmed,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Confirmed, Self::Cancelled];

    pub fn code(self) -> &'static str {
        match self {
            Self::Pending => "PEN",
            Self::Confirmed => "CON",
            Self::Cancelled => "CAN",
        }
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }
}
