use super::*;
use proptest::prelude::*;

fn number(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn spellings_of_one_value_are_equal() {
    for (spellings, canonical) in [
        (&["100", "100.0", "1e2", "1.00E+2", "0.001e5", "1000e-1", "1e0000000002"][..], "100"),
        (&["0", "-0", "0.0", "-0.00", "0e9", "0E-9", "0.0e99999999999999999999"], "0"),
        (&["-12.5", "-12.50", "-125e-1", "-0.125e2"], "-12.5"),
        (&["0.000001", "1e-6", "0.1e-5"], "0.000001"),
        (&["0.0000001", "1e-7", "10e-8"], "1e-7"),
        (&["-0.000000125", "-1.25e-7"], "-1.25e-7"),
        (&["100000000000000000000", "1e20"], "100000000000000000000"),
        (&["1000000000000000000000", "1e21", "1E+21"], "1e+21"),
        (&["123456789012345678901.5", "1234567890123456789015e-1"], "123456789012345678901.5"),
        (&["1234567890123456789012.5"], "1.2345678901234567890125e+21"),
        (&["1e400", "0.1e401"], "1e+400"),
        (&["1e9999", "0.01e10001", "1000e9996"], "1e+9999"),
        (&["-1e-9999", "-100e-10001"], "-1e-9999"),
    ] {
        for spelling in spellings {
            assert_eq!(number(spelling), number(canonical), "{spelling}");
            assert_eq!(number(spelling).canonical(), canonical, "{spelling}");
            assert_eq!(number(spelling).to_string(), canonical, "{spelling}");
        }
    }
}

#[test]
fn integers_reach_every_i64_and_no_further() {
    for (text, value) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("1250", Some(1250)),
        ("1.25e3", Some(1250)),
        ("9223372036854775807", Some(i64::MAX)),
        ("9223372036854775807.000", Some(i64::MAX)),
        ("0.9223372036854775807e19", Some(i64::MAX)),
        ("9223372036854775808", None),
        ("9223372036854775807.5", None),
        ("-9223372036854775808", Some(i64::MIN)),
        ("-922337203685477580800e-2", Some(i64::MIN)),
        ("-9223372036854775809", None),
        ("1e18", Some(1_000_000_000_000_000_000)),
        ("1e19", None),
        ("12.5", None),
        ("1e-1", None),
        ("1e9999", None),
    ] {
        assert_eq!(number(text).to_i64(), value, "{text}");
        if let Some(value) = value {
            assert_eq!(number(text), Decimal::from_i64(value), "{text}");
            assert_eq!(Decimal::from_i64(value).canonical(), value.to_string());
        }
    }
    assert_eq!(number("9223372036854775808").canonical(), "9223372036854775808");
}

#[test]
fn whole_numbers_are_integers_of_any_size() {
    for (text, whole) in [
        ("7", true),
        ("1e9999", true),
        ("12345678901234567890123", true),
        ("123456789012345678901e3", true),
        ("12345678901234567890.1", false),
        ("0.5", false),
        ("1e-9999", false),
    ] {
        assert_eq!(number(text).is_integer(), whole, "{text}");
    }
}

#[test]
fn a_number_is_an_integer_times_a_power_of_ten() {
    let most = "9".repeat(38);
    for (text, digits, exponent) in [
        ("0", 0, 0),
        ("-0.00", 0, 0),
        ("12.50", 125, -1),
        ("-12.50", -125, -1),
        ("1250", 125, 1),
        ("-1000", -1, 3),
        ("1e21", 1, 21),
        ("0.000001", 1, -6),
        ("-1e-9999", -1, -9999),
        ("9223372036854775807", i128::from(i64::MAX), 0),
        ("-9223372036854775808", i128::from(i64::MIN), 0),
        ("9223372036854775808", i128::from(i64::MAX) + 1, 0),
        (&most, 10_i128.pow(38) - 1, 0),
    ] {
        assert_eq!(number(text).scaled(), Some((digits, exponent)), "{text}");
        assert_eq!(number(text).is_negative(), digits < 0, "{text}");
    }
    for text in [format!("{most}9"), format!("-0.{most}9")] {
        assert_eq!(number(&text).scaled(), None, "{text}");
    }
}

#[test]
fn neighbours_that_a_double_confuses_differ() {
    for (one, other) in [
        ("9007199254740992", "9007199254740993"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("1e400", "1e401"),
        ("1e-400", "0"),
        ("1", "-1"),
        ("1.5", "-1.5"),
    ] {
        assert_ne!(number(one), number(other));
        assert_ne!(number(one).canonical(), number(other).canonical());
    }
}

#[test]
fn only_the_grammar_of_json_is_a_number() {
    for (text, at) in [
        ("", 0),
        ("-", 1),
        ("+1", 0),
        ("01", 0),
        ("-01", 1),
        ("00", 0),
        (".5", 0),
        ("1.", 2),
        ("1.e5", 2),
        ("1e", 2),
        ("1e+", 3),
        ("1e1.5", 3),
        ("--1", 1),
        ("1 ", 1),
        (" 1", 0),
        ("0x10", 1),
        ("1_000", 1),
        ("NaN", 0),
        ("-Infinity", 1),
        ("1١", 1),
    ] {
        match Decimal::parse(text) {
            Err(DecimalError::Grammar { offset, .. }) => assert_eq!(offset, at, "{text:?}"),
            other => panic!("{text:?} gave {other:?}"),
        }
    }
}

#[test]
fn bounds_are_on_the_value_and_named() {
    let most = "7".repeat(DIGITS_MAX);
    assert!(Decimal::parse(&most).is_ok());
    assert!(Decimal::parse(&format!("{most}00.00")).is_ok());
    assert!(Decimal::parse(&format!("0.00{most}")).is_ok());
    for text in [format!("{most}7"), format!("{most}.7"), format!("0.{most}7"), format!("{most}7e5")] {
        assert_eq!(Decimal::parse(&text), Err(DecimalError::Digits), "{text}");
    }
    assert!(DecimalError::Digits.to_string().contains("400"));

    let zeros = "0".repeat(10_000);
    for text in
        ["1e10000", "10e9999", "1e-10000", "0.1e-9999", "1e99999999999999999999", "-1e-99999999999999999999"]
    {
        assert_eq!(Decimal::parse(text), Err(DecimalError::Exponent), "{text}");
    }
    for text in [format!("1{zeros}"), format!("0.{zeros}1")] {
        assert_eq!(Decimal::parse(&text), Err(DecimalError::Exponent));
    }
    assert_eq!(Decimal::parse(&format!("1{zeros}e-10000")), Ok(Decimal::from_i64(1)));
    assert!(DecimalError::Exponent.to_string().contains("9999"));
}

/// The digits of a nonzero number and the power of ten of its last digit.
fn parts() -> impl Strategy<Value = (bool, String, i32)> {
    let digits = prop::collection::vec(0_u8..10, 0..60);
    (any::<bool>(), digits, -80_i32..80).prop_map(|(negative, digits, exponent)| {
        let text: String = digits.into_iter().map(|digit| char::from(b'0' + digit)).collect();
        (negative, format!("7{text}"), exponent)
    })
}

fn spell(negative: bool, digits: &str, exponent: i32) -> String {
    format!("{}{digits}e{exponent}", if negative { "-" } else { "" })
}

proptest! {
    #[test]
    fn the_canonical_form_reads_back((negative, digits, exponent) in parts()) {
        let value = number(&spell(negative, &digits, exponent));
        let text = value.canonical();
        prop_assert_eq!(&number(&text), &value);
        prop_assert_eq!(number(&text).canonical(), text);
    }

    #[test]
    fn moving_the_point_keeps_the_value((negative, digits, exponent) in parts(), zeros in 0_u8..30, point in 1_usize..60) {
        let value = number(&spell(negative, &digits, exponent));
        let padded = format!("{digits}{}", "0".repeat(usize::from(zeros)));
        prop_assert_eq!(&number(&spell(negative, &padded, exponent - i32::from(zeros))), &value);
        if point < padded.len() {
            let (whole, fraction) = padded.split_at(point);
            let moved = exponent - i32::from(zeros) + i32::try_from(fraction.len()).unwrap();
            prop_assert_eq!(&number(&spell(negative, &format!("{whole}.{fraction}"), moved)), &value);
        }
        let tiny = format!("0.{}{digits}", "0".repeat(usize::from(zeros)));
        let moved = exponent + i32::from(zeros) + i32::try_from(digits.len()).unwrap();
        prop_assert_eq!(&number(&spell(negative, &tiny, moved)), &value);
    }

    #[test]
    fn equality_is_equality_of_value(one in -2000_i128..2000, other in -2000_i128..2000, up in 0_u32..4, more in 0_u32..4) {
        let (left, right) = (number(&format!("{one}e{up}")), number(&format!("{other}e{more}")));
        let same = one * 10_i128.pow(up) == other * 10_i128.pow(more);
        prop_assert_eq!(left == right, same);
        prop_assert_eq!(left.canonical() == right.canonical(), same);
        // The same pair as fractions, which have another representation.
        let (left, right) = (number(&format!("{one}e-{}", 9 - up)), number(&format!("{other}e-{}", 9 - more)));
        prop_assert_eq!(left == right, same);
        prop_assert_eq!(left.canonical() == right.canonical(), same);
    }

    #[test]
    fn a_scaled_number_spells_the_same_value(digits: i64, exponent in -200_i32..200) {
        let value = number(&format!("{digits}e{exponent}"));
        let (scaled, power) = value.scaled().unwrap();
        prop_assert_eq!(&number(&format!("{scaled}e{power}")), &value);
        prop_assert!(scaled == 0 || scaled % 10 != 0);
    }

    #[test]
    fn every_i64_survives(value: i64) {
        prop_assert_eq!(number(&value.to_string()).to_i64(), Some(value));
        prop_assert_eq!(Decimal::from_i64(value).canonical(), value.to_string());
    }

    #[test]
    fn any_text_is_read_or_refused(text in prop::collection::vec(prop::sample::select(b"0019.eE+-".to_vec()), 0..12)) {
        let text: String = text.into_iter().map(char::from).collect();
        if let Ok(value) = Decimal::parse(&text) {
            prop_assert_eq!(number(&value.canonical()), value);
        }
    }
}
