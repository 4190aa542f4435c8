//! The public form of a charge: reading requests to make or move one, writing one, describing both.

pub mod read;
pub mod schema;
pub mod write;

pub use read::{CAPTURE_LAYOUT, LAYOUT, VOID_LAYOUT, read, read_capture, read_void};

#[cfg(test)]
mod tests;
