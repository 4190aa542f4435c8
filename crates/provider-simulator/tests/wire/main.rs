//! The provider as its clients meet it: over real HTTP, with time in the test's hands.

#![expect(clippy::unwrap_used, reason = "a test stops where its world is not as it says")]

mod control;
mod faults;
mod hostile;
mod keys;
mod late;
mod money;
mod provider;
mod queries;
mod shutdown;
