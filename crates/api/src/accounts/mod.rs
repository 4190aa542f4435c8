//! Accounts: opening and spreading one, looking at them, their balances and their entries.

pub(crate) mod balance;
pub(crate) mod create;
pub(crate) mod entries;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod shards;
