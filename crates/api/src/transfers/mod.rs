//! Transfers: making one, ending one that is held, looking at it.

pub(crate) mod create;
pub(crate) mod end;
pub(crate) mod get;
pub(crate) mod timeline;
