//! The only async loops: submit a command, drive its work, recover what was left behind.
//!
//! Generic over the store, the gateway and the world (tasks, sleep, chance). The rest of the program talks to it
//! through the object-safe [`service::Service`].

#![deny(clippy::disallowed_methods)]

mod admin;
pub mod answers;
mod cache;
mod commit;
mod conclude;
mod detach;
mod door;
mod drive;
mod engine;
pub mod fencing;
mod hint;
mod lanes;
mod ledger;
mod mint;
mod open;
pub mod policy;
pub mod present;
mod principals;
mod recent;
mod refuse;
mod resolve;
pub mod service;
pub mod signal;
mod submit;
pub mod verify;
mod waiters;
mod workers;
pub mod world;

pub use admin::Register;
pub use engine::{Engine, Parts, SharedServices, StartError};
pub use mint::IdMint;
