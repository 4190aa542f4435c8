//! The ledger: accounts, transactions balanced by construction, and balances within bounds.
//!
//! Everything here is a function from data to data. A [`transaction::Transaction`] is a permanent
//! fact. A [`balance::Balance`] limits guarded accounts; the store's judge checks its deltas in the
//! commit. [`totals::Totals`] are sums of entries.

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
