//! Fuzzing on stable Rust: every parser of outside bytes, on bytes that no honest client sends.
//!
//! A [`target::Target`] is one input language with seeds, words and a check. A
//! [`campaign::Campaign`] mutates inputs from a seed and keeps those with a new class of answers.
//! The check panics on a broken promise: a difference from a second implementation, or a violation
//! of the promise itself. The same seed gives the same inputs. Coverage is not measured; it needs a
//! nightly compiler.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a check that cannot continue must stop; it runs the real code"
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
