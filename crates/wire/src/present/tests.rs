use super::*;
use crate::fixtures::{account, charge, hold, letter, references, sealed, transaction};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::ledger::transaction::TransactionKind;
use counterfoil_core::outbox::ParkReason;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{SubjectId, TenantId, TransactionId};
use counterfoil_core::types::time::Time;
use serde_json::{Value, json};

const REQUEST: Ulid = Ulid::from_bytes([0; 16]);

fn present(reply: LedgerReply<'_>) -> (Reply, Value) {
    let reply = Presenter::new(references()).ledger(reply, REQUEST);
    let body = serde_json::from_slice(&reply.body).unwrap();
    (reply, body)
}

#[test]
fn refusals_say_that_a_new_key_is_safe() {
    for (refusal, status) in [
        (LedgerRefusal::InsufficientFunds, 400),
        (LedgerRefusal::CapExceeded, 400),
        (LedgerRefusal::AccountExists, 409),
        (LedgerRefusal::AssetExists, 409),
        (LedgerRefusal::AlreadyReversed, 409),
        (LedgerRefusal::NotReversible, 409),
        (LedgerRefusal::HoldEnded, 409),
    ] {
        let (reply, body) = present(LedgerReply::Refused(refusal));
        assert_eq!((reply.status, reply.media, reply.location), (status, ReplyMedia::Problem, None));
        assert_eq!((&body["error"], &body["status"]), (&json!(refusal.name()), &json!(status)));
        assert_eq!(body["safe_new_key"], true, "{refusal:?}");
        assert_eq!(body["request_id"], "req_00000000000000000000000000");
    }
}

#[test]
fn every_answer_has_its_status_and_location() {
    let (held, posted) =
        (hold(HoldState::Pending), hold(HoldState::Posted { amount: 5, by: TransactionId::from_i64(9) }));
    let asset = AssetDefinition {
        tenant: TenantId::from_i64(1),
        asset: Asset::parse("points").unwrap(),
        exponent: 0,
        created_at: Time::EPOCH,
    };
    let (account, transfer) = (account(), transaction(TransactionKind::Transfer));
    let conversion = transaction(TransactionKind::Conversion);
    let in_accounts = format!("/v1/accounts/{}", sealed(ReferenceKind::Account, 7));
    for (what, status, location, object, named) in [
        (LedgerReply::Opened(&account), 201, Some(in_accounts), "account", "credit"),
        (LedgerReply::Resharded(&account), 200, None, "account", "credit"),
        (LedgerReply::Defined(&asset), 201, None, "asset", ""),
        (
            LedgerReply::Transferred(&transfer),
            201,
            Some(format!("/v1/transfers/{}", sealed(ReferenceKind::Transfer, 3))),
            "transfer",
            "posted",
        ),
        (
            LedgerReply::Held(&held),
            201,
            Some(format!("/v1/transfers/{}", sealed(ReferenceKind::Transfer, 4))),
            "transfer",
            "pending",
        ),
        (LedgerReply::Ended(&posted), 200, None, "transfer", "posted"),
        (
            LedgerReply::Posted(&conversion),
            201,
            Some(format!("/v1/transactions/{}", sealed(ReferenceKind::Transaction, 3))),
            "transaction",
            "conversion",
        ),
        (LedgerReply::Bulk { id: SubjectId::from_i64(1), results: &[] }, 200, None, "bulk", ""),
    ] {
        let (reply, body) = present(what);
        assert_eq!((reply.status, reply.media), (status, ReplyMedia::Json), "{object}");
        assert_eq!(body["object"], object);
        let word = ["status", "kind", "normal_side"].iter().find_map(|name| body[name].as_str());
        assert_eq!(word.unwrap_or_default(), named);
        if let Some(location) = &location {
            assert!(location.ends_with(body["id"].as_str().unwrap()), "{location}");
        }
        assert_eq!(reply.location.as_deref(), location.as_deref());
    }
}

/// The problem that an operation on a charge with that status gets.
fn conflict(status: ChargeStatus, kind: OperationKind, why: OperationRefusal) -> (Reply, Value) {
    let charge = Charge { status, ..charge() };
    let reply = Presenter::new(references()).impossible(&charge, kind, why, REQUEST);
    let body = serde_json::from_slice(&reply.body).unwrap();
    (reply, body)
}

#[test]
fn refused_operations_name_the_status_and_the_alternatives() {
    for (kind, status, words) in [
        (
            OperationKind::Capture,
            ChargeStatus::Succeeded,
            "is captured and cannot be captured; nothing was done. A charge is captured once",
        ),
        (OperationKind::Capture, ChargeStatus::Refunded, "make a new charge"),
        (OperationKind::Capture, ChargeStatus::Voided, "make a new charge"),
        (OperationKind::Capture, ChargeStatus::Failed, "Nothing was taken"),
        (OperationKind::Capture, ChargeStatus::Parked, "/v1/dead-letters/{id}/resolve"),
        (OperationKind::Void, ChargeStatus::Succeeded, "POST /v1/refunds instead"),
        (OperationKind::Void, ChargeStatus::PartiallyRefunded, "POST /v1/refunds instead"),
        (OperationKind::Void, ChargeStatus::Voided, "nothing left to do"),
        (OperationKind::Refund, ChargeStatus::RequiresCapture, "POST /v1/charges/{id}/void instead"),
        (OperationKind::Refund, ChargeStatus::Refunded, "All of it was given back"),
        (OperationKind::Refund, ChargeStatus::Failed, "has failed and cannot be refunded"),
    ] {
        let (reply, body) = conflict(status, kind, OperationRefusal::Status);
        assert_eq!((reply.status, reply.media, reply.location), (409, ReplyMedia::Problem, None));
        assert_eq!(body["error"], "charge_state_conflict");
        assert_eq!(body["charge_status"], status.name());
        assert_eq!(
            (&body["charge"], &body["safe_new_key"]),
            (&json!(sealed(ReferenceKind::Charge, 1)), &json!(true))
        );
        assert_eq!(body.get("amount_available"), None);
        assert!(body["detail"].as_str().unwrap().contains(words), "{kind:?} {status:?}: {}", body["detail"]);
    }
}

#[test]
fn golden_conflict_of_amounts() {
    let (reply, _) = conflict(
        ChargeStatus::Succeeded,
        OperationKind::Refund,
        OperationRefusal::Exceeds { available: 250 },
    );
    assert_eq!(
        String::from_utf8(reply.body.to_vec()).unwrap(),
        format!(
            r#"{{"type":"/errors/charge_state_conflict","title":"Charge does not allow it","status":409,"detail":"At most 250 USD can be refunded, in minor units; nothing was done. Ask for that much or less, or leave `amount` out for all of it, and use a new key.","error":"charge_state_conflict","request_id":"req_00000000000000000000000000","amount_available":250,"charge":"{}","charge_status":"succeeded","safe_new_key":true}}"#,
            sealed(ReferenceKind::Charge, 1)
        )
    );
}

#[test]
fn operations_under_way_ask_for_a_retry_with_the_same_key() {
    let (reply, body) = conflict(ChargeStatus::RequiresCapture, OperationKind::Void, OperationRefusal::Busy);
    assert_eq!((reply.status, &body["error"]), (409, &json!("payment_in_progress")));
    assert_eq!((&body["retry_after_ms"], &body["safe_new_key"]), (&json!(1_000), &json!(true)));
    assert!(body["detail"].as_str().unwrap().contains("same key"), "{body}");
}

#[test]
fn unresolved_dead_letters_say_why_and_what_to_do() {
    let letter = letter(ParkReason::NoEvidence, Some(OperationKind::Refund));
    for (why, word, words) in [
        (Unresolved::NoEvidence, "no_evidence", "provider's own records"),
        (Unresolved::Several, "several", "all but one"),
        (Unresolved::Executed, "executed", "`adopt` it"),
        (Unresolved::NotSetUp, "not_set_up", "under `[peers]`"),
        (Unresolved::NothingToUndo, "nothing_to_undo", "`fail` it"),
        (Unresolved::Busy, "busy", "at this moment"),
    ] {
        let reply = Presenter::new(references()).resolved(&letter, Err(why), REQUEST);
        assert_eq!((reply.status, reply.media, reply.location), (409, ReplyMedia::Problem, None));
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((&body["error"], &body["reason"]), (&json!("dead_letter_unresolved"), &json!(word)));
        assert_eq!(body["dead_letter"], sealed(ReferenceKind::DeadLetter, 5));
        assert_eq!(
            (&body["charge"], &body["safe_new_key"]),
            (&json!(sealed(ReferenceKind::Charge, 1)), &json!(true))
        );
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains(words) && detail.contains("new key"), "{detail}");
    }
}
