//! Keeping the ledger: requests that need no provider. Each is decided from what is known, committed in one set with
//! its own answer, and judged by the store in that commit.

pub(crate) mod accounts;
mod acts;
mod bulk;
mod chunk;
pub(crate) mod heat;
mod keep;
pub(crate) mod payments;
mod payouts;
mod read;
pub(crate) mod spread;
