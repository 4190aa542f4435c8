//! Hostile input over the whole HTTP surface, against the real server over real sockets.
//!
//! A table of routes and a table of damage produce thousands of bad requests, each with its exact
//! answer. The routes come from the served description. A route without an entry in `table.rs`, or
//! a field without an entry, fails the test. Afterwards, no bad request may have left a trace.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod bad;
mod bodies;
mod coverage;
mod fields;
mod forms;
mod heads;
mod place;
mod queries;
mod routes;
mod run;
mod syntax;
mod table;
mod targets;
mod tenants;
mod world;
