//! Stored forms that every store with text columns shares. Golden vectors pin them: a change here is a change of what is
//! already stored.

pub mod metadata;
