//! The ledger while the store fails in every way it may: nothing twice, nothing lost, and the key has the answer.

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
    // From here on the workers have nothing to write, so faults meet the request.
    seconds(1).await;
    (store, engine)
}

/// Every way a single commit may go wrong; beyond three failures in a row the engine gives up.
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

/// Asks until there is an answer; how often it was told that the store is unavailable.
async fn insist(engine: &TestEngine, key: &str, act: &LedgerCommand) -> (u16, String, usize) {
    for times in 0..5 {
        match keep(engine, key, act.clone()).await {
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
async fn a_transfer_is_done_once_whatever_becomes_of_its_commit() {
    for faults in troubles() {
        let (store, engine) = scene().await;
        store.0.fail_next(&faults);
        let (status, body, times) = insist(&engine, "k", &transfer("a", "b", 100)).await;
        let gives_up = faults.len() == 3;
        assert_eq!((status, times), (201, usize::from(gives_up)), "{faults:?}");
        let stranger = crate::support::engine(&store.another(), &Provider::default()).await;
        assert_eq!(answer(&keep(&stranger, "k", transfer("a", "b", 100)).await).1, body);
        assert_eq!((posted(&engine, "b").await, journal(&store).await.len()), (100, 2), "{faults:?}");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_the_same_whatever_becomes_of_its_commit() {
    // The first commit is the transfer that is refused, the second the refusal that is stored.
    for faults in troubles().into_iter().flat_map(|faults| [faults.clone(), [vec![Pass], faults].concat()]) {
        let (store, engine) = scene().await;
        store.0.fail_next(&faults);
        let (status, body, _) = insist(&engine, "k", &transfer("a", "b", 1_001)).await;
        assert!(status == 400 && body.starts_with("insufficient_funds"), "{faults:?}: {body}");
        kept(&engine, "more", transfer("world", "a", 5)).await;
        assert_eq!(answer(&keep(&engine, "k", transfer("a", "b", 1_001)).await).1, body);
        assert_eq!(journal(&store).await.len(), 2);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_act_is_done_once_whatever_becomes_of_its_commit() {
    for faults in [vec![DoubtAfter], vec![DoubtBefore; 3], vec![Conflict, DoubtAfter]] {
        let (store, engine) = scene().await;
        let held = number(&kept(&engine, "h", hold("a", "b", 100)).await.1);
        let moved = number(&kept(&engine, "m", transfer("a", "b", 100)).await.1);
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
async fn what_nobody_can_be_sure_of_is_answered_by_the_key_later() {
    for fault in [DoubtAfter, DoubtBefore] {
        for (act, word) in
            [(transfer("a", "b", 100), "transferred"), (transfer("a", "b", 1_001), "insufficient_funds")]
        {
            let (store, engine) = scene().await;
            let refused = word != "transferred";
            store.0.fail_next(&[Pass][..usize::from(refused)]);
            store.0.fail_next(&[fault]);
            store.0.hide_sets(true);
            assert_eq!(keep(&engine, "k", act.clone()).await, Submitted::StoreUnavailable);
            store.0.hide_sets(false);
            let (_, body, times) = insist(&engine, "k", &act).await;
            assert!(body.starts_with(word) && times == 0, "{fault:?} {body}");
            assert_eq!(journal(&store).await.len(), if refused { 1 } else { 2 });
            verified(&store).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_said_to_be() {
    let (store, engine) = scene().await;
    let done = kept(&engine, "done", transfer("a", "b", 1)).await;
    store.0.set_down(true);
    assert_eq!(keep(&engine, "k", transfer("a", "b", 100)).await, Submitted::StoreUnavailable);
    assert_eq!(keep(&engine, "r", transfer("a", "b", 1_001)).await, Submitted::StoreUnavailable);
    assert_eq!(keep(&engine, "n", void(1)).await, Submitted::StoreUnavailable);
    assert_eq!(keep(&engine, "i", transfer("nobody", "b", 1)).await, Submitted::StoreUnavailable);
    assert_eq!(
        bulk(&engine, "many", &[Item::Transfer(order("a", "b", 1))]).await,
        Submitted::StoreUnavailable
    );
    assert!(engine.balance(std::sync::Arc::new(account_of(&store).await), Upto::Now).await.is_err());
    assert_eq!(
        answer(&keep(&engine, "done", transfer("a", "b", 1)).await).1,
        done.1,
        "what is remembered is told"
    );
    // Longer than the worker slot's own lease.
    seconds(90).await;
    store.0.set_down(false);
    assert_eq!(kept(&engine, "k", transfer("a", "b", 100)).await.0, 201);
    assert_eq!(kept(&engine, "r", transfer("a", "b", 1_001)).await.0, 400);
    assert_eq!(posted(&engine, "b").await, 101);
    verified(&store).await;
}

/// Account `a`, from behind the store's back.
async fn account_of(store: &SharedStore) -> counterfoil_core::ledger::account::Account {
    store.0.set_down(false);
    let rows = store.scan(Scan::Accounts { after: None, limit: 100 }).await.unwrap();
    store.0.set_down(true);
    let named = |row| if let Row::Account(account) = row { Some(account) } else { None };
    rows.into_iter().filter_map(named).find(|account| account.code.as_str() == "a").unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_item_of_many_is_done_once_whatever_becomes_of_a_commit() {
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
            // The first commit of a chunk hopes that all of it fits, and is refused.
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
async fn many_that_nobody_can_be_sure_of_are_gone_on_with() {
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
async fn a_hold_lapses_once_whatever_becomes_of_its_commit() {
    for faults in troubles() {
        let (store, engine) = scene().await;
        let held = number(&kept(&engine, "h", hold_for(&store, "a", "b", 100, 10)).await.1);
        seconds(9).await;
        store.0.fail_next(&faults);
        seconds(4).await;
        assert!(matches!(hold_row(&store, held).await.state, HoldState::Lapsed { .. }), "{faults:?}");
        assert_eq!((balance(&engine, "a").await, journal(&store).await.len()), (view(1_000, 0, 0), 3));
        verified(&store).await;
    }
    for fault in [DoubtAfter, DoubtBefore] {
        let (store, engine) = scene().await;
        kept(&engine, "h", hold_for(&store, "a", "b", 100, 10)).await;
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
async fn snapshots_come_whatever_becomes_of_their_commits() {
    let every = usize::try_from(SNAPSHOT_EVERY).unwrap();
    for faults in troubles().into_iter().chain([vec![Throttle; 9]]) {
        let (store, engine) = scene().await;
        let items: Vec<Item> = (0..every).map(|_| Item::Transfer(order("world", "a", 1))).collect();
        bulk(&engine, "k", &items).await;
        store.0.fail_next(&faults);
        seconds(20).await;
        // A later entry brings the projection back to the account.
        kept(&engine, "one more", transfer("world", "a", 1)).await;
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
async fn the_projection_goes_on_when_the_store_is_back() {
    let (store, engine) = scene().await;
    let items: Vec<Item> = (0..SNAPSHOT_EVERY).map(|_| Item::Transfer(order("world", "a", 1))).collect();
    bulk(&engine, "k", &items).await;
    store.0.set_down(true);
    // Longer than the worker slot's own lease.
    seconds(90).await;
    store.0.set_down(false);
    seconds(5).await;
    let account = account(&engine, "a").await.id;
    let scan = Scan::Snapshots { tenant: TENANT, account, upto: Upto::Now, limit: 10 };
    assert_eq!(store.scan(scan).await.unwrap().len(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_charge_is_posted_once_whatever_becomes_of_its_commits() {
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
