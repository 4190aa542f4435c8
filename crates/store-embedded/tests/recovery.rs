//! `kill -9`: acknowledged commits survive, and balances equal the sums of the journal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::balance::Guarded;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::types::id::ChargeId;
use counterfoil_store::conformance::fixtures::ledger::{
    account_id, moving, posted, transaction_id, transfer,
};
use counterfoil_store::conformance::fixtures::{TENANT, set};
use counterfoil_store::{ChangeSet, Position, Row, RowKey, Store, Upto};
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
/// Accounts that money moves between; most groups write their balances.
const ACCOUNTS: i64 = 8;
const UNBOUNDED: Guarded = Guarded { floor: false, cap: false };

/// An acknowledgement that a victim reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Opened,
    Settled,
    Moved,
}

impl Said {
    const ALL: [(Said, &str); 3] =
        [(Said::Opened, "opened"), (Said::Settled, "settled"), (Said::Moved, "moved")];

    fn parse(word: &str) -> Option<Said> {
        Said::ALL.into_iter().find(|(_, name)| *name == word).map(|(said, _)| said)
    }
}

/// The test starts its own binary as the process to kill.
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
fn a_killed_store_can_be_read_without_opening_it_for_writing() {
    if std::env::var_os(VICTIM).is_some() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let acknowledged = kill_after(dir.path(), 300);
    let store = EmbeddedStore::open_read_only(dir.path()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(check(&store, &acknowledged));
}

/// Lets a victim commit until it has reported this many acknowledgements, kills it, and returns all
/// of them.
fn kill_after(dir: &Path, acknowledgements: usize) -> Vec<(i64, Said)> {
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
    // The pipe still has the last reports of the victim: read to the end.
    while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        let mut words = line.split_whitespace();
        if let (Some(said), Some(number)) = (words.next().and_then(Said::parse), words.next()) {
            acknowledged.push((number.parse().unwrap(), said));
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

async fn check(store: &EmbeddedStore, acknowledged: &[(i64, Said)]) {
    for (number, said) in acknowledged {
        let there =
            store.read(vec![RowKey::Transaction(TENANT, transaction_id(*number))]).await.unwrap().remove(0);
        if let Some(Row::Transaction(transaction)) = &there {
            assert_eq!(transaction.legs, movement(*number).0.legs);
        }
        assert!(there.is_some() || *said != Said::Moved, "transaction {number} is gone");
        let id = ChargeId::from_i64(*number);
        let rows =
            store.read(vec![RowKey::Charge(TENANT, id), RowKey::Outbox(TENANT, id.into())]).await.unwrap();
        let [Some(Row::Charge(charge)), outbox] = rows.as_slice() else { panic!("charge {number} is gone") };
        let claim =
            claim_of(store, work(*number, charge.created_at).claim.id).await.expect("the claim is there");
        let done = matches!(claim.state, ClaimState::Completed(_));
        assert!(done || *said == Said::Opened, "charge {number} was settled");
        // The second set is there as a whole or not at all.
        assert_eq!(outbox.is_none(), done, "charge {number}");
        assert_eq!(charge.revision, claim.revision, "charge {number}");
    }
    let mut all = 0;
    for account in (1..=ACCOUNTS).map(account_id) {
        let rows = store.read(vec![RowKey::Balance(TENANT, account, 0)]).await.unwrap();
        let [Some(Row::Balance(balance))] = rows.as_slice() else { panic!("{rows:?}") };
        let totals = store.fold(TENANT, account, Position::START, Upto::Now).await.unwrap().totals;
        assert_eq!(i128::from(balance.posted), totals.seen_from(Side::Credit).posted, "{account:?}");
        assert_eq!(balance.revision, totals.entries, "each transaction moved it once");
        all += balance.posted;
    }
    assert_eq!(all, 0, "money is neither made nor lost");
}

/// The transfer of a number, and the set that commits it.
fn movement(number: i64) -> (Transaction, ChangeSet) {
    let (from, to) = (1 + number / 4 % ACCOUNTS, 1 + (number / 4 + 3) % ACCOUNTS);
    let amount = 1 + number % 7;
    let transaction = transfer(number, from, to, amount);
    let set = set(number + 3)
        .insert(transaction.clone())
        .shift(moving(from, UNBOUNDED, posted(-amount)))
        .shift(moving(to, UNBOUNDED, posted(amount)));
    (transaction, set)
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
        store.commit(movement(number).1).await.unwrap();
        say("moved", number);
    }
}

fn say(what: &str, number: i64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what} {number}").unwrap();
    out.flush().unwrap();
}
