//! The public form of many transactions under one key: reading them, writing what came of each, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, read};
pub use write::write;

#[cfg(test)]
mod tests;
