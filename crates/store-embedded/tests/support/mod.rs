//! Shared by the tests: opening stores, injecting faults, and rows to commit.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod rows;

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::types::id::{ChargeId, SetId, TenantId};
use counterfoil_store::{ChangeSet, CommitError, CommitReceipt, Row, RowKey, Store};
use counterfoil_store_embedded::{EmbeddedStore, FaultHook, FaultPoint, Options};
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;

pub type Commit<'a> = Pin<Box<dyn Future<Output = Result<CommitReceipt, CommitError>> + 'a>>;

pub fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open(dir, Options::default()).unwrap()
}

pub fn open_with_fault(dir: &Path, fault: FaultHook) -> EmbeddedStore {
    EmbeddedStore::open(dir, Options { fault: Some(fault), ..Options::default() }).unwrap()
}

/// Opens the database directly, as an operator's tool would.
pub fn raw(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("counterfoil.db")).unwrap()
}

/// A set that inserts a charge.
pub fn one_charge(store: &EmbeddedStore, number: i64) -> ChangeSet {
    ChangeSet::new(SetId::from_i64(number)).insert(rows::work(number, store.now()).charge)
}

/// Finds a row under any of the four tenants of the test rows.
pub async fn find_row(store: &EmbeddedStore, key: impl Fn(TenantId) -> RowKey) -> Option<Row> {
    let keys = (1..=4).map(TenantId::from_i64).map(key).collect();
    store.read(keys).await.unwrap().into_iter().flatten().next()
}

pub async fn charge_is_there(store: &EmbeddedStore, number: i64) -> bool {
    let charge = ChargeId::from_i64(number);
    matches!(find_row(store, |tenant| RowKey::Charge(tenant, charge)).await, Some(Row::Charge(_)))
}

/// The stored claim.
pub async fn claim_of(store: &EmbeddedStore, id: ClaimId) -> Option<Claim> {
    match find_row(store, |tenant| RowKey::Claim(tenant, id)).await {
        Some(Row::Claim(claim)) => Some(claim),
        Some(_) | None => None,
    }
}

/// Enqueues the commits in order, without waiting for their answers.
pub async fn enqueue(commits: &mut [Commit<'_>]) -> Vec<Poll<Result<CommitReceipt, CommitError>>> {
    let mut polled = Vec::new();
    for commit in commits {
        polled.push(poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await);
    }
    polled
}

/// Blocks the writer at its first group until `go_on` is sent.
pub struct Gate {
    pub reached: Receiver<()>,
    pub go_on: Sender<()>,
}

pub fn gate() -> (Gate, FaultHook) {
    let (arrive, reached) = channel();
    let (go_on, wait) = channel();
    let held = Mutex::new(Some((arrive, wait)));
    let hook: FaultHook = Arc::new(move |point| {
        if point == FaultPoint::Judge
            && let Some((arrive, wait)) = held.lock().unwrap().take()
        {
            arrive.send(()).unwrap();
            wait.recv().unwrap();
        }
        None
    });
    (Gate { reached, go_on }, hook)
}

/// The reason of an `Unavailable` answer.
pub fn unavailable(result: Result<CommitReceipt, CommitError>) -> String {
    match result {
        Err(CommitError::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}
