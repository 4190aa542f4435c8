//! Encodings that several stores share. Golden vectors pin them: a change here changes the format
//! of stored data.

pub mod metadata;
pub mod settled;
pub mod touched;
