//! The port's own suite, on a fresh directory for each case.

use counterfoil_store_embedded::{EmbeddedStore, Options};
use std::sync::Arc;
use tempfile::TempDir;

async fn fresh() -> (Arc<EmbeddedStore>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
    (Arc::new(store), dir)
}

counterfoil_store::conformance_suite!(fresh);
