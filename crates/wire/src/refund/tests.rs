use super::schema;
use super::{LAYOUT, read, write};
use crate::fixtures::{charge, fields_of, json, members, operation, references, refusals, sealed};
use crate::form;
use crate::present::Presenter;
use crate::refund::read::Refund;
use counterfoil_core::idempotency::reply::ReplyMedia;
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::present::Present;
use serde_json::Value;
use utoipa::PartialSchema;

#[test]
fn invalid_refunds_are_refused() {
    refusals(
        |body| read(body, &references()),
        &[
            ("[]", &[("", "the body must be an object, not an array")]),
            ("{}", &[("/charge", "missing")]),
            (r#"{"charge":null,"amount":null}"#, &[("/charge", "missing")]),
            (
                r#"{"charge":7,"amount":"5","reason":"x"}"#,
                &[
                    ("/reason", "`reason` is not a field of a refund; leave it out"),
                    ("/charge", "not a number"),
                    ("/amount", "not a text"),
                ],
            ),
            (
                r#"{"charge":"re_1","amont":1}"#,
                &[("/amont", "did you mean `amount`?"), ("/charge", "like ch_…")],
            ),
            (r#"{"charge":"ch_1","amount":0}"#, &[("/amount", "between 1 and")]),
        ],
    );
}

#[test]
fn full_and_partial_refunds_are_read_from_json_and_forms() {
    let id = sealed(ReferenceKind::Charge, 1);
    let charge = Some(ChargeId::from_i64(1));
    let body = json(&format!(r#"{{"charge":"{id}","amount":5}}"#));
    assert_eq!(read(&body, &references()), Ok(Refund { charge, amount: Some(5) }));
    assert_eq!(form::parse(format!("charge={id}&amount=5").as_bytes(), &LAYOUT), Ok(body));
    let whole = json(&format!(r#"{{"charge":"{id}"}}"#));
    assert_eq!(read(&whole, &references()), Ok(Refund { charge, amount: None }));
    for never in ["ch_", "ch_zzzzzzzzzzzzzzzzzzzzzzzzzz", &id.replace("ch_", "ch_0")] {
        let body = json(&format!(r#"{{"charge":"{never}"}}"#));
        assert_eq!(read(&body, &references()), Ok(Refund { charge: None, amount: None }), "{never}");
    }
}

#[test]
fn golden_refund() {
    let (id, of) = (sealed(ReferenceKind::Refund, 5), sealed(ReferenceKind::Charge, 1));
    let reply = Presenter::new(references()).refund(&operation(OperationKind::Refund), &charge());
    assert_eq!((reply.status, reply.media), (201, ReplyMedia::Json));
    assert_eq!(reply.location, Some(format!("/v1/refunds/{id}").into()));
    assert_eq!(
        String::from_utf8(reply.body.to_vec()).unwrap(),
        format!(
            r#"{{"id":"{id}","object":"refund","amount":500,"currency":"USD","charge":"{of}","status":"succeeded","gateway":{{"name":"stripe","reference":"re_1"}},"failure":null,"created_at":"1970-01-01T00:00:00.000Z"}}"#
        )
    );
}

#[test]
fn failed_refunds_say_why_and_match_their_schema() {
    for (code, words) in [
        (FailureCode::CardDeclined, "declined"),
        (FailureCode::GatewayRejected, "did not accept the request"),
        (FailureCode::GatewayUnauthorized, "credentials"),
        (FailureCode::GatewayUnavailable, "nothing was given back"),
        (FailureCode::MarkedFailed, "an operator found"),
    ] {
        let failure = Some(PaymentFailure { code, decline_code: None });
        let failed = Operation {
            status: OperationStatus::Failed,
            failure,
            provider_reference: None,
            ..operation(OperationKind::Refund)
        };
        let mut text = Vec::new();
        write(&mut text, &failed, &charge(), &references());
        let refund: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(members(&refund), fields_of(schema::Refund::schema()));
        assert_eq!((&refund["status"], &refund["gateway"]["reference"]), (&"failed".into(), &Value::Null));
        assert_eq!(refund["failure"]["code"], code.name());
        assert!(refund["failure"]["message"].as_str().unwrap().contains(words), "{refund}");
    }
}
