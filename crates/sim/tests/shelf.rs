//! The simulated store keeps the same promises as every other store.

use counterfoil_sim::store::{Machine, Still};
use std::sync::{Arc, Mutex};

async fn fresh() -> (Arc<Still>, ()) {
    (Arc::new(Still::new(Arc::new(Mutex::new(Machine::new(None))))), ())
}

counterfoil_store::conformance_suite!(fresh);
