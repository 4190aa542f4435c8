//! The engine: submits commands, drives their work and recovers abandoned work. All async loops are
//! in this crate.
//!
//! The engine is generic over the store, the gateway and the world (tasks, sleep, chance). The rest
//! of the program calls it through the object-safe [`service::Service`].

#![deny(clippy::disallowed_methods)]

mod admin;
mod cache;
mod command;
mod commit;
mod conclude;
mod detach;
mod drive;
mod engine;
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
mod service_impl;
mod shared;
pub mod signal;
mod submit;
pub mod verify;
mod waiters;
mod workers;
pub mod world;

pub use admin::Register;
pub use engine::{Engine, Parts, StartError};
pub use mint::IdMint;
pub use shared::{SharedServices, answers};
