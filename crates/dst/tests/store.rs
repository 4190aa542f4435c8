//! The simulated store passes the conformance suite of all stores.

use counterfoil_dst::store::{DirectStore, Machine};
use std::sync::{Arc, Mutex};

fn fresh() -> std::future::Ready<(Arc<DirectStore>, ())> {
    std::future::ready((Arc::new(DirectStore::new(Arc::new(Mutex::new(Machine::new(None))))), ()))
}

counterfoil_store::conformance_suite!(fresh);
