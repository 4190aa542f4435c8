//! What format 6 makes of a file of format 5, and keys in several volumes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState, Custody};
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::{Change, ChangeSet, CommitError, Position, RowKey, Scan, Store};
use std::path::Path;
use support::rows::work;
use support::{claim_of, open, raw};
use tempfile::TempDir;
use xxhash_rust::xxh3::xxh3_64;

const NOON: Time = Time::from_ms(1_760_000_000_000);

/// A file that format 5 wrote, as SQL.
const GOLDEN: &str = include_str!("golden/v5.sql");

/// The set it was written by: one claim in every state.
fn golden() -> ChangeSet {
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

fn format_5() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch(GOLDEN).unwrap();
    dir
}

#[tokio::test]
async fn a_file_of_format_5_is_read_as_it_was_written() {
    let (old, new) = (format_5(), tempfile::tempdir().unwrap());
    let (old, new) = (open(old.path()), open(new.path()));
    let keys: Vec<_> = golden().changes().iter().map(Change::key).collect();
    new.commit(golden()).await.unwrap();
    let rows = old.read(keys.clone()).await.unwrap();
    assert!(rows.iter().all(Option::is_some), "{rows:?}");
    assert_eq!(rows, new.read(keys).await.unwrap());
    let all = Scan::Claims { after: None, limit: 9 };
    assert_eq!(old.scan(all.clone()).await, new.scan(all).await);
    let read_again = old.commit(golden()).await.expect_err("the keys are in use");
    assert!(matches!(read_again, CommitError::Refused(_)), "{read_again:?}");
}

/// A claim and its commit as format 5 noted them in its redo log: a head, then the statements with their values.
fn record_of_format_5(claim: &Claim, lineage: i64) -> Vec<u8> {
    let texts = [
        "INSERT OR FAIL INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, attempts, \
         state, not_before, makes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        "INSERT OR FAIL INTO commits (position, set_id, at, touched) VALUES (?1, ?2, ?3, ?4)",
    ];
    let number = |number: i64| [&[1][..], &number.to_le_bytes()].concat();
    let long = |kind: u8, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&[kind][..], &length, bytes].concat()
    };
    let id = claim.id.digest().as_bytes().as_slice();
    let touched = [&[19][..], &claim.tenant.to_i64().to_be_bytes(), &[1], id].concat();
    let ClaimState::FailedRetry { not_before } = &claim.state else {
        panic!("another state has other columns")
    };
    let values = [
        vec![
            number(claim.subject.to_i64()),
            long(3, id),
            number(claim.tenant.to_i64()),
            long(3, claim.fingerprint.digest().as_bytes().as_slice()),
            long(3, &claim.request.to_bytes()),
            number(claim.created_at.ms()),
            number(1),
            number(1),
            number(1),
            long(2, b"failed_retry"),
            number(not_before.ms()),
            long(2, b"charge"),
        ],
        vec![number(2), number(2), number(NOON.ms()), long(3, &touched)],
    ];
    let mut script = vec![2, 0];
    for text in texts {
        script.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
        script.extend(text.as_bytes());
    }
    for (text, values) in (0..).zip(values) {
        script.extend([text, u8::try_from(values.len()).unwrap()]);
        script.extend(values.concat());
    }
    let length = u32::try_from(script.len()).unwrap().to_le_bytes();
    let (first, sets) = (2_u64.to_le_bytes(), 1_u64.to_le_bytes());
    let hash = xxh3_64(&script).to_le_bytes();
    let head = [&b"Cfr1"[..], &length, &lineage.to_le_bytes(), &first, &sets, &hash].concat();
    let seal = xxh3_64(&head).to_le_bytes();
    [&head[..], &seal, &script].concat()
}

#[tokio::test]
async fn what_format_5_left_in_its_redo_log_is_played_into_its_tables() {
    let dir = format_5();
    raw(dir.path()).execute_batch("INSERT INTO meta VALUES ('redo_lineage', 77)").unwrap();
    let left = ClaimState::FailedRetry { not_before: NOON.plus(Span::from_ms(5_000)) };
    let left = Claim { state: left, ..work(7, NOON).claim };
    std::fs::write(dir.path().join("counterfoil.redo-0"), record_of_format_5(&left, 77)).unwrap();
    let store = open(dir.path());
    assert_eq!(
        store.read(vec![RowKey::Claim(left.tenant, left.id)]).await.unwrap(),
        [Some(left.clone().into())]
    );
    // The key is in a volume like those beside it, and is not claimed twice.
    let again = store.commit(ChangeSet::new(SetId::from_i64(9)).insert(left)).await;
    assert!(matches!(again, Err(CommitError::Refused(_))), "{again:?}");
    let feed = store.feed(Position(0), 9).await.unwrap();
    assert_eq!(feed.iter().map(|commit| commit.receipt.position.0).collect::<Vec<_>>(), [1, 2]);
}

/// The claims of [`golden`] in four volumes: subject 1 in the first, 2 and 3 in the next, then 4 and 5, then 6.
fn in_volumes() -> TempDir {
    let dir = format_5();
    drop(open(dir.path()));
    let db = raw(dir.path());
    let forward = "SELECT sql FROM sqlite_schema WHERE name = 'claims_only_move_forward'";
    let forward: String = db.query_row(forward, [], |row| row.get(0)).unwrap();
    let spread = "DROP TRIGGER claims_only_move_forward; UPDATE claims SET volume = subject / 2;";
    db.execute_batch(&format!("{spread}{forward}")).unwrap();
    dir
}

/// Subjects and the volumes of their keys.
fn volumes(dir: &Path) -> Vec<(i64, i64)> {
    let db = raw(dir);
    let mut rows = db.prepare("SELECT subject, volume FROM claims ORDER BY subject").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_key_is_found_in_whichever_volume_it_is() {
    let dir = in_volumes();
    let store = open(dir.path());
    for (number, change) in (1..).zip(golden().changes()) {
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
async fn new_keys_go_into_the_youngest_volume_and_so_does_one_that_is_used_again() {
    let dir = in_volumes();
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
    assert_eq!(volumes(dir.path()), [(1, 0), (2, 1), (3, 1), (5, 2), (6, 3), (7, 3), (8, 3)]);
}

/// Volumes whose keys are listed, and how many.
fn lists(dir: &Path) -> Vec<(i64, usize)> {
    let db = raw(dir);
    let mut rows = db.prepare("SELECT volume, length(keys) / 8 FROM volume_keys ORDER BY volume").unwrap();
    rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn keys_of_closed_volumes_are_listed_and_no_more_go_there() {
    let dir = in_volumes();
    let store = open(dir.path());
    store.commit(ChangeSet::new(SetId::from_i64(7)).insert(work(7, NOON).claim)).await.unwrap();
    store.close();
    assert_eq!(lists(dir.path()), [(1, 2), (2, 2)], "the youngest is open, and volume 0 is of older formats");
    let db = raw(dir.path());
    let listed: Vec<u8> =
        db.query_row("SELECT keys FROM volume_keys WHERE volume = 1", [], |row| row.get(0)).unwrap();
    let mut expected = [2, 3].map(|number| work(number, NOON).claim.id.digest().as_bytes()[..8].to_vec());
    expected.sort();
    assert_eq!(listed, expected.concat());
    let closed = "this volume is closed";
    for sql in [
        "UPDATE claims SET volume = 2, revision = revision + 1 WHERE subject = 7",
        "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, attempts, state, volume) \
         VALUES (99, zeroblob(32), 1, x'', x'', 0, 1, 1, 1, 'in_flight', 1)",
        "UPDATE volume_keys SET keys = x''",
    ] {
        let refused = db.execute(sql, []).expect_err(sql).to_string();
        assert!(refused.contains(closed) || refused.contains("listed once"), "{sql}: {refused}");
    }
}

/// A list would lack what came later.
#[tokio::test]
async fn a_volume_that_is_listed_is_not_used_again_though_all_after_it_are_empty() {
    let dir = in_volumes();
    let store = open(dir.path());
    let last = claim_of(&store, work(6, NOON).claim.id).await.unwrap();
    let (new, gone) = (work(7, NOON), RowKey::Claim(last.tenant, last.id));
    store.commit(ChangeSet::new(SetId::from_i64(7)).insert(new.claim.clone())).await.unwrap();
    // The database has it, and the lists of those before.
    store.tally(store.now()).await.unwrap();
    let answered = new.answered(NOON, bytes::Bytes::new());
    store.commit(ChangeSet::new(SetId::from_i64(8)).replace(answered, 1)).await.unwrap();
    let emptied = ChangeSet::new(SetId::from_i64(9)).remove(gone, last.revision);
    store.commit(emptied.remove(RowKey::Claim(new.claim.tenant, new.claim.id), 2)).await.unwrap();
    store.close();
    let store = open(dir.path());
    store.commit(ChangeSet::new(SetId::from_i64(10)).insert(work(8, NOON).claim)).await.unwrap();
    store.close();
    assert_eq!(volumes(dir.path()), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (8, 3)]);
}

#[tokio::test]
async fn a_key_that_is_forgotten_leaves_its_volume() {
    let dir = in_volumes();
    let store = open(dir.path());
    let old = claim_of(&store, work(4, NOON).claim.id).await.unwrap();
    let set = ChangeSet::new(SetId::from_i64(7)).remove(RowKey::Claim(old.tenant, old.id), old.revision);
    store.commit(set).await.unwrap();
    assert_eq!(claim_of(&store, old.id).await, None);
    store.close();
    assert_eq!(volumes(dir.path()), [(1, 0), (2, 1), (3, 1), (5, 2), (6, 3)]);
}

#[tokio::test]
async fn a_key_has_one_record_in_all_volumes_whoever_writes() {
    let dir = in_volumes();
    let db = raw(dir.path());
    let copy = "INSERT INTO claims SELECT subject + 100, id, tenant, fingerprint, request, created_at, fence, revision, \
        attempts, state, holder, lease_until, lease_ceiling, not_before, replay_until, tombstone_until, sweep_at, \
        status, media, location, body, makes, volume + 1 FROM claims WHERE subject = ?1";
    for (subject, _) in volumes(dir.path()) {
        for insert in ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"] {
            let refused =
                db.execute(&copy.replacen("INSERT", insert, 1), [subject]).expect_err("it is there");
            assert!(refused.to_string().contains("a key has one record"), "{subject}: {refused}");
        }
    }
    assert_eq!(volumes(dir.path()).len(), 6);
}

#[tokio::test]
async fn a_claim_is_not_displaced_by_another_whoever_writes() {
    let dir = in_volumes();
    let db = raw(dir.path());
    let displacing = "UPDATE OR REPLACE claims SET subject = 2, fence = fence + 1, revision = revision + 1 WHERE subject = 6";
    let replacing = "CREATE TEMP TABLE copy AS SELECT * FROM claims WHERE subject = 2; \
        UPDATE copy SET id = zeroblob(32); INSERT OR REPLACE INTO claims SELECT * FROM copy";
    for sql in [displacing, replacing] {
        let refused = db.execute_batch(sql).expect_err(sql).to_string();
        assert!(refused.contains("what a claim makes has one claim"), "{sql}: {refused}");
    }
    assert_eq!(volumes(dir.path()).len(), 6);
}
