//! Measures two-leg transactions per second in large sets:
//! `cargo run --release -p counterfoil-store-embedded --example transfers -- DIR SECONDS PRODUCERS ACCOUNTS`
//!
//! A plain set is 99 transactions between accounts without a guard; a guarded set is 33
//! transactions and the moves of 66 balances. A producer waits for every commit. The directory is
//! kept, so a second run measures a larger store.

#![allow(clippy::expect_used, reason = "a measurement that cannot go on should stop")]

use counterfoil_store::conformance::fixtures::ledger::{FLOOR, moving, posted, transfer};
use counterfoil_store::conformance::fixtures::{TENANT, set};
use counterfoil_store::{ChangeSet, Position, Store, Upto};
use counterfoil_store_embedded::{EmbeddedStore, Options};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Ids per set: its transactions and its own.
const STRIDE: i64 = 128;

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000).unwrap_or(0)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| "target/transfers-example".into()));
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (seconds, producers, accounts) = (number(5), number(64), number(10_000));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for guarded in [false, true] {
        runtime.block_on(measure(&dir, seconds, producers, accounts, guarded));
    }
}

async fn measure(dir: &Path, seconds: i64, producers: i64, accounts: i64, guarded: bool) {
    let (writes, slowest) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, worst) = (Arc::clone(&writes), Arc::clone(&slowest));
    let options = Options {
        observe: Some(Arc::new(move |_, took| {
            counted.fetch_add(1, Ordering::Relaxed);
            worst.fetch_max(u64::try_from(took.as_micros()).unwrap_or(0), Ordering::Relaxed);
        })),
        ..Options::default()
    };
    let store = Arc::new(EmbeddedStore::open(dir, options).expect("the store opens"));
    // Ids begin at the current time, so that runs on one directory never collide.
    let next = Arc::new(AtomicI64::new(store.now().ms() << 20));
    let (begun, cpu) = (micros(ClockId::Monotonic), micros(ClockId::ProcessCPUTime));
    let end = begun + seconds.unsigned_abs() * 1_000_000;
    let runtime = tokio::runtime::Handle::current();
    let tasks: Vec<_> = (0..producers)
        .map(|_| {
            let (store, next) = (Arc::clone(&store), Arc::clone(&next));
            runtime.spawn(async move {
                let mut sets = 0_u64;
                while micros(ClockId::Monotonic) < end {
                    let first = next.fetch_add(STRIDE, Ordering::Relaxed);
                    let set = if guarded { guarded_set(first, accounts) } else { plain_set(first, accounts) };
                    store.commit(set).await.expect("a commit");
                    sets += 1;
                }
                sets
            })
        })
        .collect();
    let mut sets = 0;
    for task in tasks {
        sets += task.await.expect("a producer");
    }
    let (took, used) = (micros(ClockId::Monotonic) - begun, micros(ClockId::ProcessCPUTime) - cpu);
    let transactions = (sets * if guarded { 33 } else { 99 }).max(1);
    println!(
        "{} sets: {:>6} transactions/s, {} sets per sync, {} ns CPU per transaction, slowest write {} µs",
        if guarded { "guarded" } else { "plain" },
        transactions * 1_000_000 / took,
        sets / writes.load(Ordering::Relaxed).max(1),
        used * 1_000 / transactions,
        slowest.load(Ordering::Relaxed),
    );
    let begun = micros(ClockId::Monotonic);
    let (account, _) = pair(next.load(Ordering::Relaxed), accounts);
    let account = counterfoil_core::types::id::AccountId::from_i64(account);
    let folded = store.fold(TENANT, account, Position::START, Upto::Now).await.expect("a sum");
    println!("  {} entries added up in {} µs", folded.totals.entries, micros(ClockId::Monotonic) - begun);
}

/// Two scattered accounts, derived from the transaction's number.
fn pair(number: i64, accounts: i64) -> (i64, i64) {
    let from = (number.wrapping_mul(2_654_435_761) >> 8).rem_euclid(accounts);
    (1 + from, 1 + (from + 1 + number.rem_euclid(accounts - 1)) % accounts)
}

fn plain_set(first: i64, accounts: i64) -> ChangeSet {
    (first..first + 99).fold(set(first + 100), |set, number| {
        let (from, to) = pair(number, accounts);
        set.insert(transfer(number, from, to, 10))
    })
}

/// A set moves a balance only once, so its accounts are consecutive, from a scattered start.
fn guarded_set(first: i64, accounts: i64) -> ChangeSet {
    let (start, _) = pair(first, accounts);
    (0..33).fold(set(first + 100), |set, at| {
        let (from, to) = (1 + (start + 2 * at) % accounts, 1 + (start + 2 * at + 1) % accounts);
        // Only deposits, so that no floor refuses them.
        set.insert(transfer(first + at, from, to, 10)).shift(moving(from, FLOOR, posted(0))).shift(moving(
            to,
            FLOOR,
            posted(10),
        ))
    })
}
