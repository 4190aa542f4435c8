//! Opening: who may, what is refused and in which words, and that an old file is brought forward.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::tenancy::TenantName;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_core::types::time::Time;
use counterfoil_store::{CommitError, Position, Row, RowKey, Store};
use counterfoil_store_embedded::{EmbeddedStore, FORMAT, OpenError, Options};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::rows::{Work, work};
use support::{charge_is_there, claim_of, one_charge, open, raw, whose};

fn refused(dir: &Path) -> OpenError {
    EmbeddedStore::open(dir, Options::default()).expect_err("this directory must be refused")
}

#[tokio::test]
async fn a_second_writer_is_told_who_holds_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let error = refused(dir.path());
    assert!(matches!(error, OpenError::Locked { pid: Some(pid) } if pid == std::process::id()), "{error:?}");
    assert!(error.to_string().contains("stop that process first"), "{error}");
    drop(store);
    open(dir.path());
}

#[tokio::test]
async fn a_reader_may_look_while_a_server_writes_but_not_write() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(one_charge(&store, 1)).await.unwrap();
    assert_eq!(store.feed(Position(0), 10).await.unwrap().len(), 1);
    let reader = EmbeddedStore::open_read_only(dir.path()).unwrap();
    assert!(charge_is_there(&reader, 1).await);
    store.commit(one_charge(&store, 2)).await.unwrap();
    // A reader beside the server is behind by milliseconds; what the server has listed is shown to it, too.
    assert_eq!(store.feed(Position(0), 10).await.unwrap().len(), 2);
    assert!(charge_is_there(&reader, 2).await);
    let answer = reader.commit(one_charge(&reader, 3)).await;
    assert!(matches!(answer, Err(CommitError::Unavailable(why)) if why.contains("reading only")));
    assert!(store.is_exclusive() && !reader.is_exclusive());
    assert_eq!(reader.secret().reveal(), store.secret().reveal());
    drop(store);
    assert!(charge_is_there(&reader, 2).await);
    drop(reader);
    assert!(charge_is_there(&EmbeddedStore::open_read_only(dir.path()).unwrap(), 2).await, "a stopped store");
}

#[test]
fn there_must_be_something_to_read() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("nowhere")] {
        let error = EmbeddedStore::open_read_only(&path).expect_err("nothing is there");
        assert!(matches!(error, OpenError::Absent), "{error:?}");
    }
    assert!(!dir.path().join("nowhere").exists());
}

#[test]
fn a_directory_that_cannot_be_written_is_named_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let locked = dir.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    // Permissions do not bind root; the kernel's own directories do.
    let unwritable =
        if fs::write(locked.join("probe"), "").is_ok() { Path::new("/sys/kernel") } else { &locked };
    let error = refused(unwritable);
    assert!(matches!(error, OpenError::ReadOnly), "{error:?}");
    assert!(error.to_string().contains("write access"), "{error}");
}

#[test]
fn a_file_is_not_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        assert!(matches!(refused(&path), OpenError::NotADirectory), "{path:?}");
    }
}

#[test]
fn a_store_is_made_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("new"));
    for file in ["counterfoil.db", "counterfoil.db-wal", "counterfoil.db-shm", "LOCK"] {
        let mode = fs::metadata(dir.path().join("new").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(store);
    assert!(!dir.path().join("new/counterfoil.db-wal").exists(), "a clean end leaves no log");
}

#[test]
fn every_store_has_a_secret_of_its_own_and_keeps_it() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = *open(one.path()).secret().reveal();
    assert_eq!(*open(one.path()).secret().reveal(), secret);
    assert_ne!(*open(other.path()).secret().reveal(), secret);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let newer = FORMAT + 1;
    raw(dir.path()).execute_batch(&format!("PRAGMA user_version = {newer}")).unwrap();
    let before = fs::read(dir.path().join("counterfoil.db")).unwrap();
    let errors = [refused(dir.path()), EmbeddedStore::open_read_only(dir.path()).expect_err("newer")];
    for error in errors {
        let named =
            matches!(error, OpenError::NewerFormat { found, known } if found == newer && known == FORMAT);
        assert!(named, "{error:?}");
        assert!(error.to_string().contains("run the newer release"), "{error}");
    }
    assert_eq!(fs::read(dir.path().join("counterfoil.db")).unwrap(), before);
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    let before = fs::read(dir.path().join("counterfoil.db")).unwrap();
    assert!(matches!(refused(dir.path()), OpenError::Foreign));
    assert_eq!(fs::read(dir.path().join("counterfoil.db")).unwrap(), before);
}

#[test]
fn a_creation_that_was_cut_off_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("counterfoil.db"), "").unwrap();
    drop(open(dir.path()));
    fs::remove_file(dir.path().join("counterfoil.db")).unwrap();
    raw(dir.path()).execute_batch("PRAGMA journal_mode = WAL").unwrap();
    assert_ne!(*open(dir.path()).secret().reveal(), [0; 32]);
}

/// A file that format 1 wrote, as SQL.
const GOLDEN: &str = include_str!("golden/v1.sql");

#[tokio::test]
async fn a_file_of_format_1_is_opened_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch(GOLDEN).unwrap();
    let store = open(dir.path());
    assert_eq!(store.secret().reveal()[..4], [0xde, 0xad, 0xbe, 0xef]);
    let at = Time::from_ms(1_760_000_000_000);
    let (first, second) = (work(1, at), work(2, at));
    let body = bytes::Bytes::from_static(b"{\"id\":\"ch_1\",\"status\":\"succeeded\"}");
    let mut answered = first.answered(at, body);
    if let ClaimState::Completed(settled) = &mut answered.state {
        // Keys were spread over more steps then.
        let [replay_until, tombstone_until] = [1_760_086_552_929, 1_760_090_152_929].map(Time::from_ms);
        settled.windows = Windows { replay_until, tombstone_until };
    }
    assert_eq!(claim_of(&store, first.claim.id).await, Some(answered));
    assert_eq!(claim_of(&store, second.claim.id).await, Some(second.claim.clone()));
    for (number, expected) in [(1, None), (2, Some(Row::Outbox(second.outbox.clone())))] {
        let work = SubjectId::from_i64(number);
        assert_eq!(whose(&store, |tenant| RowKey::Outbox(tenant, work)).await, expected);
    }
    let feed = store.feed(Position(0), 10).await.unwrap();
    let sets: Vec<SetId> = feed.iter().map(|entry| entry.set).take(4).collect();
    assert_eq!(sets, [1, 2, 3, 4].map(SetId::from_i64));
    assert_eq!(feed[1].touched.len(), 5);
    let tenant = TenantName::parse("acme").unwrap();
    let keys = vec![RowKey::Tenant(tenant), RowKey::ApiKey(Digest::from_bytes([0xcc; 32])), RowKey::Slot(5)];
    assert!(store.read(keys).await.unwrap().iter().all(Option::is_some));
    assert!(store.now() >= at);
    // The ledger came with format 2, and with it the account the charge credits.
    let Some(Row::Charge(charge)) = whose(&store, |tenant| RowKey::Charge(tenant, second.charge.id)).await
    else {
        panic!("the charge is gone")
    };
    assert_eq!(&*charge.provider.endpoint, "", "nobody wrote down where it was asked for");
    let second = Work { charge, ..second };
    store.commit(second.settling(5, store.now(), bytes::Bytes::new())).await.unwrap();
    drop(store);
    let version: u32 = raw(dir.path()).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, FORMAT);
}

#[test]
fn a_released_format_is_never_edited() {
    let schema = |db: &rusqlite::Connection| -> Vec<String> {
        let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
        db.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let made_by = |sql: &str| {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch(sql).unwrap();
        schema(&db)
    };
    let (first, second) = (include_str!("../src/schema/v1.sql"), include_str!("../src/schema/v2.sql"));
    assert_eq!(made_by(first), made_by(GOLDEN));
    assert_eq!(made_by(&format!("{first}{second}")), made_by(include_str!("golden/v2.sql")));
    let third = include_str!("../src/schema/v3.sql");
    let fourth = include_str!("../src/schema/v4.sql");
    let golden = include_str!("golden/v4.sql");
    assert_eq!(made_by(&format!("{first}{second}{third}{fourth}")), made_by(golden));
    assert_eq!(made_by(&format!("{first}{second}{third}")), made_by(include_str!("golden/v3.sql")));
    let (fifth, sixth) = (include_str!("../src/schema/v5.sql"), include_str!("../src/schema/v6.sql"));
    assert_eq!(made_by(&format!("{golden}{fifth}")), made_by(include_str!("golden/v5.sql")));
    let (fresh, old) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(open(fresh.path()));
    raw(old.path()).execute_batch(GOLDEN).unwrap();
    drop(open(old.path()));
    let now = schema(&raw(fresh.path()));
    assert_eq!(now, schema(&raw(old.path())), "an old file becomes what a fresh one is");
    assert_eq!(now, made_by(&format!("{golden}{fifth}{sixth}")));
}
