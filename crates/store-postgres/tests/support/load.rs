//! Producers that commit until stopped, and the checks of their answers.

use super::resolved;
use counterfoil_core::types::id::SetId;
use counterfoil_store::conformance::fixtures::{TENANT, charge_id, opening};
use counterfoil_store::{CommitError, CommitReceipt, Position, RowKey, Store};
use counterfoil_store_postgres::PostgresStore;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The answer to the opening of each number.
pub type Answers = Vec<(i64, Result<CommitReceipt, CommitError>)>;

/// Starts sixteen producers. Numbers are taken from `next`.
pub struct Load {
    producers: JoinSet<Answers>,
    stop: Arc<AtomicBool>,
    next: Arc<AtomicI64>,
    first: i64,
}

impl Load {
    pub fn start(store: &Arc<PostgresStore>, next: &Arc<AtomicI64>) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let mut producers = JoinSet::new();
        for _ in 0..16 {
            let (store, next, stop) = (Arc::clone(store), Arc::clone(next), Arc::clone(&stop));
            producers.spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::SeqCst) {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    answers.push((number, store.commit(opening(number)).await));
                    if matches!(answers.last(), Some((_, Err(_)))) {
                        tokio::time::sleep(Duration::from_millis(25)).await;
                    }
                }
                answers
            });
        }
        Load { producers, stop, next: Arc::clone(next), first: next.load(Ordering::SeqCst) }
    }

    /// Waits until that many sets were sent.
    pub async fn until(&self, asked: i64) {
        while self.next.load(Ordering::SeqCst) < self.first + asked {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub async fn stop(self) -> Answers {
        self.stop.store(true, Ordering::SeqCst);
        self.producers.join_all().await.into_iter().flatten().collect()
    }
}

/// Compares answers with the store. Returns the numbers of confirmed and of doubtful sets.
pub async fn compared(store: &PostgresStore, answers: Answers) -> (usize, usize) {
    let (mut confirmed, mut doubtful) = (0, 0);
    for (number, answer) in answers {
        let id = opening(number).id();
        let there = store.read(vec![RowKey::Charge(TENANT, charge_id(number))]).await.unwrap()[0].is_some();
        match answer {
            Ok(receipt) => {
                confirmed += 1;
                assert_eq!(store.committed(id).await, Ok(Some(receipt)), "{number} was confirmed");
                assert!(there, "{number} was confirmed");
            }
            Err(CommitError::InDoubt(_)) => {
                doubtful += 1;
                assert_eq!(resolved(store, id).await.is_some(), there, "{number} is whole or not there");
            }
            Err(CommitError::Unavailable(_) | CommitError::Conflict) => {
                assert!(!there, "{number} was said not to be written");
                assert_eq!(store.committed(id).await, Ok(None));
            }
            Err(error) => panic!("{number}: {error:?}"),
        }
    }
    (confirmed, doubtful)
}

/// Reads the whole feed and checks that every position and every set occurs once.
pub async fn no_set_is_there_twice(store: &PostgresStore) {
    let mut places: HashMap<SetId, Position> = HashMap::new();
    let mut last = 0;
    loop {
        let page = store.feed(Position(last), 1_000).await.unwrap();
        if page.is_empty() {
            return;
        }
        for entry in page {
            last += 1;
            assert_eq!(entry.receipt.position, Position(last));
            assert_eq!(places.insert(entry.set, entry.receipt.position), None, "a set was committed twice");
        }
    }
}
