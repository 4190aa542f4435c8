//! Payments: where claim, outbox, audit and (later) ledger are composed into one decision.

pub mod charge;
pub mod provider;
