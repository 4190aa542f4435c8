//! Fuzzing on stable Rust: every place where bytes from outside become values, against bytes nobody would send.
//!
//! A [`target::Target`] is one input language with seeds, words and a check; a [`campaign::Campaign`] mutates inputs from
//! a seed and keeps those that got a kind of answer not seen before. The check panics where a promise is broken: against
//! a second implementation where there is one, against the promise itself where there is none. The same seed gives the
//! same inputs. Leaves out: coverage, which needs a nightly compiler.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a check that cannot go on must stop, and what it runs is the real thing"
)]

pub mod campaign;
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "it belongs to the binary, which nothing can depend on"
)]
#[path = "../../counterfoil/src/config/mod.rs"]
mod config;
mod mutate;
pub mod target;
pub mod targets;
