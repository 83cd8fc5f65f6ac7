//! What a payer types at an ATM: an entity and a reference (rails: `FPSOLPGEXT`).

/// Texts, not numbers: both may begin with zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BankReference {
    entity: String,
    number: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entity has 5 digits and a reference 9 to 15")]
pub struct NotABankReference;

impl BankReference {
    pub const ENTITY_DIGITS: usize = 5;
    const DIGITS: usize = 9;
    const DIGITS_MAX: usize = 15;

    /// A number drawn by chance; the store says whether it is free. The first digit is 1 to 9, for
    /// software that takes it for a number and would lose a zero.
    pub fn draw(entity: &str, random: [u8; 8]) -> Result<Self, NotABankReference> {
        const FIRST: u64 = 10u64.pow(BankReference::DIGITS as u32 - 1);
        let number = FIRST + u64::from_be_bytes(random) % (9 * FIRST);
        Self::parse(entity, &number.to_string())
    }

    pub fn parse(entity: &str, number: &str) -> Result<Self, NotABankReference> {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let right = entity.len() == Self::ENTITY_DIGITS
            && (Self::DIGITS..=Self::DIGITS_MAX).contains(&number.len())
            && digits(entity)
            && digits(number);
        if right {
            Ok(Self { entity: entity.to_owned(), number: number.to_owned() })
        } else {
            Err(NotABankReference)
        }
    }

    pub fn entity(&self) -> &str {
        &self.entity
    }

    pub fn number(&self) -> &str {
        &self.number
    }

    /// In groups of three, as it is read out.
    pub fn spaced(&self) -> String {
        let digits: Vec<char> = self.number.chars().collect();
        let groups: Vec<String> = digits.chunks(3).map(|group| group.iter().collect()).collect();
        groups.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn leading_zeros_are_kept_and_lengths_held() {
        let reference = BankReference::parse("00348", "012345678").unwrap();
        assert_eq!((reference.entity(), reference.number()), ("00348", "012345678"));
        assert_eq!(reference.spaced(), "012 345 678");
        for (entity, number) in [
            ("348", "123456789"),
            ("00348", "12345678"),
            ("00348", "1234567890123456"),
            ("0034a", "123456789"),
        ] {
            assert!(BankReference::parse(entity, number).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_drawn_number_has_nine_digits_and_no_leading_zero(random: [u8; 8]) {
            let reference = BankReference::draw("00000", random).unwrap();
            prop_assert_eq!(reference.number().len(), 9);
            prop_assert!(!reference.number().starts_with('0'));
        }
    }
}
