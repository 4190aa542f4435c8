//! Hostile input over the whole HTTP surface, against the real server over real sockets.
//!
//! Thousands of bad requests are made from a table of routes and a table of kinds of damage, each with the exact
//! answer it must get. The routes come from the served description: one that has no entry in `table.rs`, or a field
//! that no entry names, fails here. Afterwards nothing may be left of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so")]

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
