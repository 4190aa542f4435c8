//! The public form of a refund: request, answer and schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, read};
pub use write::write;

#[cfg(test)]
mod tests;
