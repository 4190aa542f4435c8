//! What runs beside the requests: recovery of work left behind, the end of windows and holds, and the snapshots
//! balances are read from.

pub(crate) mod holds;
pub(crate) mod outbox;
pub(crate) mod projection;
pub(crate) mod sweeper;
