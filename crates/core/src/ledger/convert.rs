//! Conversion between assets: exact decimal rates, explicit rounding, and remainders that are
//! posted instead of lost.
//!
//! Nothing here is approximate: a rate is an integer and a power of ten, and a result is rounded
//! once.

use crate::types::decimal::Decimal;
use crate::types::limits::AMOUNT_MAX;
use std::fmt;

/// Significant digits of a rate. No market quotes more, and the product with an amount still fits
/// 128 bits.
pub const RATE_DIGITS_MAX: u32 = 18;
/// Largest magnitude of the power of ten of a rate's first digit. Beyond it, no valid amount
/// converts to a valid amount.
pub const RATE_LEAD_MAX: i32 = 18;

/// Units of one asset per unit of another, exact and above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Without trailing zeros.
    digits: u64,
    exponent: i32,
}

/// Why a number is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// Zero or below.
    NotPositive,
    /// More than [`RATE_DIGITS_MAX`] significant digits.
    Digits,
    /// Beyond [`RATE_LEAD_MAX`].
    Magnitude,
}

impl Rate {
    /// Checks a rate.
    pub fn new(number: &Decimal) -> Result<Rate, RateError> {
        if number.is_negative() || *number == Decimal::from_i64(0) {
            return Err(RateError::NotPositive);
        }
        let (digits, exponent) = number.scaled().ok_or(RateError::Digits)?;
        let digits = u64::try_from(digits).map_err(|_| RateError::Digits)?;
        let below_lead = digits.ilog10();
        if below_lead >= RATE_DIGITS_MAX {
            return Err(RateError::Digits);
        }
        let lead = exponent.saturating_add_unsigned(below_lead);
        if lead.unsigned_abs() > RATE_LEAD_MAX.unsigned_abs() {
            return Err(RateError::Magnitude);
        }
        Ok(Rate { digits, exponent })
    }
}

/// The treatment of a fraction of a minor unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest; halves to the even one.
    HalfEven,
    /// To the nearest; halves up.
    HalfUp,
    /// Always down.
    Down,
    /// Always up.
    Up,
}

const ROUNDINGS: [Rounding; 4] = [Rounding::HalfEven, Rounding::HalfUp, Rounding::Down, Rounding::Up];

impl Rounding {
    /// The name clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::HalfEven => "half_even",
            Rounding::HalfUp => "half_up",
            Rounding::Down => "down",
            Rounding::Up => "up",
        }
    }

    pub fn parse(name: &str) -> Option<Rounding> {
        ROUNDINGS.into_iter().find(|rounding| rounding.name() == name)
    }
}

/// A converted amount in minor units of the target. `exchange` is the sum of `to` and `rounding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The receiver's amount: the exact result, rounded as requested.
    pub to: i64,
    /// The exchange account's amount: the exact result, rounded up.
    pub exchange: i64,
    /// The rounding account's amount: 0 or 1.
    pub rounding: i64,
}

/// Why an amount cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The rounded result, or the amount itself, is zero.
    Zero,
    /// The result is above [`AMOUNT_MAX`].
    TooLarge,
}

/// Converts `amount` minor units. The rate refers to major units; the exponents give the number of
/// decimals of the minor units.
pub fn convert(
    amount: i64,
    from_exponent: u8,
    to_exponent: u8,
    rate: &Rate,
    rounding: Rounding,
) -> Result<Converted, ConvertError> {
    let amount = u64::try_from(amount).map_err(|_| ConvertError::Zero)?;
    // At most 19 digits times at most 18 digits, far within the range of a u128.
    let product = u128::from(amount).saturating_mul(u128::from(rate.digits));
    if product == 0 {
        return Err(ConvertError::Zero);
    }
    let power = rate.exponent.saturating_add(i32::from(to_exponent)).saturating_sub(i32::from(from_exponent));
    let (whole, fraction) = times_ten_to(product, power).ok_or(ConvertError::TooLarge)?;
    let exchange = whole.saturating_add(u128::from(fraction != Fraction::None));
    let to = if fraction.goes_up(rounding, whole) { exchange } else { whole };
    let (Ok(to), Ok(exchange)) = (i64::try_from(to), i64::try_from(exchange)) else {
        return Err(ConvertError::TooLarge);
    };
    if exchange > AMOUNT_MAX {
        return Err(ConvertError::TooLarge);
    }
    if to == 0 {
        return Err(ConvertError::Zero);
    }
    Ok(Converted { to, exchange, rounding: exchange.saturating_sub(to) })
}

/// The fraction after the point, as far as rounding needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fraction {
    None,
    BelowHalf,
    Half,
    AboveHalf,
}

impl Fraction {
    /// Whether `whole` with this fraction is rounded up.
    const fn goes_up(self, rounding: Rounding, whole: u128) -> bool {
        match self {
            Fraction::None => false,
            Fraction::BelowHalf => matches!(rounding, Rounding::Up),
            Fraction::Half => match rounding {
                Rounding::HalfEven => whole % 2 == 1,
                Rounding::HalfUp | Rounding::Up => true,
                Rounding::Down => false,
            },
            Fraction::AboveHalf => !matches!(rounding, Rounding::Down),
        }
    }
}

/// `number` (above zero, at most 37 digits) times ten to the `power`; `None` on overflow.
fn times_ten_to(number: u128, power: i32) -> Option<(u128, Fraction)> {
    let factor = 10_u128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return Some((number.checked_mul(factor?)?, Fraction::None));
    }
    // A divisor of more than 128 bits is more than twice the number.
    let Some(divisor) = factor else { return Some((0, Fraction::BelowHalf)) };
    let (whole, rest) = (number.checked_div(divisor)?, number.checked_rem(divisor)?);
    let fraction = match rest.cmp(&divisor.saturating_sub(rest)) {
        _ if rest == 0 => Fraction::None,
        std::cmp::Ordering::Less => Fraction::BelowHalf,
        std::cmp::Ordering::Equal => Fraction::Half,
        std::cmp::Ordering::Greater => Fraction::AboveHalf,
    };
    Some((whole, fraction))
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateError::NotPositive => {
                f.write_str("a rate is above zero; send units of the target per unit of the source")
            }
            RateError::Digits => {
                write!(f, "the rate has too many digits; send at most {RATE_DIGITS_MAX} significant digits")
            }
            RateError::Magnitude => {
                write!(
                    f,
                    "the rate is too large or too close to zero; keep it between 1e-{RATE_LEAD_MAX} and 1e{RATE_LEAD_MAX}"
                )
            }
        }
    }
}

impl std::error::Error for RateError {}
