//! Opening: locks, permissions, files that are refused and the words of each refusal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::{CommitError, Position, Store};
use counterfoil_store_embedded::{EmbeddedStore, FORMAT, OpenError, Options};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{charge_is_there, one_charge, open, raw};

fn refused(dir: &Path) -> OpenError {
    EmbeddedStore::open(dir, Options::default()).expect_err("this directory must be refused")
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_the_pid_of_the_first() {
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
    // A reader beside the server is behind by milliseconds; the server's own list forces a flush.
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
fn a_read_only_opening_needs_a_store() {
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
    // Permissions do not restrict root, but the kernel's own directories do.
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

#[tokio::test]
async fn a_store_with_another_schema_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let edit = "UPDATE meta SET value = zeroblob(32) WHERE key = 'schema_digest'";
    assert_eq!(raw(dir.path()).execute(edit, []).unwrap(), 1);
    let before = fs::read(dir.path().join("counterfoil.db")).unwrap();
    let errors =
        [refused(dir.path()), EmbeddedStore::open_read_only(dir.path()).expect_err("another schema")];
    for error in errors {
        assert!(matches!(error, OpenError::OtherSchema), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("schema differs") && text.contains("make a new store"), "{text}");
    }
    assert_eq!(fs::read(dir.path().join("counterfoil.db")).unwrap(), before);
}
