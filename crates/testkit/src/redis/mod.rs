//! Redis or Valkey for tests. A server starts in a few milliseconds, so each test has its own.

mod relay;
mod server;

pub use relay::Relay;
pub use server::{Server, find};
