//! The simulated store keeps the same promises as every other store.

use counterfoil_dst::store::{Machine, Still};
use std::sync::{Arc, Mutex};

fn fresh() -> std::future::Ready<(Arc<Still>, ())> {
    std::future::ready((Arc::new(Still::new(Arc::new(Mutex::new(Machine::new(None))))), ()))
}

counterfoil_store::conformance_suite!(fresh);
