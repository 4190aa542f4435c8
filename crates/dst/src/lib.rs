//! Deterministic simulation testing: the real engine, core and judge run over a simulated store,
//! provider, network and clock. Several processes run on one thread and from a single seed.
//!
//! A run has a phase with faults, in which no check may fail. In the phase without faults, all work
//! must end. [`check`] compares the clients' answers, the provider's effects and the store's rows.
//! The same seed gives the same run, step by step. A failing run can be shrunk to a script and
//! kept.

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

/// Runs allocate many small objects: the system's allocator would take a third of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
