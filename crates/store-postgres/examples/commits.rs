//! How many sets a second the store commits, and how long one takes, beside the usual implementation in the same run:
//! `cargo run --release -p counterfoil-store-postgres --example commits -- SECONDS PRODUCERS…`
//!
//! A charge is two sets: claim, charge, outbox row and audit record are inserted; then claim and charge are replaced,
//! the outbox row is removed and two audit records are inserted. Every producer waits for each of its commits. The usual
//! implementation writes the same rows into the same tables, one transaction per set on a pool of 32 connections: BEGIN,
//! the prepared statements one by one, COMMIT; it keeps no log of commits and takes no position, which the store does
//! on top. The server is started for the run, with the same settings for both, and thrown away. CPU is that of this
//! process and of all the server's: on a machine with neighbours it is the figure they touch least.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

use counterfoil_core::idempotency::claim::{Claim, State};
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_store::conformance::fixtures::{at, audit, charge, claim, opening, set, settled};
use counterfoil_store::{ChangeSet, RowKey, Store};
use counterfoil_store_postgres::{Options, PostgresStore, migrate};
use counterfoil_testkit::postgres::{Server, connect};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_postgres::{Client, Statement};

const POOL: usize = 32;
const BODY: [u8; 700] = [b'x'; 700];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let mut producers: Vec<usize> = arguments.filter_map(|text| text.parse().ok()).collect();
    if producers.is_empty() {
        producers = vec![1, 64, 256];
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = Server::start(&[("max_wal_size", "4GB")]).expect("a server");
    runtime.block_on(async {
        let url = format!("{}/commits", server.address());
        let admin = connect(&format!("{}/postgres", server.address())).await.unwrap();
        admin.batch_execute("CREATE DATABASE commits").await.unwrap();
        migrate(&url).await.expect("tables");
        let groups = Arc::new(AtomicI64::new(0));
        let counted = Arc::clone(&groups);
        let observe = move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let options = Options { observe: Some(Arc::new(observe)), ..Options::default() };
        let store = Arc::new(PostgresStore::open(&url, options).await.expect("the store opens"));
        let pid: i32 = admin.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let postmaster = stat(&format!("/proc/{pid}/stat"))[1];
        let usual = Arc::new(Usual::open(&url).await);
        let next = Arc::new(AtomicI64::new(1));
        for count in producers {
            let (store, usual) = (Arc::clone(&store), Arc::clone(&usual));
            let by_usual = move |number| {
                let usual = Arc::clone(&usual);
                async move { usual.charge(number).await }
            };
            let by_store = move |number| {
                let store = Arc::clone(&store);
                async move { charge_by(&store, number).await }
            };
            let usual = measure("usual", count, seconds, &next, postmaster, by_usual).await;
            groups.store(0, Ordering::Relaxed);
            let ours = measure("store", count, seconds, &next, postmaster, by_store).await;
            let groups = u128::try_from(groups.load(Ordering::Relaxed).max(1)).unwrap();
            println!(
                "{:>18} producers: {}.{:02} times the usual rate, {} sets a group",
                count,
                ours / usual.max(1),
                ours * 100 / usual.max(1) % 100,
                ours * u128::from(seconds) / groups
            );
        }
    });
}

async fn measure<F>(
    name: &str,
    producers: usize,
    seconds: u64,
    next: &Arc<AtomicI64>,
    postmaster: i64,
    charge: impl Fn(i64) -> F + Clone + Send + 'static,
) -> u128
where
    F: Future<Output = [Duration; 2]> + Send,
{
    let cpu = cpu_ms(postmaster);
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..producers)
        .map(|_| {
            let (next, charge) = (Arc::clone(next), charge.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while Instant::now() < end {
                    latencies.extend(charge(next.fetch_add(1, Ordering::Relaxed)).await);
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let took = begun.elapsed().as_millis().max(1);
    latencies.sort_unstable();
    let at =
        |per_mille: usize| latencies.get(latencies.len() * per_mille / 1_000).copied().unwrap_or_default();
    let rate = latencies.len() as u128 * 1_000 / took;
    println!(
        "{name} {producers:>12} producers: {rate:>6} sets/s = {:>5} charges/s, {} µs of CPU a set, commit p50 {:?} p99 {:?}",
        rate / 2,
        (cpu_ms(postmaster) - cpu) * 1_000 / i64::try_from(latencies.len().max(1)).unwrap(),
        at(500),
        at(990),
    );
    rate
}

/// The numbers of a process from its state on: its parent is the second, its times in clock ticks the 12th and 13th.
fn stat(path: &str) -> Vec<i64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let numbers = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    numbers.map(|number| number.parse().unwrap_or(0)).chain([0; 20]).collect()
}

/// What this process and the server's have used so far. A clock tick is 10 ms.
fn cpu_ms(postmaster: i64) -> i64 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let own = stat("/proc/self/stat");
    let servers = processes.map(|entry| stat(&format!("{}/stat", entry.path().display())));
    let used = servers.filter(|numbers| numbers[1] == postmaster).chain([own]);
    used.map(|numbers| (numbers[11] + numbers[12]) * 10).sum()
}

fn settling(number: i64) -> ChangeSet {
    let done = Claim { revision: 2, state: State::Completed(settled(&BODY, at(9))), ..claim(number) };
    let charged = Charge { status: Status::Succeeded, revision: 2, ..charge(number) };
    set(number * 2 + 1)
        .replace(done, 1)
        .replace(charged, 1)
        .remove(RowKey::Outbox(charge(number).id), 1)
        .insert(audit(number, 1))
        .insert(audit(number, 2))
}

async fn charge_by(store: &PostgresStore, number: i64) -> [Duration; 2] {
    let first = opening(number).changes().iter().fold(set(number * 2), |set, change| match change {
        counterfoil_store::Change::Insert(row) => set.insert((**row).clone()),
        _ => set,
    });
    let begun = Instant::now();
    store.commit(first).await.expect("a commit");
    let opened = begun.elapsed();
    let begun = Instant::now();
    store.commit(settling(number)).await.expect("a commit");
    [opened, begun.elapsed()]
}

/// The usual implementation.
struct Usual {
    idle: Mutex<Vec<(Client, Vec<Statement>)>>,
    free: Semaphore,
}

const STATEMENTS: [&str; 7] = [
    "INSERT INTO idempotency_keys (id, tenant, subject, makes, fingerprint, request, created_at, fence, revision, \
     attempts, state, holder, lease_until, lease_ceiling) VALUES (sha256($1::bigint::text::bytea), 1, $1, 'charge', \
     sha256('f'), substr(sha256('r'), 1, 16), 1, 1, 1, 1, 'in_flight', 1, 1, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO charges VALUES ($1, 1, 1250, 'USD', 'pm_card_visa', true, 9, NULL, '{}', 'processing', 'stripe', NULL, \
     NULL, NULL, 1, 1)",
    "INSERT INTO outbox VALUES ($1, sha256($1::bigint::text::bytea), 1, 'stripe', 'http://127.0.0.1:8090', 1, 1, 1, 0, \
     false, 0, 1, 1, NULL, 1)",
    "INSERT INTO audit_log VALUES ($1, substr(sha256(random()::text::bytea), 1, 16), 1, 1, 1, 'claimed', 'step=0')",
    "UPDATE idempotency_keys SET state = 'completed', revision = 2, holder = NULL, lease_until = NULL, \
     lease_ceiling = NULL, replay_until = 9, tombstone_until = 9, sweep_at = 9, status = 201, media = 'json', \
     body = $2 WHERE id = sha256($1::bigint::text::bytea) AND revision = 1",
    "UPDATE charges SET status = 'succeeded', revision = 2 WHERE id = $1 AND revision = 1",
    "DELETE FROM outbox WHERE charge = $1 AND revision = 1",
];

impl Usual {
    async fn open(url: &str) -> Usual {
        let mut idle = Vec::new();
        for _ in 0..POOL {
            let client = connect(url).await.unwrap();
            client.batch_execute("SET search_path = counterfoil").await.unwrap();
            let mut prepared = Vec::new();
            for sql in STATEMENTS {
                prepared.push(client.prepare(sql).await.unwrap());
            }
            idle.push((client, prepared));
        }
        Usual { idle: Mutex::new(idle), free: Semaphore::new(POOL) }
    }

    async fn charge(&self, number: i64) -> [Duration; 2] {
        // Away from the numbers of the store's own charges.
        let number = -number;
        let begun = Instant::now();
        self.transaction(number, &[0, 1, 2, 3]).await;
        let opened = begun.elapsed();
        let begun = Instant::now();
        self.transaction(number, &[4, 5, 6, 3, 3]).await;
        [opened, begun.elapsed()]
    }

    async fn transaction(&self, number: i64, statements: &[usize]) {
        let _permit = self.free.acquire().await.unwrap();
        let (client, prepared) = self.idle.lock().unwrap().pop().unwrap();
        client.batch_execute("BEGIN").await.unwrap();
        for &at in statements {
            let body: &[u8] = &BODY;
            let changed = match at {
                4 => client.execute(&prepared[at], &[&number, &body]).await,
                _ => client.execute(&prepared[at], &[&number]).await,
            };
            assert_eq!(changed.unwrap(), 1);
        }
        client.batch_execute("COMMIT").await.unwrap();
        self.idle.lock().unwrap().push((client, prepared));
    }
}
