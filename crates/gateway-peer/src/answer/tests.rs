use super::*;
use counterfoil_core::types::time::Span;
use http::StatusCode;

const OURS: &str = "ac_ours";
const THEIRS: &str = "ac_theirs";

fn answer(status: u16, body: &str) -> HttpAnswer {
    HttpAnswer {
        status: StatusCode::from_u16(status).unwrap(),
        retry_after: Some("7".into()),
        body: body.as_bytes().to_vec().into(),
    }
}

fn problem(status: u16, error: &str) -> HttpAnswer {
    answer(status, &format!(r#"{{"type":"/errors/{error}","status":{status},"error":"{error}"}}"#))
}

fn transfer(change: (&str, &str)) -> HttpAnswer {
    let body = r#"{"id":"tr_1","object":"transfer","from":"ac_ours","to":"ac_theirs","amount":400,"currency":"USD","status":"posted","hold":false,"amount_posted":400,"metadata":{"counterfoil_payment":"po_1"}}"#;
    assert!(body.contains(change.0));
    answer(201, &body.replacen(change.0, change.1, 1))
}

#[test]
fn answers_without_evidence_about_the_transfer_are_unknown() {
    for (status, error, cause) in [
        (409, "idempotency_key_in_use", Cause::InProgress),
        (503, "store_unavailable", Cause::InProgress),
        (503, "outcome_pending", Cause::InProgress),
        (503, "unheard_of", Cause::ServerError),
        (500, "internal_error", Cause::ServerError),
        (502, "", Cause::ServerError),
        (408, "request_timeout", Cause::Unreadable),
        (410, "idempotency_key_expired", Cause::Unreadable),
        (422, "idempotency_key_fingerprint_mismatch", Cause::Unreadable),
        (302, "", Cause::Unreadable),
    ] {
        assert_eq!(
            outcome(&problem(status, error), OURS, THEIRS),
            ProviderOutcome::Unknown(cause),
            "{status} {error}"
        );
    }
    assert_eq!(
        outcome(&answer(503, "<html>busy</html>"), OURS, THEIRS),
        ProviderOutcome::Unknown(Cause::ServerError),
        "something in between"
    );
}

#[test]
fn only_refusals_stored_under_the_key_are_final() {
    for error in ["insufficient_funds", "cap_exceeded"] {
        assert_eq!(outcome(&problem(400, error), OURS, THEIRS), refused(error));
    }
    for (status, error, fault) in [
        (400, "invalid_request", ProviderFault::Request),
        (404, "not_found", ProviderFault::Request),
        (401, "unauthorized", ProviderFault::Credentials),
        (403, "forbidden", ProviderFault::Credentials),
    ] {
        let rejection = Rejection { fault, code: error.into() };
        assert_eq!(outcome(&problem(status, error), OURS, THEIRS), ProviderOutcome::Rejected(rejection));
    }
    let unnamed = Rejection { fault: ProviderFault::Request, code: "unnamed".into() };
    assert_eq!(outcome(&answer(400, "no"), OURS, THEIRS), ProviderOutcome::Rejected(unnamed));
}

#[test]
fn a_peer_that_is_shutting_down_asks_for_a_pause() {
    for busy in [problem(429, "rate_limited"), problem(503, "shutting_down")] {
        let pause = ProviderOutcome::Busy { retry_after: Some(Span::from_ms(7_000)) };
        assert_eq!(outcome(&busy, OURS, THEIRS), pause);
    }
}

#[test]
fn a_transfer_between_other_accounts_is_not_our_payment() {
    let payment = |answer: &HttpAnswer, destination: &str| match outcome(answer, OURS, destination) {
        ProviderOutcome::Approved(approval) => approval.payment,
        other => panic!("{other:?}"),
    };
    let right = transfer(("400", "400"));
    assert_eq!(payment(&right, THEIRS).as_deref(), Some("po_1"));
    assert_eq!(payment(&right, "alice").as_deref(), Some("po_1"), "a code says nothing of an id");
    let nobodys = Some("");
    assert_eq!(payment(&right, "ac_others").as_deref(), nobodys);
    assert_eq!(payment(&transfer(("ac_ours", "ac_other")), THEIRS).as_deref(), nobodys);
    assert_eq!(payment(&transfer((r#""counterfoil_payment":"po_1""#, "")), THEIRS).as_deref(), nobodys);
}

#[test]
fn only_posted_transfers_are_approved() {
    for change in [
        (r#""posted""#, r#""pending""#),
        (r#""tr_1""#, r#""""#),
        (r#""tr_1""#, r#""tr_\u0000""#),
        (r#""amount":400"#, r#""amount":4.5"#),
        (r#""from":"ac_ours","#, ""),
        ("{", "["),
    ] {
        assert_eq!(outcome(&transfer(change), OURS, THEIRS), UNREADABLE, "{change:?}");
    }
    let two = transfer((r#""amount_posted":400"#, r#""amount_posted":399"#));
    assert!(
        matches!(outcome(&two, OURS, THEIRS), ProviderOutcome::Approved(approval) if approval.amount_minor == 0)
    );
    let ProviderOutcome::Approved(other) = outcome(&transfer((r#""USD""#, r#""EUR""#)), OURS, THEIRS) else {
        panic!()
    };
    assert_eq!((other.amount_minor, other.asset), (400, Asset::parse("EUR").ok()), "the core compares these");
}

#[test]
fn an_unknown_key_proves_nothing() {
    let cause = |answer: &HttpAnswer| match record(answer) {
        KeyRecord::Unclear(cause) => cause,
        KeyRecord::Made(_) | KeyRecord::Refused => panic!("{}", String::from_utf8_lossy(&answer.body)),
    };
    assert_eq!(cause(&problem(404, "not_found")), Cause::Unreadable);
    assert_eq!(cause(&problem(503, "store_unavailable")), Cause::ServerError);
    assert_eq!(cause(&answer(200, r#"{"state":"in_flight","resource":null}"#)), Cause::InProgress);
    for odd in [
        r#"{"state":"completed","resource":null}"#,
        r#"{"state":"completed","resource":{"type":"charge","id":"ch_1"}}"#,
        r#"{"state":"completed","resource":{"type":"transfer","id":"tr_1/../x"}}"#,
        r#"{"state":"expired","resource":null}"#,
        "{}",
    ] {
        assert_eq!(cause(&answer(200, odd)), Cause::Unreadable, "{odd}");
    }
}

#[test]
fn a_key_names_its_transfer_or_its_refusal() {
    for state in ["completed", "expired"] {
        let body = format!(r#"{{"state":"{state}","resource":{{"type":"transfer","id":"tr_1"}}}}"#);
        assert!(matches!(record(&answer(200, &body)), KeyRecord::Made(id) if id == "tr_1"));
    }
    let refusal = answer(200, r#"{"state":"failed_terminal","resource":null}"#);
    assert!(matches!(record(&refusal), KeyRecord::Refused));
}
