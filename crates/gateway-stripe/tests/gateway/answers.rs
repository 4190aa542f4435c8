//! The table of answers, row by row.

use crate::provider::{Act, Provider, intent, reply};
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, ProviderFault, ProviderOutcome, Rejection, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::time::Span;

const UNREADABLE: ProviderOutcome = ProviderOutcome::Unknown(Cause::Unreadable);

async fn check(status: u16, body: &str, expected: &ProviderOutcome) {
    let outcome = Provider::answering(status, body).await.charged().await;
    assert_eq!(&outcome, expected, "{status} {body}");
}

fn approved(stands: Stands, amount_minor: i64) -> ProviderOutcome {
    ProviderOutcome::Approved(Approval {
        reference: "pi_1".into(),
        stands,
        amount_minor,
        asset: Asset::parse("USD").ok(),
        payment: Some("ch_1".into()),
    })
}

fn declined(code: &str, decline_code: Option<&str>, reference: Option<&str>) -> ProviderOutcome {
    ProviderOutcome::Declined(Decline {
        code: code.into(),
        decline_code: decline_code.map(Into::into),
        reference: reference.map(Into::into),
    })
}

fn rejected(fault: ProviderFault, code: &str) -> ProviderOutcome {
    ProviderOutcome::Rejected(Rejection { fault, code: code.into() })
}

#[tokio::test]
async fn succeeded_is_captured_in_the_amount_both_fields_name() {
    check(200, &intent("pi_1", "succeeded"), &approved(Stands::Captured, 1250)).await;
    check(201, &intent("pi_1", "succeeded"), &approved(Stands::Captured, 1250)).await;
    let less = intent("pi_1", "succeeded").replace(r#""amount_received":1250"#, r#""amount_received":1000"#);
    check(200, &less, &approved(Stands::Captured, 0)).await;
}

/// PostgreSQL cannot store U+0000, so an outcome that contains it could never be recorded.
#[tokio::test]
async fn texts_that_no_store_can_hold_are_unreadable() {
    for id in [r"pi_\u0000", r"\u0000", r"pi_\u001b[2J", r"pi_\n1", r"pi_\u0085"] {
        check(200, &intent(id, "succeeded"), &UNREADABLE).await;
        check(200, &intent(id, "canceled"), &UNREADABLE).await;
    }
    for error in [
        r#"{"type":"card_error","code":"card_\u0000declined"}"#,
        r#"{"type":"card_error","code":"card_declined","decline_code":"lost\u0000card"}"#,
    ] {
        check(402, &format!(r#"{{"error":{error}}}"#), &UNREADABLE).await;
    }
    let nameless = rejected(ProviderFault::Request, "unnamed");
    check(400, r#"{"error":{"type":"invalid_request_error","code":"a\u0000b"}}"#, &nameless).await;
}

#[tokio::test]
async fn requires_capture_is_held_in_the_amount_capturable() {
    check(200, &intent("pi_1", "requires_capture"), &approved(Stands::Held, 1250)).await;
}

#[tokio::test]
async fn the_plain_amount_stands_in_for_absent_ones() {
    for (status, stands) in [("succeeded", Stands::Captured), ("requires_capture", Stands::Held)] {
        let body = format!(
            r#"{{"id":"pi_1","amount":7,"currency":"USD","status":"{status}","metadata":{{"counterfoil_payment":"ch_1"}}}}"#
        );
        check(200, &body, &approved(stands, 7)).await;
    }
}

#[tokio::test]
async fn missing_fields_are_not_made_up() {
    let bare = ProviderOutcome::Approved(Approval {
        reference: "pi_1".into(),
        stands: Stands::Captured,
        amount_minor: 7,
        asset: None,
        payment: None,
    });
    check(200, r#"{"id":"pi_1","amount":7,"status":"succeeded"}"#, &bare).await;
    check(
        200,
        r#"{"id":"pi_1","amount":7,"currency":"doubloons","metadata":{},"status":"succeeded"}"#,
        &bare,
    )
    .await;
}

#[tokio::test]
async fn canceled_is_declined() {
    check(200, &intent("pi_1", "canceled"), &declined("canceled", None, Some("pi_1"))).await;
}

#[tokio::test]
async fn requires_payment_method_is_declined_only_with_a_card_error() {
    let body = intent("pi_1", "requires_payment_method");
    check(200, &body, &declined("card_declined", Some("lost_card"), Some("pi_1"))).await;
    check(200, &body.replace("card_error", "api_error"), &UNREADABLE).await;
    check(200, r#"{"id":"pi_1","amount":7,"status":"requires_payment_method"}"#, &UNREADABLE).await;
}

#[tokio::test]
async fn unsettled_states_are_never_believed() {
    for status in ["processing", "requires_action", "requires_confirmation", "paid", ""] {
        check(200, &intent("pi_1", status), &UNREADABLE).await;
    }
}

#[tokio::test]
async fn a_malformed_success_is_unreadable() {
    let good = intent("pi_1", "succeeded");
    for body in [
        good.replace("pi_1", ""),
        good.replace("pi_1", &"x".repeat(256)),
        good.replace(r#""id":"pi_1","#, ""),
        good.replace(r#""id":"pi_1""#, r#""id":null"#),
        good.replace(r#""amount_received":1250"#, r#""amount_received":1250.0"#),
        good.replace(r#""amount_received":1250"#, r#""amount_received":"1250""#),
        good.replace(r#""amount_received":1250"#, r#""amount_received":99999999999999999999"#),
        good.replace(r#""amount_received":1250"#, r#""amount_received":1250,"amount_received":1"#),
        good.replace(r#""status":"succeeded""#, r#""status":true"#),
        r#"{"id":"pi_1","status":"succeeded"}"#.to_owned(),
        format!("[{good}]"),
        format!("{good}{good}"),
    ] {
        check(200, &body, &UNREADABLE).await;
    }
}

#[tokio::test]
async fn a_card_error_is_declined() {
    let body = r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds","payment_intent":{"id":"pi_1","metadata":{"counterfoil_payment":"ch_1"}}}}"#;
    check(402, body, &declined("card_declined", Some("insufficient_funds"), Some("pi_1"))).await;
    check(402, r#"{"error":{"type":"card_error"}}"#, &declined("card_error", None, None)).await;
}

#[tokio::test]
async fn a_402_of_another_shape_is_unreadable() {
    for body in [
        r#"{"error":{"type":"api_error","code":"card_declined"}}"#,
        r#"{"error":{"code":"card_declined"}}"#,
        r#"{"error":"card_error"}"#,
        "{}",
        "",
        "Payment Required",
        &intent("pi_1", "succeeded"),
        &format!(r#"{{"error":{{"type":"card_error","code":"{}"}}}}"#, "x".repeat(256)),
    ] {
        check(402, body, &UNREADABLE).await;
    }
}

#[tokio::test]
async fn a_refusal_of_another_payment_is_not_ours() {
    let other = r#"{"error":{"type":"card_error","code":"card_declined","payment_intent":{"id":"pi_1","metadata":{"counterfoil_payment":"ch_2"}}}}"#;
    check(402, other, &UNREADABLE).await;
    for status in ["canceled", "requires_payment_method"] {
        check(200, &intent("pi_1", status).replace("ch_1", "ch_2"), &UNREADABLE).await;
    }
}

#[tokio::test]
async fn our_mistakes_are_rejected_with_the_providers_code() {
    let body = r#"{"error":{"type":"invalid_request_error","code":"parameter_missing","message":"m"}}"#;
    for (status, fault) in [
        (400, ProviderFault::Request),
        (404, ProviderFault::Request),
        (401, ProviderFault::Credentials),
        (403, ProviderFault::Credentials),
    ] {
        check(status, body, &rejected(fault, "parameter_missing")).await;
        let codeless = r#"{"error":{"type":"invalid_request_error"}}"#;
        check(status, codeless, &rejected(fault, "invalid_request_error")).await;
    }
}

#[tokio::test]
async fn a_rejection_is_decided_by_its_status_alone() {
    for (status, fault) in [
        (400, ProviderFault::Request),
        (401, ProviderFault::Credentials),
        (403, ProviderFault::Credentials),
        (404, ProviderFault::Request),
    ] {
        for body in ["", "<html>Bad Request</html>", "{}", r#"{"error":{}}"#] {
            check(status, body, &ProviderOutcome::Rejected(Rejection { fault, code: "unnamed".into() }))
                .await;
        }
    }
}

#[tokio::test]
async fn a_key_used_for_another_request_does_not_reject_the_payment() {
    check(400, r#"{"error":{"type":"idempotency_error"}}"#, &UNREADABLE).await;
}

#[tokio::test]
async fn a_key_in_use_is_in_progress() {
    check(409, "{}", &ProviderOutcome::Unknown(Cause::InProgress)).await;
}

#[tokio::test]
async fn too_many_requests_is_busy_for_the_requested_time() {
    for (header, retry_after) in [
        ("", None),
        ("retry-after: 3\r\n", Some(Span::from_ms(3_000))),
        ("Retry-After: 86400\r\n", Some(Span::from_ms(300_000))),
        ("retry-after: soon\r\n", None),
        ("retry-after: \u{e9}\r\n", None),
    ] {
        let script = vec![Act::Send(reply(429, header, "{}"))];
        let outcome = Provider::playing(script).await.charged().await;
        assert_eq!(outcome, ProviderOutcome::Busy { retry_after }, "{header:?}");
    }
}

#[tokio::test]
async fn server_errors_are_unknown_whatever_their_body() {
    for status in [500, 502, 503, 504, 599] {
        check(status, &intent("pi_1", "succeeded"), &ProviderOutcome::Unknown(Cause::ServerError)).await;
    }
}

#[tokio::test]
async fn statuses_outside_the_protocol_are_unreadable() {
    for status in [300, 304, 405, 408, 410, 413, 418, 422, 451, 600, 999] {
        check(status, &intent("pi_1", "succeeded"), &UNREADABLE).await;
    }
}
