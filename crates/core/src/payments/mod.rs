//! Payments: where claim, outbox, audit and ledger are composed into one decision.

pub mod books;
pub mod charge;
pub mod provider;
