//! Money: a checked integer of minor units in one asset. There are no operators; overflow is an
//! outcome.

use super::asset::Asset;
use super::limits::AMOUNT_MAX;

/// A positive amount of one asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    minor: i64,
    asset: Asset,
}

/// Why a number is not an amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoneyError {
    /// Zero or below.
    NotPositive,
    /// Above [`AMOUNT_MAX`].
    TooLarge,
}

impl Money {
    pub const fn new(minor: i64, asset: Asset) -> Result<Money, MoneyError> {
        if minor <= 0 {
            Err(MoneyError::NotPositive)
        } else if minor > AMOUNT_MAX {
            Err(MoneyError::TooLarge)
        } else {
            Ok(Money { minor, asset })
        }
    }

    pub const fn minor(self) -> i64 {
        self.minor
    }

    pub const fn asset(self) -> Asset {
        self.asset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_positive_and_bounded() {
        let usd = Asset::parse("usd").unwrap();
        for bad in [0, -1, i64::MIN] {
            assert_eq!(Money::new(bad, usd), Err(MoneyError::NotPositive));
        }
        for bad in [AMOUNT_MAX + 1, i64::MAX] {
            assert_eq!(Money::new(bad, usd), Err(MoneyError::TooLarge));
        }
        assert_eq!(Money::new(AMOUNT_MAX, usd).unwrap().minor(), AMOUNT_MAX);
    }
}
