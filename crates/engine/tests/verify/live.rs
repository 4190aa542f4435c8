//! Verification while others write.

use crate::support::books::*;
use crate::support::*;
use counterfoil_core::payments::books::Act;
use counterfoil_engine::verify::verify;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test(start_paused = true)]
async fn a_store_that_is_written_to_meanwhile_holds() {
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
                            let held = kept(&engine, &key, hold(from, to, 3)).await;
                            let end = post_hold(number(&held.1), Some(2));
                            assert_eq!(kept(&engine, &format!("{key}-end"), end).await.0, 200);
                        } else if turn % 15 == 1 {
                            let act = Act::Reshard { account: named(from), shards: turn % 20 + 1 };
                            assert_eq!(kept(&engine, &key, act).await.0, 200);
                        } else if turn % 3 == 1 {
                            assert_eq!(answer(&charge(&engine, &key, 5).await).0, 201);
                        } else {
                            kept(&engine, &key, transfer(from, to, 5)).await;
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
            assert!(journal(&store).await.len() > before, "nobody wrote meanwhile");
        }
        enough.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.await.unwrap();
        }
        verified(&store).await;
    }
}
