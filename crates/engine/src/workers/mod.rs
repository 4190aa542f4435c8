//! What runs beside the requests: recovery of work left behind, and the end of windows.

pub(crate) mod outbox;
pub(crate) mod sweeper;
