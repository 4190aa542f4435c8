//! The only async loops: submit a command, drive its work, recover what was left behind.
//!
//! Generic over the store, the gateway and the world (tasks, sleep, chance). The rest of the program talks to it
//! through the object-safe [`service::Service`].

#![deny(clippy::disallowed_methods)]

pub mod present;
pub mod service;
pub mod signal;
pub mod world;
