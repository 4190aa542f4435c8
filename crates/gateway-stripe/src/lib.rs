//! The connector for Stripe's wire protocol: one provider call becomes one HTTP request and one [`Outcome`].
//!
//! It owns the connections, the form, the deadline and the reading of answers. It promises that no body leaves after
//! its deadline, however long the process slept, that `NotSent` is only said of a request whose body never left, and
//! that whatever it does not understand is `Unknown`, never a success or a refusal. It leaves out retries, breakers
//! and every decision about a payment: it reports, the engine decides. It follows no redirect and reads no proxy from
//! the environment.
//!
//! [`Outcome`]: counterfoil_core::payments::provider::Outcome

mod answer;
mod deadline;
mod form;
mod gateway;
mod letter;
mod settings;
mod transport;

pub use gateway::StripeGateway;
pub use settings::{Bounds, Settings, SettingsError};
