//! The ledger: accounts, transactions that cannot exist unbalanced, balances that cannot pass their guards.
//!
//! Everything here is a function from data to data. A [`transaction::Transaction`] is what happened, for good; a
//! [`balance::Balance`] is what guarded accounts may still do, moved by deltas that the store's judge checks in the
//! commit; [`totals::Totals`] is what entries add up to.

pub mod account;
pub mod asset;
pub mod balance;
pub mod chart;
pub mod convert;
pub mod hold;
pub mod shard;
pub mod snapshot;
pub mod totals;
pub mod transaction;
