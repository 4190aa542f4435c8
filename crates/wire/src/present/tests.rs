use super::*;
use crate::given::{account, hold, references, sealed, transaction};
use counterfoil_core::ledger::asset::Definition;
use counterfoil_core::ledger::hold::State;
use counterfoil_core::ledger::transaction::Kind as Why;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{SubjectId, TenantId, TransactionId};
use counterfoil_core::types::time::Time;
use serde_json::{Value, json};

const REQUEST: Ulid = Ulid::from_bytes([0; 16]);

fn shown(shown: Shown<'_>) -> (Reply, Value) {
    let reply = Presenter::new(references()).books(shown, REQUEST);
    let body = serde_json::from_slice(&reply.body).unwrap();
    (reply, body)
}

#[test]
fn refusals_say_that_a_new_key_is_safe() {
    for (refusal, status) in [
        (Refusal::InsufficientFunds, 400),
        (Refusal::CapExceeded, 400),
        (Refusal::AccountExists, 409),
        (Refusal::AssetExists, 409),
        (Refusal::AlreadyReversed, 409),
        (Refusal::NotReversible, 409),
        (Refusal::HoldEnded, 409),
    ] {
        let (reply, body) = shown(Shown::Refused(refusal));
        assert_eq!((reply.status, reply.media, reply.location), (status, Media::Problem, None));
        assert_eq!((&body["error"], &body["status"]), (&json!(refusal.name()), &json!(status)));
        assert_eq!(body["safe_new_key"], true, "{refusal:?}");
        assert_eq!(body["request_id"], "req_00000000000000000000000000");
    }
}

#[test]
fn every_answer_has_its_status_and_place() {
    let (held, posted) =
        (hold(State::Pending), hold(State::Posted { amount: 5, by: TransactionId::from_i64(9) }));
    let asset = Definition {
        tenant: TenantId::from_i64(1),
        asset: Asset::parse("points").unwrap(),
        exponent: 0,
        created_at: Time::EPOCH,
    };
    let (account, transfer) = (account(), transaction(Why::Transfer));
    let conversion = transaction(Why::Conversion);
    let in_accounts = format!("/v1/accounts/{}", sealed(Kind::Account, 7));
    for (what, status, location, object, named) in [
        (Shown::Opened(&account), 201, Some(in_accounts), "account", "credit"),
        (Shown::Resharded(&account), 200, None, "account", "credit"),
        (Shown::Defined(&asset), 201, None, "asset", ""),
        (
            Shown::Transferred(&transfer),
            201,
            Some(format!("/v1/transfers/{}", sealed(Kind::Transfer, 3))),
            "transfer",
            "posted",
        ),
        (
            Shown::Held(&held),
            201,
            Some(format!("/v1/transfers/{}", sealed(Kind::Transfer, 4))),
            "transfer",
            "pending",
        ),
        (Shown::Ended(&posted), 200, None, "transfer", "posted"),
        (
            Shown::Posted(&conversion),
            201,
            Some(format!("/v1/transactions/{}", sealed(Kind::Transaction, 3))),
            "transaction",
            "conversion",
        ),
        (Shown::Bulk { id: SubjectId::from_i64(1), results: &[] }, 200, None, "bulk", ""),
    ] {
        let (reply, body) = shown(what);
        assert_eq!((reply.status, reply.media), (status, Media::Json), "{object}");
        assert_eq!(body["object"], object);
        let word = ["status", "kind", "normal_side"].iter().find_map(|name| body[name].as_str());
        assert_eq!(word.unwrap_or_default(), named);
        if let Some(location) = &location {
            assert!(location.ends_with(body["id"].as_str().unwrap()), "{location}");
        }
        assert_eq!(reply.location, location);
    }
}
