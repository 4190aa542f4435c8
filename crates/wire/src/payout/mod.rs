//! The public form of a payout: reading a request to make one, writing one, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, read};
pub use write::write;

#[cfg(test)]
mod tests;
