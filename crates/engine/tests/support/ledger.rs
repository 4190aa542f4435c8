//! Helpers for ledger requests.

use super::{SharedStore, TENANT, TestEngine, answer, request_of};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::{Account, AccountCode, Guard, Side};
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::totals::BalanceAmounts;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::ledger::{
    AccountSelector, End, HoldTerms, Item, LedgerCommand, Open, Post, PostLeg, TransferOrder,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, HoldId, TransactionId};
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::{BalanceView, Service, Submitted};
use counterfoil_store::{Row, RowKey, Scan, Store, Upto};
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn asset(code: &str) -> Asset {
    Asset::parse(code).unwrap()
}

pub fn named(code: &str) -> AccountSelector {
    AccountSelector::Code(AccountCode::parse(code).unwrap())
}

/// A request under `key` whose body is `body`.
pub fn request(key: &str, body: &impl std::fmt::Debug) -> Request {
    request_of(TENANT, key, format!("{body:?}").as_bytes())
}

pub async fn execute(engine: &TestEngine, key: &str, command: LedgerCommand) -> Submitted {
    engine.execute(request(key, &command), command).await
}

/// Status and body of an answer that must not be a replay.
pub async fn executed(engine: &TestEngine, key: &str, command: LedgerCommand) -> (u16, String) {
    let (status, body, replayed) = answer(&execute(engine, key, command).await);
    assert!(!replayed, "{key} was used before");
    (status, body)
}

/// The id in a body.
pub fn number(body: &str) -> i64 {
    body.split_whitespace().nth(1).and_then(|word| word.trim_end_matches(':').parse().ok()).unwrap()
}

/// A USD account with normal side credit, without a guard.
pub fn plain(code: &str) -> Open {
    Open {
        code: AccountCode::parse(code).unwrap(),
        asset: asset("USD"),
        normal: Side::Credit,
        guard: Guard::default(),
        shards: 1,
        metadata: BTreeMap::new(),
    }
}

/// A USD account with these bounds.
pub fn guarded(code: &str, floor: Option<i64>, cap: Option<i64>) -> Open {
    Open { guard: Guard { floor, cap }, ..plain(code) }
}

pub async fn open(engine: &TestEngine, open: Open) -> AccountId {
    let key = format!("open {}", open.code);
    let (status, body) = executed(engine, &key, LedgerCommand::Open(open)).await;
    assert_eq!(status, 201, "{body}");
    AccountId::from_i64(number(&body))
}

/// An account `world` without a guard, and funded accounts with these bounds.
pub async fn funded(engine: &TestEngine, accounts: &[(Open, i64)]) {
    open(engine, plain("world")).await;
    for (account, amount) in accounts {
        open(engine, account.clone()).await;
        if *amount > 0 {
            let code = account.code.as_str();
            let (status, body) =
                executed(engine, &format!("fund {code}"), transfer("world", code, *amount)).await;
            assert_eq!(status, 201, "{body}");
        }
    }
}

pub fn order(from: &str, to: &str, amount: i64) -> TransferOrder {
    TransferOrder {
        from: named(from),
        to: named(to),
        amount,
        asset: asset("USD"),
        hold: None,
        metadata: BTreeMap::new(),
    }
}

pub fn transfer(from: &str, to: &str, amount: i64) -> LedgerCommand {
    LedgerCommand::Transfer(order(from, to, amount))
}

/// A held transfer.
pub fn hold(from: &str, to: &str, amount: i64) -> LedgerCommand {
    LedgerCommand::Transfer(TransferOrder {
        hold: Some(HoldTerms { expires_at: None }),
        ..order(from, to, amount)
    })
}

/// A held transfer that lapses in this many seconds.
pub fn hold_for(store: &SharedStore, from: &str, to: &str, amount: i64, seconds: u64) -> LedgerCommand {
    let expires_at = Some(store.now().plus(Span::from_ms(seconds * 1_000)));
    LedgerCommand::Transfer(TransferOrder { hold: Some(HoldTerms { expires_at }), ..order(from, to, amount) })
}

pub fn post_hold(hold: i64, amount: Option<i64>) -> LedgerCommand {
    LedgerCommand::End { hold: HoldId::from_i64(hold), how: End::Post { amount } }
}

pub fn void(hold: i64) -> LedgerCommand {
    LedgerCommand::End { hold: HoldId::from_i64(hold), how: End::Void }
}

pub fn reverse(transaction: i64) -> LedgerCommand {
    LedgerCommand::Reverse { transaction: TransactionId::from_i64(transaction) }
}

/// Legs as (code, amount). Positive amounts are credits.
pub fn legs(legs: &[(&str, i64)]) -> Post {
    let entries = legs
        .iter()
        .map(|(code, amount)| PostLeg {
            account: named(code),
            side: if *amount < 0 { Side::Debit } else { Side::Credit },
            amount: amount.abs(),
            asset: asset("USD"),
        })
        .collect();
    Post { entries, metadata: BTreeMap::new() }
}

pub async fn bulk(engine: &TestEngine, key: &str, items: &[Item]) -> Submitted {
    engine.bulk(request(key, &items), items.to_vec()).await
}

/// The results in a bulk answer.
pub fn results(body: &str) -> Vec<&str> {
    body.split_once(": ").unwrap().1.split(',').collect()
}

pub async fn account(engine: &TestEngine, code: &str) -> Arc<Account> {
    engine.account(TENANT, named(code)).await.unwrap().unwrap()
}

pub async fn balance_upto(engine: &TestEngine, code: &str, upto: Upto) -> BalanceView {
    engine.balance(account(engine, code).await, upto).await.unwrap()
}

pub async fn balance(engine: &TestEngine, code: &str) -> BalanceAmounts {
    balance_upto(engine, code, Upto::Now).await.view
}

pub async fn posted(engine: &TestEngine, code: &str) -> i128 {
    balance(engine, code).await.posted
}

pub async fn available(engine: &TestEngine, code: &str) -> i128 {
    balance(engine, code).await.available
}

pub fn view(posted: i128, outgoing: i128, incoming: i128) -> BalanceAmounts {
    BalanceAmounts { posted, outgoing, incoming, available: posted - outgoing }
}

/// All transactions, oldest first.
pub async fn journal(store: &SharedStore) -> Vec<Transaction> {
    let mut all: Vec<Transaction> = Vec::new();
    loop {
        let after = all.last().map(|transaction| (transaction.tenant, transaction.id));
        let page = store.scan(Scan::Transactions { after, limit: 1_000 }).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.into_iter().filter_map(|row| match row {
            Row::Transaction(transaction) => Some(transaction),
            _ => None,
        }));
    }
}

pub async fn hold_row(store: &SharedStore, hold: i64) -> Hold {
    match store.read(vec![RowKey::Hold(TENANT, HoldId::from_i64(hold))]).await.unwrap().remove(0) {
        Some(Row::Hold(hold)) => hold,
        other => panic!("{other:?}"),
    }
}
