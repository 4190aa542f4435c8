//! The connector for Stripe's wire protocol: one provider call becomes one HTTP request and one
//! [`ProviderOutcome`].
//!
//! This crate owns the forms and the reading of answers; [`counterfoil_transport`] owns deadlines
//! and connections. An answer that the connector does not understand is `Unknown`, never a success
//! or a refusal. A payment bound to a peer is never sent. Retries, circuit breakers and decisions
//! about a payment belong to the engine.
//!
//! The [`StripeInbox`] verifies and reads Stripe's webhooks.
//!
//! [`ProviderOutcome`]: counterfoil_core::payments::provider::ProviderOutcome

mod answer;
mod form;
mod gateway;
mod inbox;
mod settings;

pub use gateway::StripeGateway;
pub use inbox::{StripeInbox, signature};
pub use settings::{ProfileOverrides, StripeSettings, StripeSettingsError};
