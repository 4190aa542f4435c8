//! The ledger under every fault of the store: nothing happens twice, nothing is lost, and the key
//! has the answer.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::ledger::snapshot::FeedReader;
use counterfoil_core::payments::ledger::{Item, LedgerCommand};
use counterfoil_core::types::limits::SNAPSHOT_EVERY;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::memory::MemoryFault::{self, Conflict, DoubtAfter, DoubtBefore, Pass, Throttle};
use counterfoil_store::{Row, RowKey, Scan, Store, Upto};

async fn scene() -> (SharedStore, TestEngine) {
    let store = charted().await;
    let engine = engine(&store, &Provider::default()).await;
    funded(&engine, &[(guarded("a", Some(0), None), 1_000), (guarded("b", Some(0), Some(900)), 0)]).await;
    // The workers have nothing left to write, so the faults strike the request.
    seconds(1).await;
    (store, engine)
}

/// Every fault of a single commit. After three failures in a row the engine gives up.
fn troubles() -> Vec<Vec<MemoryFault>> {
    vec![
        vec![DoubtAfter],
        vec![DoubtBefore],
        vec![DoubtBefore, DoubtAfter],
        vec![Conflict, Throttle],
        vec![Conflict, DoubtBefore],
        vec![Throttle, DoubtAfter],
        vec![DoubtBefore, Conflict, Conflict],
        vec![Conflict; 3],
        vec![Throttle; 3],
        vec![DoubtBefore; 3],
    ]
}

/// Retries until there is an answer; counts the answers that the store is unavailable.
async fn insist(engine: &TestEngine, key: &str, act: &LedgerCommand) -> (u16, String, usize) {
    for times in 0..5 {
        match execute(engine, key, act.clone()).await {
            Submitted::StoreUnavailable => {}
            submitted => {
                let (status, body, _) = answer(&submitted);
                return (status, body, times);
            }
        }
    }
    panic!("{key} gets no answer");
}

#[tokio::test(start_paused = true)]
async fn a_transfer_executes_once_despite_commit_faults() {
    for faults in troubles() {
        let (store, engine) = scene().await;
        store.0.fail_next(&faults);
        let (status, body, times) = insist(&engine, "k", &transfer("a", "b", 100)).await;
        let gives_up = faults.len() == 3;
        assert_eq!((status, times), (201, usize::from(gives_up)), "{faults:?}");
        let stranger = crate::support::engine(&store.another(), &Provider::default()).await;
        assert_eq!(answer(&execute(&stranger, "k", transfer("a", "b", 100)).await).1, body);
        assert_eq!((posted(&engine, "b").await, journal(&store).await.len()), (100, 2), "{faults:?}");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_stays_the_same_despite_commit_faults() {
    // The first commit is the refused transfer, the second one stores the refusal.
    for faults in troubles().into_iter().flat_map(|faults| [faults.clone(), [vec![Pass], faults].concat()]) {
        let (store, engine) = scene().await;
        store.0.fail_next(&faults);
        let (status, body, _) = insist(&engine, "k", &transfer("a", "b", 1_001)).await;
        assert!(status == 400 && body.starts_with("insufficient_funds"), "{faults:?}: {body}");
        executed(&engine, "more", transfer("world", "a", 5)).await;
        assert_eq!(answer(&execute(&engine, "k", transfer("a", "b", 1_001)).await).1, body);
        assert_eq!(journal(&store).await.len(), 2);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_ledger_command_executes_once_despite_commit_faults() {
    for faults in [vec![DoubtAfter], vec![DoubtBefore; 3], vec![Conflict, DoubtAfter]] {
        let (store, engine) = scene().await;
        let held = number(&executed(&engine, "h", hold("a", "b", 100)).await.1);
        let moved = number(&executed(&engine, "m", transfer("a", "b", 100)).await.1);
        let acts = [
            LedgerCommand::Open(guarded("new", Some(0), None)),
            LedgerCommand::Define { asset: asset("POINTS"), exponent: 0 },
            LedgerCommand::Reshard { account: named("a"), shards: 4 },
            hold("a", "b", 10),
            post_hold(held, Some(40)),
            LedgerCommand::Post(legs(&[("a", -5), ("b", 5)])),
            reverse(moved),
        ];
        for (number, act) in acts.iter().enumerate() {
            seconds(1).await;
            store.0.fail_next(&faults);
            let (status, body, _) = insist(&engine, &format!("k{number}"), act).await;
            assert!(status < 300, "{faults:?} {act:?}: {body}");
        }
        assert_eq!(journal(&store).await.len(), 3 + 4);
        assert_eq!(balance(&engine, "a").await, view(1_000 - 40 - 5, 10, 0));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_in_doubt_is_answered_by_the_key_later() {
    for fault in [DoubtAfter, DoubtBefore] {
        for (act, word) in
            [(transfer("a", "b", 100), "transferred"), (transfer("a", "b", 1_001), "insufficient_funds")]
        {
            let (store, engine) = scene().await;
            let refused = word != "transferred";
            store.0.fail_next(&[Pass][..usize::from(refused)]);
            store.0.fail_next(&[fault]);
            store.0.hide_sets(true);
            assert_eq!(execute(&engine, "k", act.clone()).await, Submitted::StoreUnavailable);
            store.0.hide_sets(false);
            let (_, body, times) = insist(&engine, "k", &act).await;
            assert!(body.starts_with(word) && times == 0, "{fault:?} {body}");
            assert_eq!(journal(&store).await.len(), if refused { 1 } else { 2 });
            verified(&store).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_outage_is_reported() {
    let (store, engine) = scene().await;
    let done = executed(&engine, "done", transfer("a", "b", 1)).await;
    store.0.set_down(true);
    assert_eq!(execute(&engine, "k", transfer("a", "b", 100)).await, Submitted::StoreUnavailable);
    assert_eq!(execute(&engine, "r", transfer("a", "b", 1_001)).await, Submitted::StoreUnavailable);
    assert_eq!(execute(&engine, "n", void(1)).await, Submitted::StoreUnavailable);
    assert_eq!(execute(&engine, "i", transfer("nobody", "b", 1)).await, Submitted::StoreUnavailable);
    assert_eq!(
        bulk(&engine, "many", &[Item::Transfer(order("a", "b", 1))]).await,
        Submitted::StoreUnavailable
    );
    assert!(engine.balance(std::sync::Arc::new(account_of(&store).await), Upto::Now).await.is_err());
    assert_eq!(
        answer(&execute(&engine, "done", transfer("a", "b", 1)).await).1,
        done.1,
        "a cached answer is still replayed"
    );
    // Longer than the lease of the worker slot.
    seconds(90).await;
    store.0.set_down(false);
    assert_eq!(executed(&engine, "k", transfer("a", "b", 100)).await.0, 201);
    assert_eq!(executed(&engine, "r", transfer("a", "b", 1_001)).await.0, 400);
    assert_eq!(posted(&engine, "b").await, 101);
    verified(&store).await;
}

/// Account `a`, read from the memory store directly.
async fn account_of(store: &SharedStore) -> counterfoil_core::ledger::account::Account {
    store.0.set_down(false);
    let rows = store.scan(Scan::Accounts { after: None, limit: 100 }).await.unwrap();
    store.0.set_down(true);
    let named = |row| if let Row::Account(account) = row { Some(account) } else { None };
    rows.into_iter().filter_map(named).find(|account| account.code.as_str() == "a").unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_bulk_item_executes_once_despite_commit_faults() {
    let items: Vec<Item> = (0..250)
        .map(|place| Item::Transfer(order("a", "b", if place % 50 == 9 { 5_000 } else { 1 })))
        .collect();
    for place in 0..4 {
        for faults in troubles() {
            let (store, engine) = scene().await;
            store.0.fail_next(&vec![Pass; place]);
            store.0.fail_next(&faults);
            let first = bulk(&engine, "k", &items).await;
            let gives_up = faults.len() == 3;
            assert_eq!(first == Submitted::StoreUnavailable, gives_up, "{place} {faults:?}");
            // The first commit of a chunk is optimistic, and refused.
            if gives_up && place > 1 {
                assert_eq!(bulk(&engine, "k", &items).await, Submitted::InUse, "its own lease still runs");
            }
            seconds(40).await;
            let (_, body, _) = answer(&bulk(&engine, "k", &items).await);
            let refused = results(&body).iter().filter(|result| **result == "insufficient_funds").count();
            assert_eq!((refused, results(&body).len()), (5, 250), "{place} {faults:?}");
            assert_eq!((posted(&engine, "b").await, journal(&store).await.len()), (245, 246));
            verified(&store).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bulk_request_in_doubt_is_continued() {
    let items: Vec<Item> = (0..250).map(|_| Item::Transfer(order("a", "b", 1))).collect();
    for fault in [DoubtAfter, DoubtBefore] {
        for place in 0..3 {
            let (store, engine) = scene().await;
            store.0.fail_next(&vec![Pass; place]);
            store.0.fail_next(&[fault]);
            store.0.hide_sets(true);
            assert_eq!(bulk(&engine, "k", &items).await, Submitted::StoreUnavailable);
            store.0.hide_sets(false);
            seconds(40).await;
            let (status, body, _) = answer(&bulk(&engine, "k", &items).await);
            assert_eq!((status, results(&body).len()), (200, 250), "{fault:?} {place}");
            assert_eq!((posted(&engine, "b").await, journal(&store).await.len()), (250, 251));
            verified(&store).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_lapses_once_despite_commit_faults() {
    for faults in troubles() {
        let (store, engine) = scene().await;
        let held = number(&executed(&engine, "h", hold_for(&store, "a", "b", 100, 10)).await.1);
        seconds(9).await;
        store.0.fail_next(&faults);
        seconds(4).await;
        assert!(matches!(hold_row(&store, held).await.state, HoldState::Lapsed { .. }), "{faults:?}");
        assert_eq!((balance(&engine, "a").await, journal(&store).await.len()), (view(1_000, 0, 0), 3));
        verified(&store).await;
    }
    for fault in [DoubtAfter, DoubtBefore] {
        let (store, engine) = scene().await;
        executed(&engine, "h", hold_for(&store, "a", "b", 100, 10)).await;
        seconds(9).await;
        store.0.fail_next(&[fault]);
        store.0.hide_sets(true);
        seconds(3).await;
        store.0.hide_sets(false);
        store.0.set_down(true);
        seconds(90).await;
        store.0.set_down(false);
        seconds(5).await;
        assert_eq!((balance(&engine, "a").await, journal(&store).await.len()), (view(1_000, 0, 0), 3));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_taken_despite_commit_faults() {
    let every = usize::try_from(SNAPSHOT_EVERY).unwrap();
    for faults in troubles().into_iter().chain([vec![Throttle; 9]]) {
        let (store, engine) = scene().await;
        let items: Vec<Item> = (0..every).map(|_| Item::Transfer(order("world", "a", 1))).collect();
        bulk(&engine, "k", &items).await;
        store.0.fail_next(&faults);
        seconds(20).await;
        // A later entry makes the projection visit the account again.
        executed(&engine, "one more", transfer("world", "a", 1)).await;
        seconds(20).await;
        for code in ["a", "world"] {
            let account = account(&engine, code).await.id;
            let scan = Scan::Snapshots { tenant: TENANT, account, upto: Upto::Now, limit: 10 };
            assert_eq!(store.scan(scan).await.unwrap().len(), 1, "{code} after {faults:?}");
        }
        let cursor = store.read(vec![RowKey::Cursor(FeedReader::Projection)]).await.unwrap().remove(0);
        assert!(matches!(cursor, Some(Row::Cursor(_))));
        assert_eq!(posted(&engine, "a").await, 1_000 + i128::try_from(every).unwrap() + 1);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_projection_continues_when_the_store_is_back() {
    let (store, engine) = scene().await;
    let items: Vec<Item> = (0..SNAPSHOT_EVERY).map(|_| Item::Transfer(order("world", "a", 1))).collect();
    bulk(&engine, "k", &items).await;
    store.0.set_down(true);
    // Longer than the lease of the worker slot.
    seconds(90).await;
    store.0.set_down(false);
    seconds(5).await;
    let account = account(&engine, "a").await.id;
    let scan = Scan::Snapshots { tenant: TENANT, account, upto: Upto::Now, limit: 10 };
    assert_eq!(store.scan(scan).await.unwrap().len(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_charge_is_posted_once_despite_commit_faults() {
    for place in 0..2 {
        for faults in troubles() {
            let store = charted().await;
            let provider = Provider::default();
            let engine = crate::support::engine(&store, &provider).await;
            let wallet = open(&engine, guarded("wallet", Some(0), Some(1_000))).await;
            seconds(1).await;
            store.0.fail_next(&vec![Pass; place]);
            store.0.fail_next(&faults);
            let command = |amount| {
                let mut command = command("k", amount);
                command.wanted.destination = Some(wallet);
                command
            };
            let first = engine.submit(command(700)).await;
            assert_eq!(first == Submitted::StoreUnavailable, place == 0 && faults.len() == 3, "{faults:?}");
            seconds(10).await;
            let (status, _, _) = answer(&engine.submit(command(700)).await);
            assert_eq!((status, provider.effects()), (201, 1), "{place} {faults:?}");
            assert_eq!((posted(&engine, "wallet").await, journal(&store).await.len()), (700, 1));
            verified(&store).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_chart_that_cannot_be_opened_means_no_call_at_all() {
    for faults in [vec![Throttle; 3], vec![DoubtBefore; 3], vec![DoubtAfter], vec![Conflict]] {
        let (store, provider) = (SharedStore::new(), Provider::default());
        let engine = engine(&store, &provider).await;
        seconds(1).await;
        store.0.fail_next(&faults);
        let first = charge(&engine, "k", 10).await;
        assert_eq!(first == Submitted::StoreUnavailable, faults.len() == 3, "{faults:?}");
        assert_eq!(provider.keys().len(), usize::from(faults.len() < 3));
        assert_eq!(answer(&charge(&engine, "k", 10).await).0, 201);
        assert_eq!((posted(&engine, "chart:payable:USD").await, provider.effects()), (10, 1));
        verified(&store).await;
    }
}
