//! The public form of a transaction: requests, answer and schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, REVERSE_LAYOUT, read, read_reverse};
pub use write::write;

#[cfg(test)]
mod tests;
