use super::schema;
use super::{LAYOUT, read, write};
use crate::fixtures::{fields_of, json, members, metadata, payout, references, refusals, sealed, usd};
use crate::form;
use crate::present::Presenter;
use counterfoil_core::idempotency::reply::ReplyMedia;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::payout::create::NewPayout;
use counterfoil_core::payments::payout::{Payout, PayoutOrder, PayoutStatus};
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::Present;
use serde_json::Value;
use std::sync::Arc;
use utoipa::PartialSchema;

#[test]
fn invalid_payouts_are_refused() {
    let long = format!(r#"{{"amount":1,"currency":"USD","destination":"{}"}}"#, "b".repeat(256));
    refusals(
        |body| read(body, &references()),
        &[
            ("[]", &[("", "the body must be an object, not an array")]),
            ("{}", &[("/amount", "missing"), ("/currency", "missing")]),
            (
                r#"{"amount":"5","currency":7,"acccount":"x"}"#,
                &[
                    ("/acccount", "did you mean `account`?"),
                    ("/amount", "not a text"),
                    ("/currency", "not a number"),
                ],
            ),
            (r#"{"amount":0,"currency":"USD"}"#, &[("/amount", "between 1 and")]),
            (r#"{"amount":1,"currency":"USX"}"#, &[("/currency", "not a known currency")]),
            (r#"{"amount":1,"currency":"USD","account":"ch_1"}"#, &[("/account", "no such account")]),
            (r#"{"amount":1,"currency":"USD","account":7}"#, &[("/account", "like ac_…")]),
            (r#"{"amount":1,"currency":"USD","destination":""}"#, &[("/destination", "1 to 255 visible")]),
            (r#"{"amount":1,"currency":"USD","destination":"b a"}"#, &[("/destination", "visible ASCII")]),
            (r#"{"amount":1,"currency":"USD","destination":["ba_1"]}"#, &[("/destination", "not an array")]),
            (&long, &[("/destination", "1 to 255 visible")]),
            (r#"{"amount":1,"currency":"USD","peer":"eu"}"#, &[("/destination", "the account there")]),
            (
                r#"{"amount":1,"currency":"USD","peer":7}"#,
                &[("/peer", "the name of a peer, not a number"), ("/destination", "the account there")],
            ),
            (
                r#"{"amount":1,"currency":"USD","peer":"EU","destination":"alice"}"#,
                &[("/peer", "lower-case letters")],
            ),
        ],
    );
}

#[test]
fn payouts_are_read_with_and_without_optional_fields() {
    let plain = NewPayout {
        amount: Money::new(800, usd()).unwrap(),
        account: None,
        peer: None,
        destination: None,
        description: None,
        metadata: std::collections::BTreeMap::new(),
    };
    let body = json(r#"{"amount":800,"currency":"usd"}"#);
    assert_eq!(read(&body, &references()), Ok(plain.clone()));
    assert_eq!(form::parse(b"amount=800&currency=usd", &LAYOUT), Ok(body));

    let id = sealed(ReferenceKind::Account, 7);
    let rich = NewPayout {
        account: Some(AccountId::from_i64(7)),
        destination: Some(Masked::new("ba_1".to_owned())),
        description: Some(Masked::new("weekly".to_owned())),
        metadata: metadata(),
        ..plain
    };
    let body = json(&format!(
        r#"{{"amount":800,"currency":"USD","account":"{id}","destination":"ba_1","description":"weekly","metadata":{{"order":"42"}}}}"#
    ));
    assert_eq!(read(&body, &references()), Ok(rich));
    let form = format!(
        "amount=800&currency=USD&account={id}&destination=ba_1&description=weekly&metadata[order]=42"
    );
    assert_eq!(form::parse(form.as_bytes(), &LAYOUT), Ok(body));
}

#[test]
fn payouts_to_peers_are_read_from_json_and_forms() {
    let body = json(r#"{"amount":800,"currency":"USD","peer":"eu","destination":"savings:alice"}"#);
    let wanted = read(&body, &references()).unwrap();
    assert_eq!(wanted.peer, PeerName::parse("eu").ok());
    assert_eq!(wanted.destination, Some(Masked::new("savings:alice".to_owned())));
    let form = b"amount=800&currency=USD&peer=eu&destination=savings:alice";
    assert_eq!(form::parse(form, &LAYOUT), Ok(body));
    let nobody = json(r#"{"amount":800,"currency":"USD","peer":null}"#);
    assert_eq!(read(&nobody, &references()).unwrap().peer, None, "null is absent");
}

#[test]
fn payouts_to_peers_name_the_peer() {
    let eu = ProviderBinding::to_peer(&PeerName::parse("eu").unwrap(), "http://eu:8080", "ac_1");
    let failure =
        PaymentFailure { code: FailureCode::PayoutFailed, decline_code: Some("cap_exceeded".to_owned()) };
    let payout = Payout { provider: eu, failure: Some(failure.clone()), ..payout() };
    let mut text = Vec::new();
    write(&mut text, &payout, &references());
    let shown: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(shown["gateway"], serde_json::json!({"name": "eu", "reference": "po_1"}));
    for code in [
        FailureCode::PayoutFailed,
        FailureCode::GatewayRejected,
        FailureCode::GatewayUnauthorized,
        FailureCode::GatewayUnavailable,
    ] {
        let failure = PaymentFailure { code, ..failure.clone() };
        let subject = PaymentSubject::Payout(Payout { failure: Some(failure.clone()), ..payout.clone() });
        let refused = Presenter::new(references()).failure(&subject, &failure, Ulid::from_bytes([0; 16]));
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("peer") && detail.contains("available again"), "{detail}");
        assert!(!detail.contains("bank"), "{detail}");
    }
}

#[test]
fn golden_payout() {
    let (id, account) = (sealed(ReferenceKind::Payout, 6), sealed(ReferenceKind::Account, 7));
    let reply = Presenter::new(references()).payout(&payout());
    assert_eq!((reply.status, reply.media), (201, ReplyMedia::Json));
    assert_eq!(reply.location, Some(format!("/v1/payouts/{id}").into()));
    assert_eq!(
        String::from_utf8(reply.body.to_vec()).unwrap(),
        format!(
            r#"{{"id":"{id}","object":"payout","amount":800,"currency":"USD","status":"paid","account":"{account}","destination":"ba_1","gateway":{{"name":"stripe","reference":"po_1"}},"failure":null,"description":null,"metadata":{{"order":"42"}},"created_at":"1970-01-01T00:00:00.000Z"}}"#
        )
    );
}

#[test]
fn failed_payouts_say_why_and_match_their_schema() {
    for (code, words) in [
        (FailureCode::PayoutFailed, "to the bank account"),
        (FailureCode::GatewayRejected, "did not accept the request"),
        (FailureCode::GatewayUnauthorized, "credentials"),
        (FailureCode::GatewayUnavailable, "nothing was paid out"),
        (FailureCode::MarkedFailed, "an operator found"),
    ] {
        let failure = PaymentFailure { code, decline_code: Some("account_closed".to_owned()) };
        let order = Arc::new(PayoutOrder { destination: None, ..PayoutOrder::clone(&payout().order) });
        let failed = Payout {
            order,
            status: PayoutStatus::Failed,
            failure: Some(failure.clone()),
            provider_reference: None,
            ..payout()
        };
        let mut text = Vec::new();
        write(&mut text, &failed, &references());
        let shown: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(members(&shown), fields_of(schema::Payout::schema()));
        assert_eq!((&shown["status"], &shown["destination"]), (&"failed".into(), &Value::Null));
        assert_eq!(shown["failure"]["code"], code.name());
        assert!(shown["failure"]["message"].as_str().unwrap().contains(words), "{shown}");

        let subject = PaymentSubject::Payout(failed);
        let refused = Presenter::new(references()).failure(&subject, &failure, Ulid::from_bytes([0; 16]));
        let problem: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!((refused.media, &problem["error"]), (ReplyMedia::Problem, &code.name().into()));
        assert_eq!(problem["payout"], sealed(ReferenceKind::Payout, 6));
        assert_eq!((&problem["charge"], &problem["safe_new_key"]), (&Value::Null, &true.into()));
        assert!(!problem["detail"].as_str().unwrap().contains("charge"), "{problem}");
    }
}

#[test]
fn golden_failure() {
    let failure =
        PaymentFailure { code: FailureCode::PayoutFailed, decline_code: Some("account_closed".to_owned()) };
    let reply = Presenter::new(references()).failure(
        &PaymentSubject::Payout(payout()),
        &failure,
        Ulid::from_bytes([0; 16]),
    );
    let id = sealed(ReferenceKind::Payout, 6);
    assert_eq!(reply.status, 402);
    assert_eq!(
        String::from_utf8(reply.body.to_vec()).unwrap(),
        format!(
            r#"{{"type":"/errors/payout_failed","title":"Payout failed","status":402,"detail":"The payment provider could not pay to the bank account and nothing was paid out; the money is available again. Look at `decline_code`, correct the bank account at the provider, and use a new key.","error":"payout_failed","request_id":"req_00000000000000000000000000","decline_code":"account_closed","payout":"{id}","safe_new_key":true}}"#
        )
    );
}
