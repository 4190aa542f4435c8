//! The public form of a charge: requests, answer and schema.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{CAPTURE_LAYOUT, LAYOUT, VOID_LAYOUT, read, read_capture, read_void};

#[cfg(test)]
mod tests;
