//! The public form of a transfer, done or held: requests, answer and schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{LAYOUT, POST_LAYOUT, VOID_LAYOUT, read, read_post, read_void};
pub use write::{write_done, write_held};

#[cfg(test)]
mod tests;
