//! Dead letters, work that needs a human: looking at them, resolving one. For operators.

pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod resolve;
