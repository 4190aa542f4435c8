//! Servers that the tests of several crates talk to, and the tools start: real ones, each in a directory of its own,
//! gone when the process that started them is gone, however it ended.

#![expect(
    clippy::disallowed_methods,
    reason = "real processes, real time and the environment are what this is about"
)]

pub mod failure;
pub mod faketime;
mod keeper;
pub mod postgres;
pub mod redis;
