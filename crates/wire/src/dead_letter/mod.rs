//! The public form of a dead letter, work that needs an operator: its requests, its answers, its
//! schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{RESOLVE_LAYOUT, read_resolve};
pub use write::{write, write_resolved};

#[cfg(test)]
mod tests;
