//! Conversion: exact, rounded once, and without loss.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::convert::{
    ConvertError, Converted, RATE_DIGITS_MAX, Rate, RateError, Rounding, convert,
};
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::limits::AMOUNT_MAX;
use proptest::prelude::*;
use std::cmp::Ordering;

const ROUNDINGS: [Rounding; 4] = [Rounding::HalfEven, Rounding::HalfUp, Rounding::Down, Rounding::Up];

fn rate(text: &str) -> Result<Rate, RateError> {
    Rate::new(&Decimal::parse(text).expect("a number"))
}

/// Converts `amount` between two assets with two decimals at that rate.
fn cents(amount: i64, at: &str, rounding: Rounding) -> Result<Converted, ConvertError> {
    convert(amount, 2, 2, &rate(at).expect("a rate"), rounding)
}

fn converted(to: i64, rounding: i64) -> Converted {
    Converted { to, exchange: to + rounding, rounding }
}

#[test]
fn a_rate_is_above_zero() {
    for text in ["0", "-0", "0.000", "-1", "-0.0001", "-1e400"] {
        assert_eq!(rate(text), Err(RateError::NotPositive), "{text}");
    }
}

#[test]
fn a_rate_has_at_most_eighteen_digits() {
    let most = "9".repeat(18);
    for text in
        [most.clone(), format!("{most}e-10"), format!("0.{most}"), format!("{most}.000"), "10e17".into()]
    {
        assert!(rate(&text).is_ok(), "{text}");
    }
    let long = "1234567890123456789";
    for text in [long.to_owned(), format!("1.{long}"), format!("{most}.9"), format!("0.{}", "7".repeat(60))] {
        assert_eq!(rate(&text), Err(RateError::Digits), "{text}");
    }
    assert!(RateError::Digits.to_string().contains(&RATE_DIGITS_MAX.to_string()));
}

#[test]
fn a_rate_has_a_bounded_magnitude() {
    for text in ["1e18", "9.99e18", "1e-18", "0.000000000000000001"] {
        assert!(rate(text).is_ok(), "{text}");
    }
    for text in ["1e19", "10e18", "9e-19", "1e-19", "1e9999", "1e-9999"] {
        assert_eq!(rate(text), Err(RateError::Magnitude), "{text}");
    }
    assert!(RateError::Magnitude.to_string().contains("1e-18"));
    assert!(RateError::NotPositive.to_string().contains("above zero"));
}

#[test]
fn spellings_of_one_rate_are_equal() {
    assert_eq!(rate("1.50"), rate("15e-1"));
    assert_eq!(rate("100"), rate("1e2"));
    assert_ne!(rate("1.5"), rate("1.51"));
}

#[test]
fn a_zero_amount_is_refused() {
    for amount in [0, -1, i64::MIN] {
        for rounding in ROUNDINGS {
            assert_eq!(cents(amount, "1", rounding), Err(ConvertError::Zero), "{amount}");
        }
    }
}

#[test]
fn a_zero_result_is_refused() {
    for (at, none_left, some_left) in [
        ("0.4", &[Rounding::HalfEven, Rounding::HalfUp, Rounding::Down][..], &[Rounding::Up][..]),
        ("0.5", &[Rounding::HalfEven, Rounding::Down], &[Rounding::HalfUp, Rounding::Up]),
        ("0.6", &[Rounding::Down], &[Rounding::HalfEven, Rounding::HalfUp, Rounding::Up]),
        ("1e-18", &[Rounding::HalfEven, Rounding::HalfUp, Rounding::Down], &[Rounding::Up]),
    ] {
        for rounding in none_left {
            assert_eq!(cents(1, at, *rounding), Err(ConvertError::Zero), "{at} {rounding:?}");
        }
        for rounding in some_left {
            assert_eq!(cents(1, at, *rounding), Ok(converted(1, 0)), "{at} {rounding:?}");
        }
    }
}

#[test]
fn a_result_above_the_largest_amount_is_refused() {
    for rounding in ROUNDINGS {
        assert_eq!(cents(AMOUNT_MAX, "1", rounding), Ok(converted(AMOUNT_MAX, 0)));
        assert_eq!(cents(AMOUNT_MAX, "1.000000000000001", rounding), Err(ConvertError::TooLarge));
        assert_eq!(cents(1, "1e18", rounding), Err(ConvertError::TooLarge));
        let widest = convert(i64::MAX, 0, 9, &rate("9.99999999999999999e18").unwrap(), rounding);
        assert_eq!(widest, Err(ConvertError::TooLarge));
        let past_every_width = convert(i64::MAX, 0, u8::MAX, &rate("1e18").unwrap(), rounding);
        assert_eq!(past_every_width, Err(ConvertError::TooLarge));
    }
    // The receiver's amount would fit; the exchange account's amount would not.
    assert_eq!(cents(AMOUNT_MAX * 10 + 1, "0.1", Rounding::Down), Err(ConvertError::TooLarge));
}

#[test]
fn a_tiny_rate_rounds_to_zero() {
    let least = rate("1e-18").unwrap();
    assert_eq!(convert(i64::MAX, u8::MAX, 0, &least, Rounding::HalfUp), Err(ConvertError::Zero));
    assert_eq!(convert(i64::MAX, u8::MAX, 0, &least, Rounding::Up), Ok(converted(1, 0)));
}

#[test]
fn halves_follow_the_rounding_mode() {
    for (amount, even, up) in [(1, 0, 1), (3, 2, 2), (5, 2, 3), (7, 4, 4)] {
        // Half of an odd amount lies between two results.
        let expected = |to: i64, ceiling: i64| if to == 0 { None } else { Some(converted(to, ceiling - to)) };
        let ceiling = (amount + 1) / 2;
        assert_eq!(cents(amount, "0.5", Rounding::HalfEven).ok(), expected(even, ceiling));
        assert_eq!(cents(amount, "0.5", Rounding::HalfUp).ok(), expected(up, ceiling));
        assert_eq!(cents(amount, "0.5", Rounding::Down).ok(), expected(ceiling - 1, ceiling));
        assert_eq!(cents(amount, "0.5", Rounding::Up).ok(), expected(ceiling, ceiling));
    }
}

#[test]
fn known_conversions() {
    for (amount, from, to, at, rounding, expected) in [
        // 100.00 USD to JPY at 151.237.
        (10_000, 2, 0, "151.237", Rounding::HalfEven, converted(15_124, 0)),
        (10_000, 2, 0, "151.237", Rounding::Down, converted(15_123, 1)),
        // 1 JPY to KWD at 0.00203.
        (1, 0, 3, "0.00203", Rounding::HalfEven, converted(2, 1)),
        // 1.000 KWD to USD at 3.25: exact.
        (1_000, 3, 2, "3.25", Rounding::Up, converted(325, 0)),
        // 1 unit of an asset with nine decimals into one without.
        (1_499_999_999, 9, 0, "1", Rounding::HalfUp, converted(1, 1)),
        (1_500_000_000, 9, 0, "1", Rounding::HalfEven, converted(2, 0)),
        (7, 0, 9, "0.000000001", Rounding::Down, converted(7, 0)),
    ] {
        let got = convert(amount, from, to, &rate(at).unwrap(), rounding);
        assert_eq!(got, Ok(expected), "{amount} at {at}");
    }
}

#[test]
fn every_rounding_mode_has_its_own_name() {
    for rounding in ROUNDINGS {
        assert_eq!(Rounding::parse(rounding.name()), Some(rounding));
    }
    assert_eq!(ROUNDINGS.map(Rounding::name), ["half_even", "half_up", "down", "up"]);
    for other in ["", "HALF_EVEN", "half-up", "ceil"] {
        assert_eq!(Rounding::parse(other), None, "{other}");
    }
}

/// An unsigned integer of any size: decimal digits, least significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digits(Vec<u8>);

impl Digits {
    fn of(number: u128) -> Digits {
        Digits(number.to_string().bytes().rev().map(|byte| byte - b'0').collect()).trimmed()
    }

    fn trimmed(mut self) -> Digits {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn shifted(&self, by: u32) -> Digits {
        let mut digits = vec![0; by as usize];
        digits.extend(&self.0);
        Digits(digits).trimmed()
    }

    fn times(&self, other: &Digits) -> Digits {
        let mut sums = vec![0_u32; self.0.len() + other.0.len() + 1];
        for (i, one) in self.0.iter().enumerate() {
            for (j, two) in other.0.iter().enumerate() {
                sums[i + j] += u32::from(*one) * u32::from(*two);
            }
        }
        let mut carry = 0;
        let digits = sums.into_iter().map(|sum| {
            let all = sum + carry;
            carry = all / 10;
            u8::try_from(all % 10).expect("a digit")
        });
        Digits(digits.collect()).trimmed()
    }

    fn order(&self, other: &Digits) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// Compares `twice / 2` with the exact result by cross-multiplication, without division, rounding
/// or bounds.
fn compare(twice: u128, amount: i64, from: u8, to: u8, digits: u64, exponent: i32) -> Ordering {
    let power = exponent + i32::from(to) - i32::from(from);
    let product = Digits::of(u128::from(amount.unsigned_abs())).times(&Digits::of(u128::from(digits)));
    let double = product.times(&Digits::of(2));
    let claimed = Digits::of(twice);
    if power >= 0 {
        claimed.order(&double.shifted(power.unsigned_abs()))
    } else {
        claimed.shifted(power.unsigned_abs()).order(&double)
    }
}

fn exponents() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0, 2, 3, 4, 9])
}

fn amounts() -> impl Strategy<Value = i64> {
    let sizes = (0_u32..16).prop_flat_map(|size| 1..=10_i64.pow(size));
    prop_oneof![1..100_i64, sizes, AMOUNT_MAX - 100..=AMOUNT_MAX, Just(i64::MAX)]
}

/// Digits and exponent of a valid rate.
fn rates() -> impl Strategy<Value = (u64, i32)> {
    let digits = (0_u32..18).prop_flat_map(|size| 1..10_u64.pow(size + 1));
    (digits, -18_i32..=18)
        .prop_map(|(digits, lead)| (digits, lead - i32::try_from(digits.ilog10()).expect("a small number")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_result_is_the_exact_one_rounded_once(
        amount in amounts(),
        from in exponents(),
        to in exponents(),
        (digits, exponent) in rates(),
    ) {
        let rate = rate(&format!("{digits}e{exponent}")).unwrap();
        let against = |twice: u128| compare(twice, amount, from, to, digits, exponent);
        for rounding in ROUNDINGS {
            let got = match convert(amount, from, to, &rate, rounding) {
                Ok(got) => got,
                Err(ConvertError::Zero) => {
                    // Below one, and not rounded up to one.
                    prop_assert_eq!(against(2), Ordering::Greater);
                    let half = against(1);
                    match rounding {
                        Rounding::Down => {}
                        Rounding::HalfEven => prop_assert_ne!(half, Ordering::Less),
                        Rounding::HalfUp => prop_assert_eq!(half, Ordering::Greater),
                        Rounding::Up => prop_assert!(false, "there was something to round up"),
                    }
                    continue;
                }
                Err(ConvertError::TooLarge) => {
                    let most = 2 * u128::from(AMOUNT_MAX.unsigned_abs());
                    prop_assert_eq!(against(most), Ordering::Less);
                    continue;
                }
            };
            prop_assert_eq!(got.exchange, got.to + got.rounding);
            prop_assert!((0..=1).contains(&got.rounding));
            prop_assert!((1..=AMOUNT_MAX).contains(&got.to) && got.exchange <= AMOUNT_MAX);
            // The exchange account pays the exact result, rounded up.
            let (exchange, received) = (u128::from(got.exchange.unsigned_abs()), u128::from(got.to.unsigned_abs()));
            prop_assert_ne!(against(2 * exchange), Ordering::Less);
            prop_assert_eq!(against(2 * exchange - 2), Ordering::Less);
            let exact = against(2 * exchange) == Ordering::Equal;
            prop_assert!(!exact || got.rounding == 0, "an exact result needs no rounding");
            // Halfway between the two neighbouring whole numbers.
            let half = against(2 * exchange - 1);
            let up = received == exchange;
            match rounding {
                Rounding::Up => prop_assert!(up),
                Rounding::Down => prop_assert_eq!(up, exact),
                Rounding::HalfUp => prop_assert_eq!(up, half != Ordering::Greater),
                Rounding::HalfEven => match half {
                    Ordering::Less => prop_assert!(up),
                    Ordering::Equal => prop_assert_eq!(received % 2, 0),
                    Ordering::Greater => prop_assert!(!up),
                },
            }
        }
    }
}
