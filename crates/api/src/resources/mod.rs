//! The routes under `/v1`, one file per resource.

pub(crate) mod accounts;
pub(crate) mod assets;
pub(crate) mod charges;
pub(crate) mod conversions;
pub(crate) mod dead_letters;
pub(crate) mod keys;
pub(crate) mod payouts;
pub(crate) mod refunds;
pub(crate) mod transactions;
pub(crate) mod transfers;
pub(crate) mod webhooks;
