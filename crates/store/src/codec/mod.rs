//! Stored forms that stand once for all who keep them. Golden vectors pin them: a change here is a change of what is
//! already stored.

pub mod metadata;
pub mod settled;
pub mod touched;
