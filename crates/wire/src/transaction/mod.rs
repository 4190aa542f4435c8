//! The public form of a transaction: reading requests about one, writing one, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, REVERSE_LAYOUT, read, read_reverse};
pub use write::write;

#[cfg(test)]
mod tests;
