//! Transfers between existing accounts: one in each request, or many.
//!
//! Only new and posted transfers count as done. Bulk requests count by their transfers, refused
//! ones too; latencies are those of requests.

use crate::closed_loop;
use crate::plan::is_key_byte;
use crate::report::{Progress, Report};
use crate::request::Work;
use crate::{LoadError, Plan};

/// Occurs in a bulk answer once for each posted transfer.
const POSTED: &str = "\"status\":\"posted\"";
/// Limit of transfers in a bulk request.
pub const BATCH_MAX: usize = 1_000;
/// Longer than any id or code of an account.
const NAME_BYTES_MAX: usize = 64;

/// Transfers to send, all of them in dollars.
#[derive(Clone, Debug)]
pub struct Transfers {
    /// Accounts to debit and credit, by id or code; each transfer takes a random pair. All first
    /// names have one length, and all second names.
    pub pairs: Vec<(String, String)>,
    /// Transfers per request: 1 uses the route for one transfer, more the route for many.
    pub batch: usize,
}

impl Transfers {
    fn check(&self, plan: &Plan) -> Result<(), LoadError> {
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(LoadError::Plan("a request has 1 to 1000 transfers"));
        }
        if self.batch > 1 && plan.replay_percent > 0 {
            return Err(LoadError::Plan(
                "requests with many transfers are not replayed; their answers are too large to keep",
            ));
        }
        let Some((debited, credited)) = self.pairs.first() else {
            return Err(LoadError::Plan("transfers need at least one pair of accounts"));
        };
        let fits = |name: &str, first: &str| {
            name.len() == first.len()
                && (1..=NAME_BYTES_MAX).contains(&name.len())
                && name.bytes().all(is_key_byte)
        };
        if !self.pairs.iter().all(|(from, to)| fits(from, debited) && fits(to, credited)) {
            return Err(LoadError::Plan(
                "accounts are named by 1 to 64 letters, digits, '-' or '_', all of one length",
            ));
        }
        Ok(())
    }
}

/// Runs the plan with transfers to its end and reports the measurement, as [`crate::charge::run`]
/// does.
pub async fn run(plan: Plan, transfers: Transfers, progress: impl Fn(Progress)) -> Result<Report, LoadError> {
    transfers.check(&plan)?;
    closed_loop::run(plan, Work::Transfer(transfers), progress).await
}

/// Number of posted transfers in the body of a bulk answer.
pub fn posted(body: &[u8]) -> u64 {
    let found = std::str::from_utf8(body).map_or(0, |text| text.matches(POSTED).count());
    found as u64
}

#[cfg(test)]
pub(crate) mod tests;
