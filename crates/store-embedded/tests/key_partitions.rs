//! Idempotency keys in several partitions of their index.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState, Custody};
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::{ChangeSet, CommitError, RowKey, Store};
use std::path::Path;
use support::rows::work;
use support::{claim_of, open, raw};
use tempfile::TempDir;

const NOON: Time = Time::from_ms(1_760_000_000_000);

/// One claim in every state, subjects 1 to 6.
fn one_of_each_state() -> ChangeSet {
    let claim = |number, state| Claim { state, ..work(number, NOON).claim };
    let lease = work(1, NOON).claim.state;
    let not_before = NOON.plus(Span::from_ms(5_000));
    let answered = work(4, NOON).answered(NOON, bytes::Bytes::from_static(b"{\"id\":\"ch_4\"}"));
    let refused = match answered.state.clone() {
        ClaimState::Completed(settled) => ClaimState::FailedTerminal(settled),
        other => other,
    };
    ChangeSet::new(SetId::from_i64(1))
        .insert(claim(1, lease))
        .insert(claim(2, ClaimState::FailedRetry { not_before }))
        .insert(claim(3, ClaimState::Uncertain(Custody::Waiting { not_before })))
        .insert(Claim { revision: 1, ..answered })
        .insert(claim(5, refused))
        .insert(claim(6, ClaimState::Expired { tombstone_until: not_before }))
}

/// Claims in four partitions: subject 1 in the first, 2 and 3 in the next, then 4 and 5, then 6.
async fn in_partitions() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(one_of_each_state()).await.unwrap();
    store.close();
    let db = raw(dir.path());
    let forward = "SELECT sql FROM sqlite_schema WHERE name = 'claims_only_move_forward'";
    let forward: String = db.query_row(forward, [], |row| row.get(0)).unwrap();
    let spread = "DROP TRIGGER claims_only_move_forward; UPDATE claims SET partition = 1 + subject / 2;";
    db.execute_batch(&format!("{spread}{forward}")).unwrap();
    dir
}

/// Subjects with the partitions of their keys.
fn partitions(dir: &Path) -> Vec<(i64, i64)> {
    let db = raw(dir);
    let mut rows = db.prepare("SELECT subject, partition FROM claims ORDER BY subject").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_key_is_found_in_every_partition() {
    let dir = in_partitions().await;
    let store = open(dir.path());
    for (number, change) in (1..).zip(one_of_each_state().changes()) {
        assert!(store.read(vec![change.key()]).await.unwrap()[0].is_some(), "{number}");
        let again = work(number, NOON).claim;
        let again = Claim { subject: SubjectId::from_i64(100 + number), ..again };
        let again = store.commit(ChangeSet::new(SetId::from_i64(100 + number)).insert(again)).await;
        assert!(matches!(again, Err(CommitError::Refused(_))), "{number}: {again:?}");
    }
    let unknown = work(7, NOON).claim;
    assert_eq!(store.read(vec![RowKey::Claim(unknown.tenant, unknown.id)]).await, Ok(vec![None]));
}

#[tokio::test]
async fn new_and_reused_keys_go_into_the_youngest_partition() {
    let dir = in_partitions().await;
    let store = open(dir.path());
    let (new, old) = (work(7, NOON).claim, claim_of(&store, work(4, NOON).claim.id).await.unwrap());
    let anew = Claim {
        subject: SubjectId::from_i64(8),
        created_at: NOON.plus(Span::from_ms(200_000_000)),
        fence: old.fence + 1,
        revision: old.revision + 1,
        state: new.state.clone(),
        ..old.clone()
    };
    let set = ChangeSet::new(SetId::from_i64(7)).insert(new.clone()).replace(anew.clone(), old.revision);
    store.commit(set).await.unwrap();
    for claim in [new, anew] {
        assert_eq!(claim_of(&store, claim.id).await, Some(claim));
    }
    store.close();
    assert_eq!(partitions(dir.path()), [(1, 1), (2, 2), (3, 2), (5, 3), (6, 4), (7, 4), (8, 4)]);
}

/// Closed partitions with the number of listed keys.
fn lists(dir: &Path) -> Vec<(i64, usize)> {
    let db = raw(dir);
    let mut rows =
        db.prepare("SELECT partition, length(keys) / 8 FROM key_partitions ORDER BY partition").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_closed_partition_lists_its_keys_and_takes_no_more() {
    let dir = in_partitions().await;
    let store = open(dir.path());
    store.commit(ChangeSet::new(SetId::from_i64(7)).insert(work(7, NOON).claim)).await.unwrap();
    store.close();
    assert_eq!(lists(dir.path()), [(1, 1), (2, 2), (3, 2)], "the youngest is open");
    let db = raw(dir.path());
    let listed: Vec<u8> =
        db.query_row("SELECT keys FROM key_partitions WHERE partition = 2", [], |row| row.get(0)).unwrap();
    let mut expected = [2, 3].map(|number| work(number, NOON).claim.id.digest().as_bytes()[..8].to_vec());
    expected.sort();
    assert_eq!(listed, expected.concat());
    for sql in [
        "UPDATE claims SET partition = 3, revision = revision + 1 WHERE subject = 7",
        "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, attempts, state, makes, partition) \
         VALUES (99, zeroblob(32), 1, x'', x'', 0, 1, 1, 1, 'in_flight', 'charge', 2)",
    ] {
        let refused = db.execute(sql, []).expect_err(sql).to_string();
        assert!(refused.contains("this partition is closed"), "{sql}: {refused}");
    }
}

/// The list of a closed partition would lack later keys.
#[tokio::test]
async fn a_closed_partition_is_not_used_again_even_if_all_later_ones_are_empty() {
    let dir = in_partitions().await;
    let store = open(dir.path());
    let last = claim_of(&store, work(6, NOON).claim.id).await.unwrap();
    let (new, gone) = (work(7, NOON), RowKey::Claim(last.tenant, last.id));
    store.commit(ChangeSet::new(SetId::from_i64(7)).insert(new.claim.clone())).await.unwrap();
    // The flush closes the partitions before the youngest one.
    store.tally(store.now()).await.unwrap();
    let answered = new.answered(NOON, bytes::Bytes::new());
    store.commit(ChangeSet::new(SetId::from_i64(8)).replace(answered, 1)).await.unwrap();
    let emptied = ChangeSet::new(SetId::from_i64(9)).remove(gone, last.revision);
    store.commit(emptied.remove(RowKey::Claim(new.claim.tenant, new.claim.id), 2)).await.unwrap();
    store.close();
    let store = open(dir.path());
    store.commit(ChangeSet::new(SetId::from_i64(10)).insert(work(8, NOON).claim)).await.unwrap();
    store.close();
    assert_eq!(partitions(dir.path()), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (8, 4)]);
}

#[tokio::test]
async fn a_removed_key_leaves_its_partition() {
    let dir = in_partitions().await;
    let store = open(dir.path());
    let old = claim_of(&store, work(4, NOON).claim.id).await.unwrap();
    let set = ChangeSet::new(SetId::from_i64(7)).remove(RowKey::Claim(old.tenant, old.id), old.revision);
    store.commit(set).await.unwrap();
    assert_eq!(claim_of(&store, old.id).await, None);
    store.close();
    assert_eq!(partitions(dir.path()), [(1, 1), (2, 2), (3, 2), (5, 3), (6, 4)]);
}

#[tokio::test]
async fn a_second_record_of_a_key_is_refused_in_every_partition() {
    let dir = in_partitions().await;
    let db = raw(dir.path());
    let copy = "INSERT INTO claims SELECT subject + 100, id, partition + 1, makes, tenant, fingerprint, request, created_at, \
        fence, revision, attempts, state, holder, lease_until, lease_ceiling, not_before, replay_until, tombstone_until, \
        sweep_at, status, media, location, body FROM claims WHERE subject = ?1";
    for (subject, _) in partitions(dir.path()) {
        for insert in ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"] {
            let refused =
                db.execute(&copy.replacen("INSERT", insert, 1), [subject]).expect_err("it is there");
            assert!(refused.to_string().contains("a key has one record"), "{subject}: {refused}");
        }
    }
    assert_eq!(partitions(dir.path()).len(), 6);
}

#[tokio::test]
async fn a_claim_cannot_displace_another_by_raw_sql() {
    let dir = in_partitions().await;
    let db = raw(dir.path());
    let displacing = "UPDATE OR REPLACE claims SET subject = 2, fence = fence + 1, revision = revision + 1 WHERE subject = 6";
    let replacing = "CREATE TEMP TABLE copy AS SELECT * FROM claims WHERE subject = 2; \
        UPDATE copy SET id = zeroblob(32); INSERT OR REPLACE INTO claims SELECT * FROM copy";
    for sql in [displacing, replacing] {
        let refused = db.execute_batch(sql).expect_err(sql).to_string();
        assert!(refused.contains("what a claim makes has one claim"), "{sql}: {refused}");
    }
    assert_eq!(partitions(dir.path()).len(), 6);
}
