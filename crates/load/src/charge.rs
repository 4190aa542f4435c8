//! Charges, and replays of charges, on many connections.

use crate::closed_loop;
use crate::report::{Progress, Report};
use crate::request::Work;
use crate::{LoadError, Plan};

/// Runs the plan with charges to its end and reports the measurement. Calls `progress` a few times
/// per second.
///
/// Before the warm-up one charge tests whether charges are possible at all. Ends early with an
/// error if the server cannot be reached, refuses for good, sends no readable HTTP, or if the keys
/// are not new.
pub async fn run(plan: Plan, progress: impl Fn(Progress)) -> Result<Report, LoadError> {
    closed_loop::run(plan, Work::Charge, progress).await
}
