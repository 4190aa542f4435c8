//! A closing whose checkpoint the disk does not confirm.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_powerloss::campaign::Take;
use counterfoil_powerloss::chance::chance_at;
use counterfoil_powerloss::check::Checker;
use counterfoil_powerloss::cut::{CutMode, cut};
use counterfoil_powerloss::disk::Disk;
use counterfoil_powerloss::media::Recorded;
use counterfoil_powerloss::plan::{FileKind, Plan};
use counterfoil_powerloss::record::{Op, Recorder};
use counterfoil_powerloss::rows;
use counterfoil_powerloss::story::{Acknowledged, Story};
use counterfoil_store::Store;
use counterfoil_store_embedded::{EmbeddedStore, Options, SqliteWalBounds};
use rusqlite::Connection;
use std::sync::Arc;

/// A reader keeps a checkpoint from copying all of the WAL, so SQLite does not sync the copied
/// part. A failed sync at the end loses that part, too. SQLite considers it copied, and would
/// remove the WAL after one more attempt with the rest.
#[test]
fn a_failed_sync_at_the_end_leaves_the_wal() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let recorder = Recorder::start(dir.path(), Disk::default(), Plan::default()).unwrap();
    let sqlite_wal = SqliteWalBounds { step: 100_000, ..SqliteWalBounds::default() };
    let log_storage = Arc::new(Recorded(Arc::clone(&recorder)));
    let options = Options { readers: 1, sqlite_wal, log_storage, ..Options::default() };
    let store = EmbeddedStore::open(dir.path(), options).unwrap();
    let mut story = Story { doubtful: true, ..Story::default() };
    let mut commit = |set: counterfoil_store::ChangeSet| {
        let receipt = runtime.block_on(store.commit(set.clone())).unwrap();
        story.acknowledged.push(Acknowledged { set: set.id(), receipt, after: recorder.len() });
        story.sets.insert(set.id().to_i64(), set);
    };
    commit(rows::ground(1));
    commit(rows::open(2));
    runtime.block_on(store.tally(store.now())).unwrap();
    let program = || Connection::open(dir.path().canonicalize().unwrap().join("counterfoil.db")).unwrap();
    let (reader, copier) = (program(), program());
    reader.execute_batch("BEGIN; SELECT count(*) FROM commits").unwrap();
    commit(rows::open(3));
    commit(rows::settle(3, &vec![7; 20_000]));
    runtime.block_on(store.tally(store.now())).unwrap();
    let (frames, copied): (i64, i64) =
        copier.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?))).unwrap();
    assert!(0 < copied && copied < frames, "{copied} of {frames}");
    reader.execute_batch("COMMIT").unwrap();
    drop((reader, copier));
    recorder.fail_next_sync(FileKind::Database);
    store.close();
    let take = Take { recording: recorder.finish(), story };
    assert!(take.recording.ops.iter().any(|op| matches!(op, Op::SyncFailed { .. })), "the last sync fails");

    let mut chance = chance_at(1, &[]);
    let images = tempfile::tempdir().unwrap();
    let mut checker = Checker::new(&take.story, images.path().join("image")).unwrap();
    let end = take.recording.ops.len();
    for mode in CutMode::ALL {
        let (image, _) = cut(&take.disk(end), mode, &mut chance);
        checker.check(&image, end, &mut chance).unwrap_or_else(|why| panic!("{mode:?}: {why}"));
    }
}
