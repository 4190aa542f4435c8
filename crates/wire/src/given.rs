//! What tests of several forms share.

use counterfoil_core::ledger::account::{Account, Code, Guard, Side};
use counterfoil_core::ledger::hold::{Hold, State};
use counterfoil_core::ledger::transaction::{Kind, Layer, Leg, Legs, Transaction};
use counterfoil_core::payments::books::Metadata;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, HoldId, TenantId, TransactionId};
use counterfoil_core::types::json::Json;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::reference::{Kind as Refers, References};
use counterfoil_core::types::time::Time;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;

pub(crate) fn references() -> References {
    References::new(MacKey::new(&[42; 32]))
}

pub(crate) fn sealed(kind: Refers, number: i64) -> String {
    references().seal(kind, number).to_string()
}

pub(crate) fn usd() -> Asset {
    Asset::parse("USD").unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

pub(crate) fn metadata() -> Metadata {
    Metadata::from([("order".to_owned(), Masked::new("42".to_owned()))])
}

pub(crate) fn account() -> Account {
    Account {
        id: AccountId::from_i64(7),
        tenant: TenantId::from_i64(2),
        code: Code::parse("customer:42").unwrap(),
        asset: usd(),
        normal: Side::Credit,
        guard: Guard { floor: Some(-5), cap: None },
        shards: 16,
        widest: 64,
        metadata: metadata(),
        created_at: Time::EPOCH,
        revision: 3,
    }
}

pub(crate) fn transaction(kind: Kind) -> Transaction {
    let leg = |account, side| Leg {
        account: AccountId::from_i64(account),
        side,
        layer: Layer::Posted,
        amount: 1_250,
        asset: usd(),
    };
    Transaction {
        id: TransactionId::from_i64(3),
        tenant: TenantId::from_i64(2),
        kind,
        legs: Legs::balanced(vec![leg(7, Side::Debit), leg(8, Side::Credit)]).unwrap(),
        metadata: metadata(),
        at: Time::EPOCH,
    }
}

pub(crate) fn hold(state: State) -> Hold {
    Hold {
        id: HoldId::from_i64(4),
        tenant: TenantId::from_i64(2),
        from: AccountId::from_i64(7),
        to: AccountId::from_i64(8),
        amount: 1_250,
        asset: usd(),
        expires_at: Time::from_ms(60_000),
        state,
        metadata: Metadata::new(),
        created_at: Time::EPOCH,
        revision: 1,
    }
}

/// Each body is refused at these places, in this order, with these words.
pub(crate) fn refusals<T: Debug>(
    read: impl Fn(&Json) -> Result<T, Vec<Flaw>>,
    cases: &[(&str, &[(&str, &str)])],
) {
    for (body, expected) in cases {
        let found = read(&json(body)).unwrap_err();
        assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
        for (flaw, (place, words)) in found.iter().zip(*expected) {
            assert_eq!(flaw.pointer, *place, "{body}");
            assert!(flaw.message.contains(words), "{body}: {:?} lacks {words:?}", flaw.message);
        }
    }
}

/// The members of an object that was written.
pub(crate) fn fields_written(text: &[u8]) -> BTreeSet<String> {
    members(&serde_json::from_slice(text).unwrap())
}

pub(crate) fn members(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The properties a schema describes.
pub(crate) fn fields_of(schema: utoipa::openapi::RefOr<utoipa::openapi::Schema>) -> BTreeSet<String> {
    members(&serde_json::to_value(schema).unwrap()["properties"])
}
