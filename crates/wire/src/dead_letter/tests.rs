use super::schema;
use super::{RESOLVE_LAYOUT, read_resolve, write, write_resolved};
use crate::fixtures::{
    charge, fields_of, json, letter, members, operation, payout_letter, references, refusals, sealed,
};
use crate::form;
use crate::present::Presenter;
use crate::{charge as charges, refund};
use counterfoil_core::outbox::{Flow, ParkReason};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::Present;
use counterfoil_engine::service::{DeadLetter, Resolution, Unresolved};
use serde_json::{Value, json as value};
use utoipa::PartialSchema;

fn written(letter: &DeadLetter) -> Value {
    let mut text = Vec::new();
    write(&mut text, letter, &references());
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn invalid_resolutions_are_refused() {
    let long = format!(r#"{{"resolution":"fail","reason":"{}"}}"#, "é".repeat(251));
    refusals(
        read_resolve,
        &[
            ("7", &[("", "must be an object, not a number")]),
            ("{}", &[("/resolution", "missing; send `adopt`, `void`, `fail` or `retry`")]),
            (r#"{"resolution":"Adopt"}"#, &[("/resolution", "must be `adopt`")]),
            (r#"{"resolution":["adopt"]}"#, &[("/resolution", "not an array")]),
            (r#"{"resolution":"fail"}"#, &[("/reason", "missing")]),
            (r#"{"resolution":"fail","reason":7}"#, &[("/reason", "not a number")]),
            (r#"{"resolution":"fail","reason":" "}"#, &[("/reason", "is empty")]),
            (r#"{"resolution":"fail","reason":"a\nb"}"#, &[("/reason", "control character")]),
            (&long, &[("/reason", "longer than 500 bytes")]),
            (r#"{"resolution":"adopt","reason":"x"}"#, &[("/reason", "only `fail` takes a reason")]),
            (
                r#"{"resolution":"void","resolutoin":"void"}"#,
                &[("/resolutoin", "did you mean `resolution`?")],
            ),
        ],
    );
}

#[test]
fn resolutions_are_read_from_json_and_forms() {
    let fail = Resolution::Fail { reason: "the provider shows nothing".to_owned() };
    for (body, form, expected) in [
        (r#"{"resolution":"adopt"}"#, "resolution=adopt", Resolution::Adopt),
        (r#"{"resolution":"void","reason":null}"#, "", Resolution::Void),
        (r#"{"resolution":"retry"}"#, "resolution=retry", Resolution::Retry),
        (
            r#"{"resolution":"fail","reason":"the provider shows nothing"}"#,
            "resolution=fail&reason=the+provider+shows+nothing",
            fail,
        ),
    ] {
        assert_eq!(read_resolve(&json(body)).as_ref(), Ok(&expected));
        if !form.is_empty() {
            assert_eq!(form::parse(form.as_bytes(), &RESOLVE_LAYOUT).unwrap(), json(body));
        }
    }
}

#[test]
fn golden_dead_letter() {
    let mut text = Vec::new();
    write(&mut text, &letter(ParkReason::NoEvidence, Some(OperationKind::Refund)), &references());
    let (id, of, refund) = (
        sealed(ReferenceKind::DeadLetter, 5),
        sealed(ReferenceKind::Charge, 1),
        sealed(ReferenceKind::Refund, 5),
    );
    assert_eq!(
        String::from_utf8(text).unwrap(),
        format!(
            r#"{{"id":"{id}","object":"dead_letter","flow":"refund","step":"refund","reason":"no_evidence","charge":"{of}","refund":"{refund}","payout":null,"amount":500,"currency":"USD","money_at_risk":500,"gateway":{{"name":"stripe","endpoint":"https://api.stripe.test:443","reference":"re_1"}},"attempts":{{"generation":2,"idle":3,"server_errors":4,"unknown":true,"first_sent_at":"1970-01-01T00:00:01.000Z","last_sent_at":"1970-01-01T00:00:02.000Z"}},"suggestions":["adopt","fail"],"timeline":"/v1/charges/{of}/timeline","created_at":"1970-01-01T00:00:00.000Z"}}"#
        )
    );
}

#[test]
fn dead_letters_of_charges_name_the_charge() {
    let shown = written(&letter(ParkReason::NoEvidence, None));
    assert_eq!((&shown["flow"], &shown["step"]), (&value!("charge"), &value!("charge")));
    assert_eq!(shown["id"], sealed(ReferenceKind::DeadLetter, 1));
    assert_eq!((&shown["refund"], &shown["amount"]), (&Value::Null, &value!(1_250)));
    assert_eq!(shown["gateway"]["reference"], "pi_1");
    assert_eq!(members(&shown), fields_of(schema::DeadLetter::schema()));
    assert_eq!(members(&shown["gateway"]), fields_of(schema::PinnedGateway::schema()));
    assert_eq!(members(&shown["attempts"]), fields_of(schema::Attempts::schema()));
}

#[test]
fn dead_letters_of_payouts_name_the_payout() {
    let shown = written(&payout_letter(ParkReason::NoEvidence));
    let of = sealed(ReferenceKind::Payout, 6);
    assert_eq!((&shown["flow"], &shown["step"]), (&value!("payout"), &value!("payout")));
    assert_eq!((&shown["charge"], &shown["refund"]), (&Value::Null, &Value::Null));
    assert_eq!((&shown["payout"], &shown["money_at_risk"]), (&value!(of), &value!(800)));
    assert_eq!(shown["timeline"], format!("/v1/payouts/{of}/timeline"));
    assert_eq!(
        (&shown["gateway"]["reference"], &shown["suggestions"]),
        (&value!("po_1"), &value!(["adopt", "fail"]))
    );
    assert_eq!(members(&shown), fields_of(schema::DeadLetter::schema()));

    let letter = payout_letter(ParkReason::NoEvidence);
    let reply =
        Presenter::new(references()).resolved(&letter, Ok(&Resolution::Adopt), Ulid::from_bytes([0; 16]));
    let shown: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((&shown["charge"], &shown["payout"]["id"]), (&Value::Null, &value!(of)));
    assert_eq!(shown["payout"]["status"], "parked");
    let why = Err(Unresolved::NothingToUndo);
    let reply = Presenter::new(references()).resolved(&letter, why, Ulid::from_bytes([0; 16]));
    let shown: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((reply.status, &shown["payout"]), (409, &value!(of)));
}

#[test]
fn suggestions_fit_the_reason_and_the_flow() {
    for (why, asked, expected) in [
        (ParkReason::NoEvidence, None, value!(["adopt", "void", "fail"])),
        (ParkReason::AnswerDiffers, None, value!(["adopt", "void"])),
        (ParkReason::Contradiction, None, value!(["adopt", "void"])),
        (ParkReason::CannotUndo, None, value!(["retry", "adopt", "fail"])),
        (ParkReason::AnswerDiffers, Some(OperationKind::Capture), value!(["adopt"])),
        (ParkReason::NoEvidence, Some(OperationKind::Void), value!(["adopt", "fail"])),
    ] {
        assert_eq!(written(&letter(why, asked))["suggestions"], expected, "{why:?} {asked:?}");
    }
    for (why, expected) in [
        (ParkReason::NoEvidence, value!(["adopt", "void", "fail"])),
        (ParkReason::AnswerDiffers, value!(["adopt", "void"])),
    ] {
        let mut held = letter(why, None);
        held.outbox.saga.flow = Flow::Authorize;
        assert_eq!(written(&held)["suggestions"], expected, "{why:?}: a hold can be undone");
    }
}

#[test]
fn golden_resolution() {
    let (mut of, mut refunded) = (Vec::new(), Vec::new());
    charges::write::write(&mut of, &charge(), &references());
    refund::write(&mut refunded, &operation(OperationKind::Refund), &charge(), &references());
    let (of, refunded) = (String::from_utf8(of).unwrap(), String::from_utf8(refunded).unwrap());
    for (asked, resolution, number, refund) in [
        (Some(OperationKind::Refund), Resolution::Adopt, 5, refunded.as_str()),
        (Some(OperationKind::Capture), Resolution::Retry, 5, "null"),
        (None, Resolution::Fail { reason: "x".to_owned() }, 1, "null"),
    ] {
        let letter = letter(ParkReason::NoEvidence, asked);
        let reply =
            Presenter::new(references()).resolved(&letter, Ok(&resolution), Ulid::from_bytes([0; 16]));
        assert_eq!((reply.status, &reply.location), (200, &None));
        let id = sealed(ReferenceKind::DeadLetter, number);
        assert_eq!(
            String::from_utf8(reply.body.to_vec()).unwrap(),
            format!(
                r#"{{"object":"dead_letter_resolution","dead_letter":"{id}","resolution":"{}","charge":{of},"refund":{refund},"payout":null}}"#,
                resolution.name()
            )
        );
    }
    let mut text = Vec::new();
    write_resolved(&mut text, &letter(ParkReason::NoEvidence, None), &Resolution::Void, &references());
    let shown: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(members(&shown), fields_of(schema::DeadLetterResolution::schema()));
}
