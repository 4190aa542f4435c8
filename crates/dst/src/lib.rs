//! A deterministic simulator: the real engine, core and judge over a simulated store, provider, network and clock, with
//! several processes, on one thread and from one seed.
//!
//! A run has a phase of faults, in which nothing may go wrong, and a phase without, in which everything must come to
//! its end. [`check`] holds what clients heard, what the provider did and what the store keeps against each other.
//! The same seed gives the same run, step by step; a run that fails can be shrunk to a script and kept.

pub mod bank;
pub mod campaign;
pub mod chance;
pub mod check;
pub mod client;
pub mod draw;
pub mod executor;
pub mod exhaust;
pub mod faults;
pub mod provider;
pub mod report;
pub mod run;
pub mod script;
pub mod shrink;
pub mod store;
pub mod world;

/// Runs are made of small pieces: the system's allocator takes a third of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
