use super::{LAYOUT, read};
use crate::fixtures::{json, references, refusals};
use crate::form;
use counterfoil_core::ledger::convert::{Rate, Rounding};
use counterfoil_core::types::decimal::Decimal;

fn with(more: &str) -> String {
    format!(r#"{{"from":"a","to":"b","amount":5,{more}}}"#)
}

#[test]
fn invalid_conversions_are_refused() {
    let (zero, below, text) = (with(r#""rate":0"#), with(r#""rate":-1.5"#), with(r#""rate":"1,5""#));
    let digits = with(r#""rate":1.2345678901234567891"#);
    let (huge, tiny) = (with(r#""rate":1e19"#), with(r#""rate":"1e-19""#));
    let rounding = with(r#""rate":1,"rounding":"floor","metadata":{"a":1}"#);
    let kinds = with(r#""rate":[],"rounding":1"#);
    refusals(
        |body| read(body, &references()),
        &[
            ("[]", &[("", "must be an object")]),
            ("{}", &[("/from", "missing"), ("/to", "missing"), ("/amount", "missing"), ("/rate", "missing")]),
            (
                r#"{"from":"?","to":5,"amount":-1,"rat":2,"rate":true,"currency":"USD"}"#,
                &[
                    ("/rat", "did you mean `rate`?"),
                    ("/currency", "not a field of a conversion"),
                    ("/from", "is no account"),
                    ("/to", "not a number"),
                    ("/amount", "between"),
                    ("/rate", "not a truth value"),
                ],
            ),
            (&zero, &[("/rate", "above zero")]),
            (&below, &[("/rate", "above zero")]),
            (&text, &[("/rate", "not a JSON number")]),
            (&digits, &[("/rate", "18 significant digits")]),
            (&huge, &[("/rate", "too large")]),
            (&tiny, &[("/rate", "too close to zero")]),
            (&rounding, &[("/rounding", "`half_even`, `half_up`, `down` or `up`"), ("/metadata/a", "text")]),
            (&kinds, &[("/rate", "not an array"), ("/rounding", "not a number")]),
        ],
    );
}

#[test]
fn rates_are_exact_as_numbers_and_texts() {
    let exact = Rate::new(&Decimal::parse("1.08250000000000001").unwrap()).unwrap();
    for rate in [
        "1.08250000000000001",
        "\"1.08250000000000001\"",
        "108250000000000001e-17",
        "\"1.082500000000000010\"",
    ] {
        let order = read(&json(&with(&format!(r#""rate":{rate}"#))), &references()).unwrap();
        assert_eq!((order.rate, order.rounding), (exact, Rounding::HalfEven), "{rate}");
    }
    for (word, rounding) in [
        ("\"half_even\"", Rounding::HalfEven),
        ("\"half_up\"", Rounding::HalfUp),
        ("\"down\"", Rounding::Down),
        ("\"up\"", Rounding::Up),
        ("null", Rounding::HalfEven),
    ] {
        let order = read(&json(&with(&format!(r#""rate":2,"rounding":{word}"#))), &references()).unwrap();
        assert_eq!(order.rounding, rounding, "{word}");
    }
    let form = form::parse(b"from=a&to=b&amount=5&rate=1.0825&rounding=up", &LAYOUT).unwrap();
    assert_eq!(form, json(&with(r#""rate":1.0825,"rounding":"up""#)));
}
