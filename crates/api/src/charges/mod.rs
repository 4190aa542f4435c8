//! Charges: making one, capturing or voiding it, looking at them.

pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod operate;
pub(crate) mod timeline;
