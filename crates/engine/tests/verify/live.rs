//! Verification of a store with running writers.

use crate::support::ledger::*;
use crate::support::*;
use crate::words::*;
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::types::id::AccountId;
use counterfoil_engine::service::Service;
use counterfoil_engine::verify::verify;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test(start_paused = true)]
async fn a_store_that_is_being_written_to_passes() {
    for seed in 1..=3 {
        let store = SharedStore::new();
        let engine = engine(&store.jumpy(seed), &Provider::default()).await;
        funded(&engine, &[(guarded("a", Some(0), Some(1_000)), 500), (guarded("b", Some(0), None), 500)])
            .await;
        let enough = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (engine, enough) = (engine.clone(), Arc::clone(&enough));
                tokio::spawn(async move {
                    for turn in (0..).take_while(|_| !enough.load(Ordering::SeqCst)) {
                        let (from, to) = if (writer + turn) % 2 == 0 { ("a", "b") } else { ("b", "a") };
                        let key = format!("{writer}-{turn}");
                        if turn % 3 == 0 {
                            let held = executed(&engine, &key, hold(from, to, 3)).await;
                            let end = post_hold(number(&held.1), Some(2));
                            assert_eq!(executed(&engine, &format!("{key}-end"), end).await.0, 200);
                        } else if turn % 15 == 1 {
                            let act = LedgerCommand::Reshard { account: named(from), shards: turn % 20 + 1 };
                            assert_eq!(executed(&engine, &key, act).await.0, 200);
                        } else if turn % 3 == 1 {
                            assert_eq!(answer(&charge(&engine, &key, 5).await).0, 201);
                        } else {
                            executed(&engine, &key, transfer(from, to, 5)).await;
                        }
                    }
                })
            })
            .collect();
        let handle = store.jumpy(seed + 100);
        for _ in 0..3 {
            let before = journal(&store).await.len();
            let report = verify(&handle, |_| {}).await.unwrap();
            assert!(report.holds(), "seed {seed}: {:#?}", report.findings());
            assert!(journal(&store).await.len() > before, "no writer was running");
        }
        enough.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.await.unwrap();
        }
        verified(&store).await;
    }
}

/// All operations on charges, this many times. The writer ends by itself: verification would never
/// catch up with an endless one.
async fn work(engine: TestEngine, store: SharedStore, wallet: AccountId, name: String) {
    for turn in 0..6 {
        let end = |end: &str| format!("{name}-{turn}-{end}");
        let hold = held(&engine, &store, &end("hold"), 1_000).await;
        if turn % 4 == 0 {
            assert_eq!(done(&engine, &end("void"), hold, OperationKind::Void, None).await.0, 200);
            continue;
        }
        let captured = done(&engine, &end("capture"), hold, OperationKind::Capture, Some(900)).await;
        assert_eq!(captured.0, 200);
        let keys = [end("r1"), end("r2"), end("r3")];
        let [one, two, three] =
            keys.each_ref().map(|key| done(&engine, key, hold, OperationKind::Refund, Some(300)));
        let refunds = tokio::join!(one, two, three);
        assert_eq!((refunds.0.0, refunds.1.0, refunds.2.0), (201, 201, 201));
        let split = engine.submit(splitting(&end("split"), 50, wallet, 20)).await;
        assert_eq!(answer(&split).0, 201);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_with_running_operations_passes() {
    for seed in 1..=6 {
        let store = charted().await;
        let engine = engine(&store.jumpy(seed), &Provider::default()).await;
        funded(&engine, &[(guarded("wallet", Some(0), None), 1_000_000)]).await;
        let wallet = account(&engine, "wallet").await.id;
        let handle = store.jumpy(seed + 100);
        for round in 0..3 {
            let before = journal(&store).await.len();
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let name = format!("{round}-{writer}");
                    tokio::spawn(work(engine.clone(), store.clone(), wallet, name))
                })
                .collect();
            let report = verify(&handle, |_| {}).await.unwrap();
            assert!(report.holds(), "seed {seed}: {:#?}", report.findings());
            assert!(journal(&store).await.len() > before, "no writer was running");
            for writer in writers {
                writer.await.unwrap();
            }
        }
        verified(&store).await;
    }
}
