//! Helpers for operations and payouts.

use crate::support::ledger::*;
use crate::support::peer::eu;
use crate::support::*;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::charge::{Charge, Wallet};
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::payments::operation::{Operation, OperationKind};
use counterfoil_core::payments::payout;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, ChargeId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::{Row, RowKey, Scan, Store};
use std::collections::BTreeMap;

/// An operation on a charge under `key`.
pub(crate) fn asked(key: &str, charge: ChargeId, kind: OperationKind, amount: Option<i64>) -> Operate {
    let request = request(key, &(charge, kind, amount));
    Operate { request, charge, kind, amount }
}

pub(crate) async fn operate(
    engine: &TestEngine,
    key: &str,
    charge: ChargeId,
    kind: OperationKind,
    amount: Option<i64>,
) -> Submitted {
    engine.operate(asked(key, charge, kind, amount)).await
}

/// Status and body of an answer.
pub(crate) async fn done(
    engine: &TestEngine,
    key: &str,
    charge: ChargeId,
    kind: OperationKind,
    amount: Option<i64>,
) -> (u16, String) {
    let (status, body, _) = answer(&operate(engine, key, charge, kind, amount).await);
    (status, body)
}

/// A command to authorize an amount.
pub(crate) fn holding(key: &str, amount: i64) -> CreateCharge {
    let mut command = command(key, amount);
    command.wanted.capture = false;
    command
}

/// A command for a split charge.
pub(crate) fn splitting(key: &str, amount: i64, account: AccountId, part: i64) -> CreateCharge {
    let mut command = command(key, amount);
    command.wanted.wallet = Some(Wallet { account, amount: part });
    command
}

/// A command to pay out from the main account.
pub(crate) fn paying_out(key: &str, amount: i64) -> CreatePayout {
    paying_out_of(key, amount, None)
}

/// A command to pay out from an account.
pub(crate) fn paying_out_of(key: &str, amount: i64, account: Option<AccountId>) -> CreatePayout {
    CreatePayout {
        request: request(key, &("payout", amount, account)),
        wanted: payout::create::NewPayout {
            amount: Money::new(amount, Asset::parse("USD").unwrap()).unwrap(),
            account,
            peer: None,
            destination: None,
            description: None,
            metadata: BTreeMap::new(),
        },
    }
}

/// A command to pay from the main account to an account at the peer.
pub(crate) fn paying_peer(key: &str, amount: i64) -> CreatePayout {
    let mut command = paying_out(key, amount);
    command.request = request(key, &("peer", amount));
    command.wanted.peer = Some(eu());
    command.wanted.destination = Some(Masked::new("alice".into()));
    command
}

/// The charge of a key.
pub(crate) async fn made(store: &SharedStore, key: &str) -> ChargeId {
    claim(store, key).await.subject.into()
}

/// Authorizes an amount and returns the charge.
pub(crate) async fn held(engine: &TestEngine, store: &SharedStore, key: &str, amount: i64) -> ChargeId {
    assert_eq!(answer(&engine.submit(holding(key, amount)).await).0, 201);
    made(store, key).await
}

/// Charges an amount and returns the charge.
pub(crate) async fn charged(engine: &TestEngine, store: &SharedStore, key: &str, amount: i64) -> ChargeId {
    assert_eq!(answer(&charge(engine, key, amount).await).0, 201);
    made(store, key).await
}

pub(crate) async fn stored(store: &SharedStore, charge: ChargeId) -> Charge {
    match store.read(vec![RowKey::Charge(TENANT, charge)]).await.unwrap().remove(0) {
        Some(Row::Charge(charge)) => charge,
        other => panic!("no charge but {other:?}"),
    }
}

pub(crate) async fn operations(store: &SharedStore, charge: ChargeId) -> Vec<Operation> {
    let rows =
        store.scan(Scan::OperationsOn { tenant: TENANT, charge, after: None, limit: 1_000 }).await.unwrap();
    rows.into_iter()
        .map(|row| if let Row::Operation(operation) = row { operation } else { panic!("{row:?}") })
        .collect()
}

/// All outbox rows.
pub(crate) async fn work_left(store: &SharedStore) -> usize {
    store.scan(Scan::Outbox { after: None, limit: 1_000 }).await.unwrap().len()
}
