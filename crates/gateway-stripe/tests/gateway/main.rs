//! The connector against providers that answer well, badly, slowly or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and its servers run as tasks"
)]

mod answers;
mod bodies;
mod connections;
mod lookups;
mod provider;
mod requests;
mod settings;
mod simulator;
mod sleeps;
