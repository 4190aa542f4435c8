//! Redis or Valkey for tests: each test has a server of its own, for it is up in a few milliseconds.

mod relay;
mod server;

pub use relay::Relay;
pub use server::{Server, find};
