//! The public form of an account: reading requests about one, writing one, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, SHARDS_LAYOUT, read, read_shards};
pub use write::write;

#[cfg(test)]
mod tests;
