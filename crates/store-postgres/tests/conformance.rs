//! The conformance suite of the store port, with a fresh database for each case.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use support::fresh;

counterfoil_store::conformance_suite!(fresh);
