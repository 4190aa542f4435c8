//! The public form of bulk requests, many transactions under one key: the request, its answer, its
//! schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, read};
pub use write::write;

#[cfg(test)]
mod tests;
