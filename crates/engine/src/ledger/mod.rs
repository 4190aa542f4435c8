//! Ledger requests, which need no provider. Each is decided on rows read before, and committed in
//! one set together with the answer. The store judges the decision in that commit.

pub(crate) mod accounts;
mod bulk;
mod chunk;
mod decisions;
mod execute;
pub(crate) mod heat;
pub(crate) mod payments;
mod payouts;
mod read;
pub(crate) mod spread;
