//! Transactions: posting one or many, undoing one, looking at them.

pub(crate) mod bulk;
pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod reverse;
