//! The public form of an account: requests, answer and schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, SHARDS_LAYOUT, read, read_shards};
pub use write::write;

#[cfg(test)]
mod tests;
