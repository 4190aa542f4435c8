//! A payment provider that speaks Stripe's wire subset over real HTTP, and fails on request.
//!
//! Owns the provider's truth: `GET /_sim/effects` (and an optional log file) lists every executed
//! effect, so a checker can compare a client's belief with reality. A request is executed at most
//! once per idempotency key inside the dedup window, unless the `duplicate` fault says otherwise.
//! Durability (a restart forgets everything but the log), webhooks, and Stripe features that
//! Counterfoil's connector does not use are left out.
//!
//! Bounds: at most [`Options::effects_max`] effects and as many intents. Beyond that, new work is
//! refused with 429 and not executed, so the listed truth stays complete. At most
//! [`Options::keys_max`] idempotency answers; beyond that the oldest answers are forgotten, as if
//! their dedup window had ended.

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
