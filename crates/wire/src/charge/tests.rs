use super::schema;
use super::write::write;
use super::{LAYOUT, read, read_capture, read_void};
use crate::fixtures::{charge, fields_of, members, references, refusals, sealed};
use crate::form;
use crate::present::Presenter;
use counterfoil_core::idempotency::reply::ReplyMedia;
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::create::NewCharge;
use counterfoil_core::payments::charge::{
    Charge, ChargeOrder, ChargeStatus, ChargeSums, FailureCode, PaymentFailure, Wallet,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::{Made, Present};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::PartialSchema;

const MAIN: AccountId = AccountId::from_i64(7);

fn order(body: &str) -> Result<NewCharge, Vec<(String, String)>> {
    let body = Json::parse(body.as_bytes()).unwrap();
    read(&body, &references())
        .map_err(|errors| errors.into_iter().map(|error| (error.pointer, error.message)).collect())
}

/// Checks the places and messages of the refusals of a body, in order.
fn refused(body: &str, expected: &[(&str, &str)]) {
    let found = order(body).unwrap_err();
    assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
    for ((pointer, message), (place, words)) in found.iter().zip(expected) {
        assert_eq!(pointer, place, "{body}");
        assert!(message.contains(words), "{body}: {message:?} lacks {words:?}");
    }
}

/// The body of a valid request with one more field.
fn with(field: &str) -> String {
    format!(r#"{{"amount":1250,"currency":"usd","payment_method":"pm_card_visa",{field}}}"#)
}

#[test]
fn minimal_and_full_requests_are_read() {
    let small = order(r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#).unwrap();
    assert_eq!(small.amount, Money::new(1_250, Asset::parse("USD").unwrap()).unwrap());
    assert_eq!(small.payment_method.reveal(), "pm_card_visa");
    assert!(small.capture && small.description.is_none() && small.metadata.is_empty());
    assert_eq!(small.destination, None);

    let main = references().seal(ReferenceKind::Account, MAIN.to_i64());
    let full = order(&with(&format!(
        r#""capture":false,"destination":"{main}","description":"two\nlines","metadata":{{"a":"1","b":""}}"#
    )))
    .unwrap();
    assert!(!full.capture);
    assert_eq!(full.destination, Some(MAIN));
    // The engine answers as for another tenant's account.
    let forged = order(&with(&format!(r#""destination":"ac_{}""#, "0".repeat(26)))).unwrap();
    assert_eq!(forged.destination, Some(AccountId::from_i64(-1)));
    assert_eq!(full.description.unwrap().reveal(), "two\nlines");
    assert_eq!(full.metadata["a"].reveal(), "1");

    let nulls = r#""capture":null,"destination":null,"description":null,"metadata":null,"wallet":null"#;
    assert_eq!(order(&with(nulls)).unwrap(), small);
}

#[test]
fn whole_numbers_are_read_in_any_notation() {
    for amount in ["100", "100.0", "1e2", "1000e-1"] {
        let body = format!(r#"{{"amount":{amount},"currency":"EUR","payment_method":"pm"}}"#);
        assert_eq!(order(&body).unwrap().amount.minor(), 100, "{amount}");
    }
    for (amount, words) in [
        ("100.5", "fraction"),
        ("1e-1", "fraction"),
        ("0", "between"),
        ("-1", "between"),
        ("-0", "between"),
        ("1000000000000000", "between"),
        ("9223372036854775808", "between"),
        ("1e300", "between"),
        ("-1e300", "between"),
        ("\"100\"", "not a text"),
        ("true", "not a truth value"),
        ("[]", "not an array"),
        ("null", "missing"),
    ] {
        let body = format!(r#"{{"amount":{amount},"currency":"EUR","payment_method":"pm"}}"#);
        refused(&body, &[("/amount", words)]);
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    refused("[]", &[("", "must be an object")]);
    refused("{}", &[("/amount", "missing"), ("/currency", "missing"), ("/payment_method", "missing")]);
    refused(
        r#"{"amout":1,"amount":0,"currency":"xxx","payment_method":"","capture":"yes","description":1,"metadata":[],"destination":"ac_1","wallet":{}}"#,
        &[
            ("/amout", "did you mean `amount`?"),
            ("/amount", "between 1 and"),
            ("/currency", "known currency"),
            ("/payment_method", "1 to 255"),
            ("/capture", "true or false"),
            ("/description", "must be a text"),
            ("/metadata", "object of texts"),
            ("/destination", "no such account"),
            ("/wallet/account", "missing"),
            ("/wallet/amount", "missing"),
        ],
    );
}

#[test]
fn each_field_has_its_bounds() {
    for (field, place, words) in [
        (r#""customer":"x""#.to_owned(), "/customer", "`customer` is not a field"),
        (r#""a/b":1"#.to_owned(), "/a~1b", "not a field"),
        (format!(r#""description":"{}""#, "é".repeat(501)), "/description", "longer than 1000 bytes"),
        (r#""description":"a\u0000""#.to_owned(), "/description", "control character"),
        (r#""description":"a\u0085""#.to_owned(), "/description", "control character"),
        (r#""metadata":{"a":1}"#.to_owned(), "/metadata/a", "must be a text, not a number"),
        (r#""metadata":{"a":true}"#.to_owned(), "/metadata/a", "not a truth value"),
        (r#""metadata":{"a":null}"#.to_owned(), "/metadata/a", "not null"),
        (r#""metadata":{"":"x"}"#.to_owned(), "/metadata/", "1 to 40 bytes"),
        (r#""metadata":{"a[b]":"x"}"#.to_owned(), "/metadata/a[b]", "square brackets"),
        (
            format!(r#""metadata":{{"{}":"x"}}"#, "n".repeat(41)),
            &format!("/metadata/{}", "n".repeat(41)),
            "1 to 40",
        ),
        (format!(r#""metadata":{{"a":"{}"}}"#, "v".repeat(501)), "/metadata/a", "longer than 500 bytes"),
        (r#""destination":7"#.to_owned(), "/destination", "account's id"),
        (r#""destination":"customer:42""#.to_owned(), "/destination", "no such account"),
    ] {
        refused(&with(&field), &[(place, words)]);
    }
    let pairs: Vec<String> = (0..51).map(|n| format!(r#""k{n}":"v""#)).collect();
    assert!(order(&with(&format!(r#""metadata":{{{}}}"#, pairs[..50].join(",")))).is_ok());
    refused(&with(&format!(r#""metadata":{{{}}}"#, pairs.join(","))), &[("/metadata", "at most 50")]);
    let many: Vec<String> = (0..900).map(|n| format!(r#""u{n}":1"#)).collect();
    assert_eq!(order(&with(&many.join(","))).unwrap_err().len(), 32);
}

#[test]
fn card_numbers_are_refused_and_never_repeated() {
    for number in ["4242424242424242", "4242-4242-4242-4242", "378282246310005", "6011 1111 1111 1117"] {
        let body = format!(r#"{{"amount":1,"currency":"EUR","payment_method":"{number}"}}"#);
        refused(&body, &[("/payment_method", "card number")]);
        assert!(!order(&body).unwrap_err()[0].1.contains(number));
    }
    for (zeros, is_card) in [(12, false), (13, true), (19, true), (20, false)] {
        let body = format!(r#"{{"amount":1,"currency":"EUR","payment_method":"{}"}}"#, "0".repeat(zeros));
        assert_eq!(order(&body).is_err(), is_card, "{zeros} digits");
    }
    for token in ["pm_card_visa", "4242424242424241", "123456789012", "tok_4242424242424242"] {
        assert!(
            order(&format!(r#"{{"amount":1,"currency":"EUR","payment_method":"{token}"}}"#)).is_ok(),
            "{token}"
        );
    }
}

#[test]
fn forms_and_json_mean_the_same_request() {
    let form = form::parse(
        b"amount=1250&currency=usd&payment_method=pm_card_visa&capture=false&metadata[order]=42&description=5",
        &LAYOUT,
    )
    .unwrap();
    let json = Json::parse(
        br#"{"description":"5","metadata":{"order":"42"},"capture":false,"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#,
    )
    .unwrap();
    assert_eq!(form, json);
    assert_eq!(read(&form, &references()), read(&json, &references()));
}

#[test]
fn golden_charge() {
    let reply = Presenter::new(references()).charge(&charge(), Made::Created);
    let id = references().seal(ReferenceKind::Charge, 1);
    let account = references().seal(ReferenceKind::Account, 7);
    assert_eq!((reply.status, reply.media), (201, ReplyMedia::Json));
    assert_eq!(reply.location, Some(format!("/v1/charges/{id}").into()));
    assert_eq!(
        String::from_utf8(reply.body.to_vec()).unwrap(),
        format!(
            r#"{{"id":"{id}","object":"charge","amount":1250,"currency":"USD","status":"succeeded","captured":true,"amount_refunded":0,"amount_captured":1250,"wallet":null,"payment_method":"pm_card_visa","destination":"{account}","gateway":{{"name":"stripe","reference":"pi_1"}},"failure":null,"description":null,"metadata":{{}},"created_at":"1970-01-01T00:00:00.000Z"}}"#
        )
    );
    let changed = Presenter::new(references()).charge(&charge(), Made::Changed);
    assert_eq!((changed.status, changed.location, changed.body), (200, reply.location, reply.body));
}

#[test]
fn golden_split_and_refunded_charge() {
    let (account, wallet) = (sealed(ReferenceKind::Account, 7), sealed(ReferenceKind::Account, 9));
    let paid = ChargeOrder {
        wallet: Some(Wallet { account: AccountId::from_i64(9), amount: 250 }),
        ..ChargeOrder::clone(&charge().order)
    };
    let split = Charge {
        order: Arc::new(paid),
        status: ChargeStatus::PartiallyRefunded,
        sums: ChargeSums { captured: 1_000, refunded: 300, refunding: 50 },
        ..charge()
    };
    let mut text = Vec::new();
    write(&mut text, &split, &references());
    assert_eq!(
        String::from_utf8(text).unwrap(),
        format!(
            r#"{{"id":"{}","object":"charge","amount":1250,"currency":"USD","status":"partially_refunded","captured":true,"amount_refunded":300,"amount_captured":1250,"wallet":{{"account":"{wallet}","amount":250}},"payment_method":"pm_card_visa","destination":"{account}","gateway":{{"name":"stripe","reference":"pi_1"}},"failure":null,"description":null,"metadata":{{}},"created_at":"1970-01-01T00:00:00.000Z"}}"#,
            sealed(ReferenceKind::Charge, 1)
        )
    );
    let failed = Charge { status: ChargeStatus::Failed, sums: ChargeSums::default(), ..split };
    let mut text = Vec::new();
    write(&mut text, &failed, &references());
    let failed: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&failed["captured"], &failed["amount_captured"]), (&json!(false), &json!(0)));
}

#[test]
fn invalid_wallets_are_refused() {
    let account = sealed(ReferenceKind::Account, 9);
    let whole = with(&format!(r#""wallet":{{"account":"{account}","amount":1250}}"#));
    let more = with(&format!(r#""wallet":{{"account":"{account}","amount":5000}}"#));
    let held = with(&format!(r#""capture":false,"wallet":{{"account":"{account}","amount":1}}"#));
    for (body, place, words) in [
        (with(r#""wallet":"ac_1""#), "/wallet", "a wallet must be an object, not a text; send {\"account\""),
        (with(r#""wallet":[]"#), "/wallet", "not an array"),
        (with(r#""wallet":{"account":"ac_1","amount":5}"#), "/wallet/account", "no such account"),
        (with(r#""wallet":{"account":7,"amount":5}"#), "/wallet/account", "not a number"),
        (whole, "/wallet/amount", "less than the charge's 1250"),
        (more, "/wallet/amount", "make a transfer"),
        (held, "/capture", "captured at once"),
    ] {
        refused(&body, &[(place, words)]);
    }
    refused(&with(r#""wallet":{}"#), &[("/wallet/account", "missing"), ("/wallet/amount", "missing")]);
    refused(
        &with(r#""wallet":{"acount":"x","account":"x","amount":0}"#),
        &[
            ("/wallet/acount", "`acount` is not a field of a wallet; did you mean `account`?"),
            ("/wallet/account", "no such account"),
            ("/wallet/amount", "between 1 and"),
        ],
    );
}

#[test]
fn wallets_are_read_from_json_and_forms() {
    let account = sealed(ReferenceKind::Account, 9);
    let json = with(&format!(r#""wallet":{{"account":"{account}","amount":1249}}"#));
    let wanted = order(&json).unwrap();
    assert_eq!(wanted.wallet, Some(Wallet { account: AccountId::from_i64(9), amount: 1_249 }));
    let form = format!(
        "amount=1250&currency=usd&payment_method=pm_card_visa&wallet[account]={account}&wallet[amount]=1249"
    );
    assert_eq!(form::parse(form.as_bytes(), &LAYOUT).unwrap(), Json::parse(json.as_bytes()).unwrap());
}

#[test]
fn captures_and_voids_are_read() {
    refusals(
        read_capture,
        &[
            ("[]", &[("", "must be an object")]),
            (r#"{"amount":0}"#, &[("/amount", "between")]),
            (r#"{"amount":1.5}"#, &[("/amount", "fraction")]),
            (r#"{"amount":"5"}"#, &[("/amount", "not a text")]),
            (r#"{"amuont":1}"#, &[("/amuont", "did you mean `amount`?")]),
        ],
    );
    refusals(
        read_void,
        &[
            ("null", &[("", "must be an object, not null")]),
            (r#"{"amount":1}"#, &[("/amount", "is not a field of this request; leave it out")]),
        ],
    );
    let body = |text: &str| Json::parse(text.as_bytes()).unwrap();
    assert_eq!(read_capture(&body("{}")), Ok(None));
    assert_eq!(read_capture(&body(r#"{"amount":null}"#)), Ok(None));
    assert_eq!(read_capture(&body(r#"{"amount":5}"#)), Ok(Some(5)));
    assert_eq!(read_void(&body("{}")), Ok(()));
}

fn failed(code: FailureCode, decline_code: Option<&str>) -> Charge {
    let failure = PaymentFailure { code, decline_code: decline_code.map(str::to_owned) };
    Charge { status: ChargeStatus::Failed, provider_reference: None, failure: Some(failure), ..charge() }
}

#[test]
fn failures_are_written_with_their_reasons() {
    let id = references().seal(ReferenceKind::Charge, 1).to_string();
    let request = Ulid::from_bytes([0; 16]);
    for (code, status, more) in [
        (FailureCode::CardDeclined, 402, json!({"decline_code": "lost_card"})),
        (FailureCode::GatewayRejected, 400, json!({"safe_new_key": true})),
        (FailureCode::GatewayUnauthorized, 502, json!({"safe_new_key": true})),
        (FailureCode::GatewayUnavailable, 503, json!({"safe_new_key": true})),
        (FailureCode::MarkedFailed, 502, json!({"safe_new_key": true})),
    ] {
        let charge = failed(code, Some("lost_card"));
        let reply = Presenter::new(references()).failure(
            &PaymentSubject::Charge(charge.clone(), None),
            charge.failure.as_ref().unwrap(),
            request,
        );
        assert_eq!((reply.status, reply.media, reply.location), (status, ReplyMedia::Problem, None));
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((&body["error"], &body["charge"]), (&json!(code.name()), &json!(id)));
        assert_eq!(body["request_id"], "req_00000000000000000000000000");
        for (name, value) in more.as_object().unwrap() {
            assert_eq!(&body[name], value, "{code:?}");
        }
        let held = Charge { status: ChargeStatus::RequiresCapture, failure: None, ..charge.clone() };
        let reply = Presenter::new(references()).failure(
            &PaymentSubject::Charge(held, None),
            charge.failure.as_ref().unwrap(),
            request,
        );
        assert_eq!(reply.status, status);
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((&body["error"], &body["charge"]), (&json!(code.name()), &json!(id)));
        assert!(body["detail"].as_str().unwrap().contains("as it was"), "{body}");
    }
}

#[test]
fn written_charges_match_their_schema() {
    let mut out = Vec::new();
    write(&mut out, &failed(FailureCode::CardDeclined, None), &references());
    let charge: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(members(&charge), fields_of(schema::Charge::schema()));
    assert_eq!(members(&charge["gateway"]), fields_of(schema::Gateway::schema()));
    assert_eq!(members(&charge["failure"]), fields_of(schema::Failure::schema()));
    assert_eq!(charge["failure"]["decline_code"], Value::Null);
    assert_eq!(charge["wallet"], Value::Null);
    let request = fields_of(schema::CreateCharge::schema());
    assert_eq!(request, LAYOUT.names().into_iter().map(str::to_owned).collect());
}
