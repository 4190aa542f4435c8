//! The port's conformance suite, on a fresh directory for each case.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_store_embedded::{EmbeddedStore, Options};
use std::future::{Ready, ready};
use std::sync::Arc;
use tempfile::TempDir;

fn fresh() -> Ready<(Arc<EmbeddedStore>, TempDir)> {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
    ready((Arc::new(store), dir))
}

counterfoil_store::conformance_suite!(fresh);
