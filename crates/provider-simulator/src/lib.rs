//! A payment provider that speaks Stripe's wire subset over real HTTP, and fails on request.
//!
//! It owns the provider's truth: every effect it really executed is listed at `GET /_sim/effects` (and in the
//! optional log file), so a checker can compare what a client believes with what happened. It promises that a
//! request is executed at most once per idempotency key inside the dedup window unless the `duplicate` fault says
//! otherwise. It leaves out durability (a restart forgets everything but the log), webhooks, and every Stripe
//! feature that Counterfoil's connector does not use.
//!
//! Bounds: at most [`Options::effects_max`] effects and as many intents; past that, new work is refused with 429
//! and not executed, so the listed truth is never thinned out. At most [`Options::keys_max`] idempotency answers;
//! past that the oldest answers are forgotten, exactly as if their dedup window had ended.

mod answer;
mod clock;
mod effects;
mod execute;
mod faults;
mod form;
mod http;
mod id;
mod idempotency;
mod intents;
mod options;
mod payouts;
mod refunds;
mod refusal;
mod running;
mod serve;
mod simulator;
mod spread;
mod state;

pub use clock::{Clock, ManualClock, Waiting, WallClock};
pub use effects::{Effect, EffectKind};
pub use faults::{BadFaults, Faults};
pub use options::Options;
pub use running::Running;
pub use serve::serve;
pub use simulator::Simulator;
