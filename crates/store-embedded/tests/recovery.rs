//! `kill -9`: what was acknowledged is there afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::State;
use counterfoil_core::types::id::ChargeId;
use counterfoil_store::{Row, RowKey, Store};
use counterfoil_store_embedded::EmbeddedStore;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::rows::work;
use support::{claim_of, open};
use tokio::task::JoinSet;

const VICTIM: &str = "COUNTERFOIL_TEST_VICTIM";
const PRODUCERS: usize = 16;

/// The test starts itself again as the process that is killed.
#[test]
fn acknowledged_commits_survive_kill_9() {
    if let Some(dir) = std::env::var_os(VICTIM) {
        commit_until_killed(&PathBuf::from(dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut acknowledged = Vec::new();
    for round in 1..=3 {
        acknowledged.extend(kill_after(dir.path(), 400 * round));
        let store = open(dir.path());
        runtime.block_on(check(&store, &acknowledged));
    }
    let reader = EmbeddedStore::open_read_only(dir.path()).unwrap();
    runtime.block_on(check(&reader, &acknowledged));
}

#[test]
fn a_killed_store_can_be_read_before_it_is_opened() {
    if std::env::var_os(VICTIM).is_some() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let acknowledged = kill_after(dir.path(), 300);
    let store = EmbeddedStore::open_read_only(dir.path()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(check(&store, &acknowledged));
}

/// Lets a victim commit until it has acknowledged so many, kills it, and returns all that it acknowledged.
fn kill_after(dir: &Path, acknowledgements: usize) -> Vec<(i64, bool)> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["acknowledged_commits_survive_kill_9", "--exact", "--nocapture"])
        .env(VICTIM, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    let mut output = BufReader::new(victim.stdout.take().unwrap());
    let mut line = String::new();
    let mut killed = false;
    // What the victim had said before it died is still in the pipe: read to the end.
    while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        let mut words = line.split_whitespace();
        if let (Some(kind @ ("opened" | "settled")), Some(number)) = (words.next(), words.next()) {
            acknowledged.push((number.parse().unwrap(), kind == "settled"));
        }
        if acknowledged.len() >= acknowledgements && !killed {
            victim.kill().unwrap();
            killed = true;
        }
        line.clear();
    }
    let status = victim.wait().unwrap();
    assert!(killed && status.code().is_none(), "the victim must die by the signal: {status}");
    acknowledged
}

async fn check(store: &EmbeddedStore, acknowledged: &[(i64, bool)]) {
    for (number, settled) in acknowledged {
        let id = ChargeId::from_i64(*number);
        let rows = store.read(vec![RowKey::Charge(id), RowKey::Outbox(id)]).await.unwrap();
        let [Some(Row::Charge(charge)), outbox] = rows.as_slice() else { panic!("charge {number} is gone") };
        let claim =
            claim_of(store, work(*number, charge.created_at).claim.id).await.expect("the claim is there");
        let done = matches!(claim.state, State::Completed(_));
        assert!(done || !settled, "charge {number} was settled");
        // Whether the second set was written or not, all of it was or nothing.
        assert_eq!(outbox.is_none(), done, "charge {number}");
        assert_eq!(charge.revision, claim.revision, "charge {number}");
    }
}

fn commit_until_killed(dir: &Path) -> ! {
    let store = Arc::new(open(dir));
    let next = Arc::new(AtomicI64::new(store.now().ms() << 20));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut producers = JoinSet::new();
        for _ in 0..PRODUCERS {
            producers.spawn(produce(Arc::clone(&store), Arc::clone(&next)));
        }
        producers.join_all().await;
    });
    unreachable!("producers go on until the process is killed")
}

async fn produce(store: Arc<EmbeddedStore>, next: Arc<AtomicI64>) {
    loop {
        let number = next.fetch_add(4, Ordering::Relaxed);
        let work = work(number, store.now());
        store.commit(work.opening(number + 1)).await.unwrap();
        say("opened", number);
        let body = bytes::Bytes::from(vec![b'x'; 700]);
        store.commit(work.settling(number + 2, store.now(), body)).await.unwrap();
        say("settled", number);
    }
}

fn say(what: &str, number: i64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what} {number}").unwrap();
    out.flush().unwrap();
}
