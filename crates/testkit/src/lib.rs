//! Tools for the tests of several crates and for `xtask`: an HTTP client, and real PostgreSQL and
//! Redis servers.
//!
//! Every server has its own directory. Server and directory disappear with the process that started
//! them, however it ends.

#![expect(
    clippy::disallowed_methods,
    reason = "real processes, real time and the environment are the subject of this crate"
)]

pub mod failure;
pub mod faketime;
pub mod http;
pub mod postgres;
pub mod redis;
mod supervisor;
