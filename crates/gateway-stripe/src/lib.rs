//! The connector for Stripe's wire protocol: one provider call becomes one HTTP request and one [`Outcome`].
//!
//! It owns the form and the reading of answers; deadlines and connections are [`counterfoil_transport`]'s, with what it
//! promises. Whatever it does not understand is `Unknown`, never a success or a refusal, and a payment that is bound to a
//! peer is never sent. It leaves out retries, breakers and every decision about a payment: it reports, the engine decides.
//!
//! SharedServices it stands the [`StripeInbox`], which tells what Stripe sent from what somebody else did.
//!
//! [`Outcome`]: counterfoil_core::payments::provider::Outcome

mod answer;
mod form;
mod gateway;
mod inbox;
mod settings;

pub use gateway::StripeGateway;
pub use inbox::{StripeInbox, signature};
pub use settings::{Bounds, Settings, SettingsError};
