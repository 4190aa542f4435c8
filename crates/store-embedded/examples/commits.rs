//! Measures commits per second and their latency:
//! `cargo run --release -p counterfoil-store-embedded --example commits -- DIR SECONDS PRODUCERS…`
//!
//! A charge is two sets. A producer waits for every commit. The directory is kept, so a second run
//! measures a larger store.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

#[path = "../tests/support/rows.rs"]
mod rows;

use counterfoil_store::Store;
use counterfoil_store_embedded::{EmbeddedStore, Options};
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

fn micros(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000).unwrap_or(0)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| "target/commits-example".into()));
    let seconds: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut producers: Vec<usize> = arguments.filter_map(|text| text.parse().ok()).collect();
    if producers.is_empty() {
        producers = vec![1, 64, 256];
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    for count in producers {
        runtime.block_on(measure(&dir, seconds, count));
    }
}

async fn measure(dir: &std::path::Path, seconds: u64, producers: usize) {
    let (writes, slowest) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, worst) = (Arc::clone(&writes), Arc::clone(&slowest));
    let options = Options {
        observe: Some(Arc::new(move |_, took| {
            counted.fetch_add(1, Ordering::Relaxed);
            worst.fetch_max(u64::try_from(took.as_micros()).unwrap_or(0), Ordering::Relaxed);
        })),
        ..Options::default()
    };
    let opening = micros(ClockId::Monotonic);
    let store = Arc::new(EmbeddedStore::open(dir, options).expect("the store opens"));
    let opened = micros(ClockId::Monotonic) - opening;
    // Ids begin at the current time, so that runs on one directory never collide.
    let next = Arc::new(AtomicI64::new(store.now().ms() << 20));
    let (begun, cpu) = (micros(ClockId::Monotonic), micros(ClockId::ProcessCPUTime));
    let end = begun + seconds * 1_000_000;
    let runtime = tokio::runtime::Handle::current();
    let tasks: Vec<_> =
        (0..producers).map(|_| runtime.spawn(produce(Arc::clone(&store), Arc::clone(&next), end))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.expect("a producer"));
    }
    let (took, used) = (micros(ClockId::Monotonic) - begun, micros(ClockId::ProcessCPUTime) - cpu);
    latencies.sort_unstable();
    let sets = u64::try_from(latencies.len()).unwrap_or(0).max(1);
    let at = |per_mille: usize| latencies.get(latencies.len() * per_mille / 1_000).copied().unwrap_or(0);
    println!(
        "{producers:>4} producers: {:>6} charges/s, {:>6} sets/s, commit p50 {} µs p99 {} µs p99.9 {} µs max {} µs, \
         {} sets per sync, {} µs CPU per set, slowest write {} µs, opened in {opened} µs",
        sets * 500_000 / took,
        sets * 1_000_000 / took,
        at(500),
        at(990),
        at(999),
        latencies.last().copied().unwrap_or(0),
        sets / writes.load(Ordering::Relaxed).max(1),
        used / sets,
        slowest.load(Ordering::Relaxed),
    );
}

async fn produce(store: Arc<EmbeddedStore>, next: Arc<AtomicI64>, end: u64) -> Vec<u64> {
    let body = bytes::Bytes::from(vec![b'x'; 700]);
    let mut latencies = Vec::new();
    while micros(ClockId::Monotonic) < end {
        let number = next.fetch_add(4, Ordering::Relaxed);
        let work = rows::work(number, store.now());
        for set in [work.opening(number + 1), work.settling(number + 2, store.now(), body.clone())] {
            let begun = micros(ClockId::Monotonic);
            store.commit(set).await.expect("a commit");
            latencies.push(micros(ClockId::Monotonic) - begun);
        }
    }
    latencies
}
