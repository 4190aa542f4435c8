//! The pure core: every rule of Counterfoil as a function from data to data.
//!
//! Equal arguments give equal results: the core has no async, no clock, no randomness, no I/O, no
//! logging, no wire format and no floats. Time and chance are arguments. The outer rings do the
//! rest: the store port commits the core's decisions, the engine executes them, and `wire` gives
//! them a public form.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm
)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, clippy::as_conversions, clippy::wildcard_enum_match_arm)
)]

pub mod audit;
pub mod idempotency;
pub mod ledger;
pub mod outbox;
pub mod payments;
pub mod saga;
pub mod tenancy;
pub mod types;
