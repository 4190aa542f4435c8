//! Background workers: recovery of abandoned work, the end of windows and holds, and the balance
//! snapshots.

pub(crate) mod holds;
pub(crate) mod outbox;
pub(crate) mod projection;
pub(crate) mod sweeper;
