//! Folding writes in a flush changes nothing: single flushes, batched flushes and a replay of the
//! log leave the same rows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::types::id::{ChargeId, SetId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::conformance::fixtures::ledger::{FLOOR, moving, posted, transfer};
use counterfoil_store::conformance::fixtures::set;
use counterfoil_store::{ChangeSet, RowKey, Store};
use counterfoil_store_embedded::{EmbeddedStore, Options, TimeSource};
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use support::rows::{Work, work};
use support::{Commit, enqueue, raw};

const NOON: Time = Time::from_ms(1_790_000_000_000);
const DAYS: Span = Span::from_ms(3 * 24 * 3_600_000);

/// A machine on which no time passes, so that stored rows depend on the sets alone.
struct Still;

impl TimeSource for Still {
    fn wall_ms(&self) -> i64 {
        NOON.ms()
    }
    fn boottime_ms(&self) -> i64 {
        5_000
    }
    fn boot_id(&self) -> Option<String> {
        Some("one boot".to_owned())
    }
}

fn open(dir: &Path) -> EmbeddedStore {
    EmbeddedStore::open(dir, Options { time: Arc::new(Still), ..Options::default() }).unwrap()
}

/// Builds sets with consecutive ids.
#[derive(Default)]
struct Sets(Vec<ChangeSet>);

impl Sets {
    fn number(&self) -> i64 {
        i64::try_from(self.0.len()).unwrap() + 1
    }

    fn next(&self) -> ChangeSet {
        ChangeSet::new(SetId::from_i64(self.number()))
    }

    fn open(&mut self, work: &Work) {
        self.0.push(work.opening(self.number()));
    }

    /// Renews the lease and puts the work off.
    fn renew(&mut self, work: &mut Work) {
        let (claim, outbox) = (work.claim.revision, work.outbox.revision);
        work.claim.revision += 1;
        if let ClaimState::InFlight(lease) = &mut work.claim.state {
            lease.until = lease.until.plus(Span::from_ms(1_000));
        }
        work.outbox.revision += 1;
        work.outbox.due_at = work.outbox.due_at.plus(Span::from_ms(1_000));
        self.0.push(self.next().replace(work.claim.clone(), claim).replace(work.outbox.clone(), outbox));
    }

    fn settle(&mut self, work: &Work) {
        self.0.push(work.settling(self.number(), NOON, bytes::Bytes::from_static(b"{\"id\":1}")));
    }

    /// Expires the answer and, if wanted, removes the key.
    fn sweep(&mut self, work: &Work, removes: bool) {
        let answered = work.answered(NOON, bytes::Bytes::new());
        let expired = Claim {
            revision: answered.revision + 1,
            state: ClaimState::Expired { tombstone_until: NOON },
            ..answered.clone()
        };
        self.0.push(self.next().replace(expired.clone(), answered.revision));
        if removes {
            self.0.push(self.next().remove(RowKey::Claim(expired.tenant, expired.id), expired.revision));
        }
    }

    /// Reuses the key for another charge.
    fn reuse(&mut self, work: &Work, number: i64) -> Work {
        let mut next = fresh(number);
        next.claim.id = work.claim.id;
        next.claim.tenant = work.claim.tenant;
        next.claim.created_at = NOON.plus(DAYS);
        next.claim.fence = work.claim.fence + 1;
        next.claim.revision = work.claim.revision + 2;
        next.outbox.claim = work.claim.id;
        self.0.push(
            self.next()
                .replace(next.claim.clone(), work.claim.revision + 2 - 1)
                .insert(next.charge.clone())
                .insert(next.outbox.clone()),
        );
        next
    }

    fn transfer(&mut self, amount: i64) {
        let number = self.number();
        let paid = transfer(number, 1, 2, amount.abs());
        self.0.push(set(number).insert(paid).shift(moving(1, FLOOR, posted(amount))));
    }
}

fn fresh(number: i64) -> Work {
    work(number, NOON)
}

/// Sets that insert, change, reuse and remove rows in every way.
fn sets() -> Vec<ChangeSet> {
    let mut sets = Sets::default();
    let mut works: Vec<Work> = (1..=8).map(|number| work(number * 100, NOON)).collect();
    sets.transfer(500);
    for work in &works {
        sets.open(work);
    }
    for work in works.iter_mut().take(3) {
        sets.renew(work);
        sets.renew(work);
    }
    sets.transfer(-20);
    for work in works.iter().take(6) {
        sets.settle(work);
    }
    sets.sweep(&works[1], true);
    sets.sweep(&works[2], false);
    sets.transfer(-30);
    // A removed key is claimed again.
    let mut again = work(1_000, NOON);
    again.claim.id = works[1].claim.id;
    again.outbox.claim = works[1].claim.id;
    sets.open(&again);
    let reused = sets.reuse(&works[3], 1_100);
    sets.settle(&Work { claim: reused.claim.clone(), ..reused });
    works[6].claim.fence = 1;
    sets.renew(&mut works[6]);
    sets.settle(&works[6]);
    sets.transfer(7);
    sets.0
}

/// All tables except `meta`, which every opening writes.
fn dump(dir: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    let db = raw(dir);
    let mut names = db
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'sqlite_sequence')",
        )
        .unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    names
        .into_iter()
        .map(|name| {
            let mut rows = db.prepare(&format!("SELECT * FROM {name}")).unwrap();
            let columns = rows.column_count();
            let rows = rows
                .query_map([], |row| (0..columns).map(|column| row.get::<_, Value>(column)).collect())
                .unwrap();
            let mut rows: Vec<Vec<Value>> = rows.map(Result::unwrap).collect();
            rows.sort_by_key(|row| format!("{row:?}"));
            (name, rows)
        })
        .collect()
}

async fn one_by_one(dir: &Path) {
    let store = open(dir);
    for set in sets() {
        store.commit(set).await.unwrap();
        store.tally(NOON).await.unwrap();
    }
}

async fn all_together(dir: &Path) {
    let store = open(dir);
    let mut commits: Vec<Commit> =
        sets().into_iter().map(|set| -> Commit { Box::pin(store.commit(set)) }).collect();
    enqueue(&mut commits).await;
    for commit in commits {
        commit.await.unwrap();
    }
}

/// An empty database with a log that has every set.
async fn from_the_log(dir: &Path) {
    drop(open(dir));
    let store = open(dir);
    let files = ["counterfoil.db", "counterfoil.db-wal"].map(|name| dir.join(name));
    let before = files.clone().map(|path| fs::read(path).unwrap());
    for set in sets() {
        store.commit(set).await.unwrap();
    }
    drop(store);
    for (path, bytes) in files.into_iter().zip(before) {
        fs::write(path, bytes).unwrap();
    }
    let _ = fs::remove_file(dir.join("counterfoil.db-shm"));
    drop(open(dir));
}

#[tokio::test]
async fn batched_flushes_single_flushes_and_a_replay_leave_the_same_rows() {
    let [slow, fast, played] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    one_by_one(slow.path()).await;
    all_together(fast.path()).await;
    from_the_log(played.path()).await;
    let expected = dump(slow.path());
    assert_eq!((expected["claims"].len(), expected["outbox"].len()), (8, 2));
    assert_eq!(expected["commits"].len(), sets().len());
    assert_eq!(dump(fast.path()), expected);
    assert_eq!(dump(played.path()), expected);
    let store = open(fast.path());
    let key = RowKey::Charge(fresh(100).charge.tenant, ChargeId::from_i64(100));
    assert!(store.read(vec![key]).await.unwrap()[0].is_some());
}
