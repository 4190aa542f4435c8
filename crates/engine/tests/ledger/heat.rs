//! Hot accounts are reported, and only those.

use crate::support::ledger::*;
use crate::support::peer::alone;
use crate::support::*;
use counterfoil_core::payments::ledger::Open;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::reference::References;
use counterfoil_engine::signal::{Signal, Watch};
use counterfoil_engine::world::TokioWorld;
use counterfoil_engine::{Engine, Parts};
use counterfoil_store::Store;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Collects the signals of hot accounts.
#[derive(Clone, Default)]
struct Thermometer(Arc<Mutex<Vec<(AccountId, u64)>>>);

impl Watch for Thermometer {
    fn saw(&self, signal: Signal) {
        if let Signal::HotAccount { account, writes } = signal {
            self.0.lock().unwrap().push((account, writes));
        }
    }
}

async fn watched(store: &SharedStore) -> (TestEngine, Thermometer) {
    let heat = Thermometer::default();
    let parts = Parts {
        store: store.clone(),
        gateway: alone(&Provider::default()),
        world: TokioWorld::new(),
        policy: policy(),
        present: Arc::new(Plain(References::new(MacKey::new(store.secret().reveal())))),
        watch: Arc::new(heat.clone()),
    };
    (Engine::start(parts).await.unwrap(), heat)
}

/// Writes this often within a second, and once after it.
async fn write(engine: &TestEngine, round: u32, code: &str, times: u32) {
    for turn in 0..times {
        executed(engine, &format!("{round}-{code}-{turn}"), transfer("world", code, 1)).await;
        if turn % 10 == 9 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guarded_account_of_one_shard_that_is_written_a_hundred_times_a_second_is_hot() {
    let store = SharedStore::new();
    let (engine, heat) = watched(&store).await;
    let wide = Open { shards: 16, ..guarded("wide", Some(0), None) };
    funded(&engine, &[(guarded("hot", Some(0), None), 0), (guarded("warm", Some(0), None), 0), (wide, 0)])
        .await;
    open(&engine, plain("free")).await;
    let hot = account(&engine, "hot").await.id;
    seconds(1).await;
    for (code, times) in [("hot", 100), ("warm", 99), ("wide", 150), ("free", 150)] {
        write(&engine, 1, code, times).await;
    }
    seconds(2).await;
    write(&engine, 2, "warm", 1).await;
    assert_eq!(*heat.0.lock().unwrap(), [(hot, 100)]);
    // A cold account is not reported again.
    seconds(2).await;
    write(&engine, 3, "warm", 1).await;
    write(&engine, 3, "hot", 50).await;
    seconds(2).await;
    write(&engine, 4, "warm", 1).await;
    assert_eq!(heat.0.lock().unwrap().len(), 1);
    // A second report has the numbers of the second window.
    write(&engine, 5, "hot", 140).await;
    seconds(2).await;
    write(&engine, 6, "warm", 1).await;
    assert_eq!(heat.0.lock().unwrap().last(), Some(&(hot, 140)));
}

#[tokio::test(start_paused = true)]
async fn spreading_an_account_cools_it() {
    let store = SharedStore::new();
    let (engine, heat) = watched(&store).await;
    funded(&engine, &[(guarded("hot", Some(0), None), 0)]).await;
    let spread =
        counterfoil_core::payments::ledger::LedgerCommand::Reshard { account: named("hot"), shards: 16 };
    executed(&engine, "spread", spread).await;
    write(&engine, 1, "hot", 200).await;
    seconds(2).await;
    write(&engine, 2, "hot", 1).await;
    assert_eq!(*heat.0.lock().unwrap(), []);
}
