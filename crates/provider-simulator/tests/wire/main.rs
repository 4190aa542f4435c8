//! The provider over real HTTP, with a clock under the test's control.

#![expect(clippy::unwrap_used, reason = "a broken assumption must stop the test")]

mod control;
mod faults;
mod hostile;
mod keys;
mod late;
mod money;
mod provider;
mod queries;
mod shutdown;
