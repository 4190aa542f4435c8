//! Payouts: making one, looking at them.

pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod timeline;
