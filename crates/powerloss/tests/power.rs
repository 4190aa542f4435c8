//! The short campaign: a workload cut after every operation, and disks that fail, fill up or
//! swallow syncs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_powerloss::campaign::{Campaign, Scene, Take, Totals};
use counterfoil_powerloss::plan::{FileKind, Full, Lie, Nth, Plan};
use counterfoil_powerloss::record::Op;
use counterfoil_powerloss::workload::Size;
use counterfoil_store_embedded::SqliteWalBounds;
use std::path::Path;
use tempfile::TempDir;

/// A WAL that is copied after nearly every group and restarts after a few.
const SQLITE_WAL: SqliteWalBounds = SqliteWalBounds { step: 4, long: 20, too_long: 40, kept: 40, rest: 16 };
const SMALL: Size = Size { sessions: 2, keys: 4, producers: 4, sqlite_wal: SQLITE_WAL, log: Size::SHORT_LOG };

/// A directory for images, in memory where possible.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn record(dir: &TempDir, plan: Plan) -> Take {
    Take::record(&dir.path().join("recorded"), plan, SMALL, 7).unwrap()
}

fn cut(dir: &TempDir, take: &Take, images: usize, upto: usize) -> Totals {
    let mut campaign = Campaign::new(dir.path().to_owned(), 7);
    campaign.cut_everywhere(take, images, |totals| totals.violations < upto).unwrap();
    campaign.totals
}

fn assert_no_violation(totals: &Totals) {
    assert!(totals.violations == 0, "{totals}\n{}", totals.words.join("\n"));
}

fn failed_at(take: &Take) -> usize {
    take.recording.ops.iter().position(|op| matches!(op, Op::SyncFailed { .. })).unwrap()
}

#[test]
fn a_disk_that_swallows_any_kind_of_sync_is_detected() {
    for lie in Lie::ALL {
        let dir = scratch();
        let take = record(&dir, Plan { lie: Some(lie), ..Plan::default() });
        let totals = cut(&dir, &take, 1, 1);
        assert_eq!(totals.violations, 1, "{lie:?} was not found in {totals}");
    }
}

#[test]
fn after_a_failed_sync_of_the_log_nothing_is_acknowledged_until_reopened() {
    let dir = scratch();
    let size = Size { sessions: 1, ..SMALL };
    for nth in [3, 4, 5] {
        let plan = Plan { sync: Some(Nth { of: FileKind::Log, nth }), ..Plan::default() };
        let take = Take::record(&dir.path().join("recorded"), plan, size, 7).unwrap();
        let later = take.recording.ops.iter().skip_while(|op| !matches!(op, Op::SyncFailed { .. }));
        let of_log = take.files("redo");
        assert!(
            !later.clone().any(|op| matches!(op, Op::Synced { inode, .. } if of_log.contains(inode))),
            "a sync after a failure could acknowledge a set"
        );
        assert!(later.count() > 0, "a sync fails");
        assert!(take.story.denied.is_empty(), "only a restart can tell what was written");
        assert!(take.story.acknowledged.len() < take.story.sets.len(), "the store stops");
    }
}

#[test]
fn a_failed_sync_of_a_log_loses_no_commit_before_or_after_the_restart() {
    for (of, nth) in
        [(FileKind::Log, 2), (FileKind::Log, 3), (FileKind::SqliteWal, 3), (FileKind::SqliteWal, 5)]
    {
        let dir = scratch();
        let plan = Plan { sync: Some(Nth { of, nth }), ..Plan::default() };
        let size = Size { sessions: 3, ..SMALL };
        let take = Take::record(&dir.path().join("recorded"), plan, size, 7).unwrap();
        let failed = failed_at(&take);
        assert!(
            take.story.acknowledged.iter().any(|known| known.after > failed),
            "{of:?} {nth}: the restart commits again"
        );
        assert_no_violation(&cut(&dir, &take, 1, 1));
    }
}

#[test]
fn a_store_whose_first_sync_fails_is_not_opened_without_a_wal() {
    let dir = scratch();
    let take = record(&dir, Plan { sync: Some(Nth { of: FileKind::Database, nth: 1 }), ..Plan::default() });
    let made = |op: &&Op| matches!(op, Op::Link { name, .. } if name.ends_with("-journal"));
    // One journal per attempt to change the mode, and none for commits.
    assert_eq!(take.recording.ops.iter().filter(made).count(), 2);
    assert_no_violation(&cut(&dir, &take, 1, 1));
}

#[test]
fn a_failed_sync_of_the_database_loses_nothing() {
    for plan in [
        Plan { sync: Some(Nth { of: FileKind::Database, nth: 2 }), ..Plan::default() },
        Plan { sync: Some(Nth { of: FileKind::Database, nth: 3 }), ..Plan::default() },
        Plan { own_sync: Some(1), ..Plan::default() },
    ] {
        let dir = scratch();
        let take = record(&dir, plan);
        assert!(failed_at(&take) > 0);
        assert_no_violation(&cut(&dir, &take, 1, 1));
    }
}

#[test]
fn a_disk_that_fills_up_for_a_while_loses_nothing() {
    for (of, nth) in
        [(FileKind::Log, 3), (FileKind::Log, 9), (FileKind::SqliteWal, 260), (FileKind::Database, 30)]
    {
        let dir = scratch();
        let full = Some(Full { from: Nth { of, nth }, writes: 5 });
        let take = record(&dir, Plan { full, ..Plan::default() });
        assert_no_violation(&cut(&dir, &take, 1, 1));
    }
}

#[test]
fn a_cut_after_every_operation_loses_nothing_acknowledged() {
    let dir = scratch();
    let size = Size { keys: 6, ..SMALL };
    let take = Take::record(&dir.path().join("recorded"), Plan::default(), size, 7).unwrap();
    assert!(take.wal_restarts() > 0, "the WAL must restart during the recording");
    let again = |op: &&Op| matches!(op, Op::Write { inode, at: 0, .. } if take.files("redo").contains(inode));
    assert!(take.recording.ops.iter().filter(again).count() > 4, "segments of the log must be reused");
    let totals = cut(&dir, &take, 2, 1);
    assert_no_violation(&totals);
    assert!(totals.images > take.recording.ops.len() && totals.torn > 0 && totals.reordered > 0, "{totals}");
}

#[test]
fn an_earlier_cut_or_kill_loses_nothing() {
    let dir = scratch();
    let before = record(&dir, Plan::default());
    for scene in [Scene::SecondCut, Scene::Killed] {
        let size = Size { sessions: 1, ..SMALL };
        let take = scene.record(&dir.path().join("recorded"), Some(&before), size, 3).unwrap();
        assert_no_violation(&cut(&dir, &take, 1, 1));
    }
}
