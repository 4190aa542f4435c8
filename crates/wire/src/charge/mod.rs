//! The public form of a charge: reading a request to make one, writing one, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, read};

#[cfg(test)]
mod tests;
