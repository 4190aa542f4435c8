//! Verification of the ledger: correct stores pass, and each wrong row violates exactly its own
//! invariants.

#![allow(clippy::unwrap_used, reason = "a test panics when it cannot continue")]

mod live;
mod lying;
mod operations;
mod payouts;
#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "../sagas/words.rs"]
mod words;

use counterfoil_core::idempotency::claim::{ClaimId, Resource};
use counterfoil_core::ledger::account::{Account, AccountName, Guard};
use counterfoil_core::ledger::balance::{Balance, Delta};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::transaction::{Layer, Legs, Reversal, Transaction, TransactionKind};
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_core::types::id::{AccountId, HoldId, SetId, TenantId, TransactionId};
use counterfoil_engine::service::Service;
use counterfoil_engine::verify::verify;
use counterfoil_store::{ChangeSet, Move, Row, RowKey, Scan, Store};
use lying::Lying;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use support::ledger::*;
use support::*;

/// The violated invariants.
async fn broken<S: Store>(store: &S) -> Vec<&'static str> {
    let report = verify(store, |_| {}).await.unwrap();
    report
        .findings()
        .into_iter()
        .filter(|finding| finding.violations > 0)
        .map(|finding| finding.invariant)
        .collect()
}

/// A store with everything once: charges, transfers, holds in every state, reversals, snapshots.
async fn eventful() -> (SharedStore, TestEngine) {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Approve, Script::Decline]));
    let engine = engine(&store, &provider).await;
    assert_eq!(answer(&charge(&engine, "captured", 1_250).await).0, 201);
    assert_eq!(answer(&charge(&engine, "declined", 1_250).await).0, 402);
    funded(
        &engine,
        &[(guarded("rich", Some(-50), Some(10_000)), 5_000), (guarded("poor", Some(0), None), 0)],
    )
    .await;
    let moved = number(&executed(&engine, "move", transfer("rich", "poor", 700)).await.1);
    assert_eq!(executed(&engine, "undo", reverse(moved)).await.0, 201);
    for (key, end) in [("post", true), ("void", false)] {
        let held = number(&executed(&engine, &format!("hold {key}"), hold("rich", "poor", 300)).await.1);
        let end = if end { post_hold(held, Some(120)) } else { void(held) };
        assert_eq!(executed(&engine, key, end).await.0, 200);
    }
    executed(&engine, "hold open", hold("rich", "poor", 40)).await;
    executed(&engine, "hold lapse", hold_for(&store, "rich", "world", 60, 5)).await;
    for number in 0..300 {
        assert_eq!(executed(&engine, &format!("small {number}"), transfer("world", "poor", 1)).await.0, 201);
    }
    seconds(8).await;
    (store, engine)
}

#[tokio::test(start_paused = true)]
async fn an_empty_store_passes() {
    assert_eq!(broken(&SharedStore::new()).await, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn an_honest_store_passes_and_every_invariant_checks_something() {
    let (store, _engine) = eventful().await;
    let report = verify(&store, |_| {}).await.unwrap();
    assert!(report.holds(), "{:#?}", report.findings());
    let mut ledger: Vec<_> =
        report.findings().into_iter().skip_while(|finding| finding.invariant != "journal_balances").collect();
    ledger.retain(|finding| finding.invariant != "wallets_pay_with_the_card");
    assert_eq!(ledger.len(), 11);
    assert!(ledger.iter().all(|finding| finding.looked_at > 0), "{ledger:#?}");
}

/// Commits rows that no engine would write.
async fn smuggle(store: &SharedStore, legs: Legs) -> TransactionId {
    let id = TransactionId::from_i64(i64::MAX - 1);
    let (tenant, at) = (TENANT, store.now());
    let transaction =
        Transaction { id, tenant, kind: TransactionKind::General, legs, metadata: BTreeMap::new(), at };
    store.commit(ChangeSet::new(SetId::from_i64(i64::MAX)).insert(transaction)).await.unwrap();
    id
}

async fn id(engine: &TestEngine, code: &str) -> AccountId {
    account(engine, code).await.id
}

#[tokio::test(start_paused = true)]
async fn transactions_without_legs_or_with_invalid_amounts_are_found() {
    let (store, engine) = eventful().await;
    let usd = asset("USD");
    let (world, suspense) = (id(&engine, "world").await, id(&engine, "chart:suspense:USD").await);
    smuggle(&store, Legs::released_pair(world, suspense, 0, usd)).await;
    assert_eq!(broken(&store).await, ["journal_balances"]);

    let (store, _engine) = eventful().await;
    smuggle(&store, Legs::released_pair(world, suspense, 1, usd).posted()).await;
    assert_eq!(broken(&store).await, ["journal_balances"]);
}

#[tokio::test(start_paused = true)]
async fn legs_on_missing_accounts_or_those_of_another_tenant_are_found() {
    let (store, engine) = eventful().await;
    let world = id(&engine, "world").await;
    let legs = Legs::transfer(world, AccountId::from_i64(77), 5, asset("USD"), Layer::Posted).unwrap();
    smuggle(&store, legs).await;
    // A missing account has no history, so the others no longer sum to zero.
    assert_eq!(broken(&store).await, ["ledger_sums_to_zero", "entries_fit_accounts"]);

    let (store, engine) = eventful().await;
    let another = request_of(TenantId::from_i64(2), "k", b"");
    let opened = engine.execute(another, LedgerCommand::Open(plain("theirs"))).await;
    let theirs = AccountId::from_i64(number(&answer(&opened).1));
    let world = id(&engine, "world").await;
    smuggle(&store, Legs::transfer(world, theirs, 5, asset("USD"), Layer::Posted).unwrap()).await;
    // The leg on another tenant's account is not in that account's history.
    let all = ["ledger_sums_to_zero", "entries_fit_accounts", "entries_match_journal"];
    assert_eq!(broken(&store).await, all);
}

#[tokio::test(start_paused = true)]
async fn a_leg_in_another_asset_than_its_account_is_found() {
    let (store, engine) = eventful().await;
    let [world, fees] = [id(&engine, "world").await, id(&engine, "chart:fees:USD").await];
    smuggle(&store, Legs::transfer(world, fees, 5, asset("EUR"), Layer::Posted).unwrap()).await;
    assert_eq!(broken(&store).await, ["entries_fit_accounts"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_with_two_claims_is_found() {
    let (store, _engine) = eventful().await;
    let claims = store.scan(Scan::Claims { after: None, limit: 1_000 }).await.unwrap();
    let transfers = claims.into_iter().filter_map(|row| match row {
        Row::Claim(claim) if claim.makes == Resource::Transfer => Some(claim.id),
        _ => None,
    });
    let transfers: Vec<ClaimId> = transfers.collect();
    let [one, other, ..] = transfers[..] else { panic!("{transfers:?}") };
    let lying = altered(&store, move |row| {
        if let Row::Claim(claim) = row
            && claim.id == one
        {
            claim.id = other;
        }
    });
    let report = verify(&lying, |_| {}).await.unwrap();
    let finding = report.findings().into_iter().find(|finding| finding.violations > 0).unwrap();
    assert_eq!((finding.invariant, finding.violations), ("key_has_one_record", 1));
}

/// A key that is claimed again during the listing is listed twice, with the old and the new claim.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_claimed_again_during_the_check_is_accepted() {
    let (store, _engine) = eventful().await;
    let claims = store.scan(Scan::Claims { after: None, limit: 1_000 }).await.unwrap();
    let [Row::Claim(one), Row::Claim(other), ..] = &claims[..] else { panic!("{claims:?}") };
    let (one, other, lies) = (one.clone(), other.id, AtomicU32::new(1));
    let lying = altered(&store, move |row| {
        if *row == Row::Claim(one.clone())
            && lies.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
            && let Row::Claim(claim) = row
        {
            claim.id = other;
        }
    });
    assert_eq!(broken(&lying).await, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn a_history_that_differs_from_the_journal_is_found() {
    let (store, engine) = eventful().await;
    let world = id(&engine, "chart:fees:USD").await;
    let lying = Lying::about_histories(&store, move |account, mut folded| {
        folded.totals.entries += u64::from(account == world);
        folded
    });
    assert_eq!(broken(&lying).await, ["entries_match_journal"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_transaction_is_found() {
    let (store, engine) = eventful().await;
    let [world, fees] = [id(&engine, "world").await, id(&engine, "chart:fees:USD").await];
    let gone = smuggle(&store, Legs::transfer(world, fees, 5, asset("USD"), Layer::Posted).unwrap()).await;
    assert_eq!(broken(&store).await, Vec::<&str>::new());
    let lying = Lying::about_rows(&store, move |row| {
        Some(row).filter(|row| row.key() != RowKey::Transaction(TENANT, gone))
    });
    assert_eq!(broken(&lying).await, ["entries_match_journal"]);
}

#[tokio::test(start_paused = true)]
async fn money_created_from_nothing_is_found() {
    // Legs cannot be unbalanced, only histories. Those then differ from the journal as well.
    let (store, engine) = eventful().await;
    let fees = id(&engine, "chart:fees:USD").await;
    let lying = Lying::about_histories(&store, move |account, mut folded| {
        folded.totals.credits += i128::from(account == fees);
        folded
    });
    assert_eq!(broken(&lying).await, ["ledger_sums_to_zero", "entries_match_journal"]);
}

/// The store with one changed row.
fn altered(store: &SharedStore, lie: impl Fn(&mut Row) + Send + Sync + 'static) -> Lying {
    Lying::about_rows(store, move |mut row| {
        lie(&mut row);
        Some(row)
    })
}

fn told_balance(store: &SharedStore, account: AccountId, lie: fn(&mut Balance)) -> Lying {
    altered(store, move |row| {
        if let Row::Balance(balance) = row
            && balance.account == account
        {
            lie(balance);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_balance_that_differs_from_its_entries_is_found() {
    let (store, engine) = eventful().await;
    let rich = id(&engine, "rich").await;
    let lies: [fn(&mut Balance); 5] = [
        |balance| balance.posted += 1,
        |balance| balance.outgoing -= 1,
        |balance| balance.incoming += 1,
        |balance| balance.floor = Some(0),
        |balance| balance.cap = None,
    ];
    for lie in lies {
        assert_eq!(broken(&told_balance(&store, rich, lie)).await, ["balances_match_entries"]);
    }
    let hidden = Lying::about_rows(&store, move |row| {
        Some(row).filter(|row| row.key() != RowKey::Balance(TENANT, rich, 0))
    });
    assert_eq!(broken(&hidden).await, ["balances_match_entries"]);
}

#[tokio::test(start_paused = true)]
async fn a_balance_without_a_guarded_account_is_found() {
    let (store, engine) = eventful().await;
    for (account, shard) in
        [(id(&engine, "world").await, 0), (id(&engine, "rich").await, 9), (AccountId::from_i64(3), 0)]
    {
        let guarded = Guard::default().guarded();
        let nothing = Move { tenant: TENANT, account, shard, guarded, delta: Delta::default() };
        let set =
            ChangeSet::new(SetId::from_i64(i64::from(shard) + account.to_i64() % 1_000 + 1)).shift(nothing);
        store.commit(set).await.unwrap();
        assert_eq!(broken(&store).await, ["balances_match_entries"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_violated_floor_or_cap_is_found() {
    let (store, engine) = eventful().await;
    let rich = id(&engine, "rich").await;
    // Account and balance agree on bounds that the journal has violated.
    let bounds = |floor: Option<i64>, cap: Option<i64>| {
        altered(&store, move |row| match row {
            Row::Account(Account { id, guard, .. }) if *id == rich => *guard = Guard { floor, cap },
            Row::Balance(balance) if balance.account == rich => (balance.floor, balance.cap) = (floor, cap),
            _ => {}
        })
    };
    assert_eq!(broken(&bounds(Some(4_301), None)).await, ["guards_hold_at_every_prefix"]);
    assert_eq!(broken(&bounds(None, Some(4_999))).await, ["guards_hold_at_every_prefix"]);
    // The balance fell from 5,000 to 4,300 and rose to 5,000, within these bounds.
    assert_eq!(broken(&bounds(Some(4_300), Some(5_000))).await, Vec::<&str>::new());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_with_another_sum_is_found() {
    let (store, engine) = eventful().await;
    let world = id(&engine, "world").await;
    let lying = altered(&store, move |row| {
        if let Row::Snapshot(snapshot) = row
            && snapshot.account == world
        {
            snapshot.totals.debits += 1;
        }
    });
    assert_eq!(broken(&lying).await, ["snapshots_match_entries"]);
}

fn told_hold(store: &SharedStore, lie: fn(&mut Hold)) -> Lying {
    altered(store, move |row| {
        if let Row::Hold(hold) = row {
            lie(hold);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_differs_from_the_journal_is_found() {
    let (store, _engine) = eventful().await;
    let lies: [fn(&mut Hold); 6] = [
        |hold| {
            if let HoldState::Posted { amount, .. } = &mut hold.state {
                *amount -= 1;
            }
        },
        |hold| {
            if let HoldState::Voided { by } = hold.state {
                hold.state = HoldState::Lapsed { by };
            }
        },
        |hold| {
            if let HoldState::Lapsed { by } = &mut hold.state {
                *by = TransactionId::from_i64(1);
            }
        },
        |hold| {
            if hold.state == HoldState::Pending {
                hold.amount += 1;
            }
        },
        |hold| {
            if hold.state == HoldState::Pending {
                hold.state = HoldState::Voided { by: TransactionId::from_i64(hold.id.to_i64()) };
            }
        },
        |hold| {
            if hold.amount == 60 {
                hold.state = HoldState::Pending;
            }
        },
    ];
    for lie in lies {
        assert_eq!(broken(&told_hold(&store, lie)).await, ["holds_match_journal"]);
    }
    let hidden =
        Lying::about_rows(&store, |row| Some(row).filter(|row| !matches!(row.key(), RowKey::Hold(..))));
    assert_eq!(broken(&hidden).await, ["holds_match_journal"]);
}

#[tokio::test(start_paused = true)]
async fn reservations_without_a_hold_and_holds_without_a_reservation_are_found() {
    let (store, engine) = eventful().await;
    let [world, fees] = [id(&engine, "world").await, id(&engine, "chart:fees:USD").await];
    smuggle(&store, Legs::transfer(world, fees, 5, asset("USD"), Layer::Pending).unwrap()).await;
    assert_eq!(broken(&store).await, ["holds_match_journal"]);

    let (store, _engine) = eventful().await;
    let hold = Hold {
        id: HoldId::from_i64(5),
        tenant: TENANT,
        from: world,
        to: fees,
        amount: 5,
        asset: asset("USD"),
        expires_at: store.now().plus(counterfoil_core::types::time::Span::from_ms(1_000_000)),
        state: HoldState::Pending,
        metadata: BTreeMap::new(),
        created_at: store.now(),
        revision: 1,
    };
    store.commit(ChangeSet::new(SetId::from_i64(5)).insert(hold)).await.unwrap();
    assert_eq!(broken(&store).await, ["holds_match_journal"]);
}

#[tokio::test(start_paused = true)]
async fn a_reversal_that_mirrors_no_transaction_is_found() {
    let (store, engine) = eventful().await;
    let lying = altered(&store, |row| {
        if let Row::Reversal(Reversal { by, original, .. }) = row {
            *by = *original;
        }
    });
    assert_eq!(broken(&lying).await, ["reversals_mirror"]);
    let hidden = Lying::about_rows(&store, |row| Some(row).filter(|row| !matches!(row, Row::Reversal(_))));
    assert_eq!(broken(&hidden).await, ["reversals_mirror"]);
    // A second reversal of the same transaction, and a reversal of none.
    let fees = id(&engine, "chart:fees:USD").await;
    let undone = altered(&store, move |row| {
        if let Row::Transaction(transaction) = row
            && transaction.kind == TransactionKind::General
        {
            transaction.kind = TransactionKind::Reversal(TransactionId::from_i64(1));
        }
    });
    smuggle(
        &store,
        Legs::transfer(fees, id(&engine, "world").await, 5, asset("USD"), Layer::Posted).unwrap(),
    )
    .await;
    assert_eq!(broken(&undone).await, ["reversals_mirror"]);
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_differs_from_its_posting_is_found() {
    let (store, engine) = eventful().await;
    let world = id(&engine, "world").await;
    let redirected = altered(&store, move |row| {
        if let Row::Charge(charge) = row {
            Arc::make_mut(&mut charge.order).destination = world;
        }
    });
    assert_eq!(broken(&redirected).await, ["charges_are_posted_once"]);
    let renamed = altered(&store, |row| {
        if let Row::Transaction(transaction) = row
            && matches!(transaction.kind, TransactionKind::Charge(_))
        {
            transaction.kind = TransactionKind::General;
        }
    });
    assert_eq!(broken(&renamed).await, ["charges_are_posted_once"]);
}

#[tokio::test(start_paused = true)]
async fn postings_of_uncaptured_charges_and_second_postings_are_found() {
    for about in ["declined", "captured"] {
        let (store, engine) = eventful().await;
        let receivable = id(&engine, "chart:receivable:USD").await;
        let payable = id(&engine, "chart:payable:USD").await;
        let charge = claim(&store, about).await.subject.into();
        let legs = Legs::transfer(receivable, payable, 1_250, asset("USD"), Layer::Posted).unwrap();
        let smuggled = smuggle(&store, legs).await;
        let lying = altered(&store, move |row| {
            if let Row::Transaction(transaction) = row
                && transaction.id == smuggled
            {
                transaction.kind = TransactionKind::Charge(charge);
            }
        });
        assert_eq!(broken(&lying).await, ["charges_are_posted_once"], "{about}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_that_names_another_account_or_none_is_found() {
    let (store, engine) = eventful().await;
    let [rich, poor] = [id(&engine, "rich").await, id(&engine, "poor").await];
    let crossed = altered(&store, move |row| {
        if let Row::Name(AccountName { account, .. }) = row
            && *account == rich
        {
            *account = poor;
        }
    });
    assert_eq!(broken(&crossed).await, ["account_names"]);
    let hidden = Lying::about_rows(&store, move |row| {
        Some(row).filter(|row| !matches!(row, Row::Name(name) if name.account == rich))
    });
    assert_eq!(broken(&hidden).await, ["account_names"]);
}
