//! The public form of a dead letter, work that needs a human: reading how to resolve one, writing one and what came of
//! it, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{RESOLVE_LAYOUT, read_resolve};
pub use write::{write, write_resolved};

#[cfg(test)]
mod tests;
