//! Outcomes of a group and of its sets, and the answers that callers get.

use super::Job;
use super::ids::UniqueId;
use crate::error::NO_SPACE;
use counterfoil_store::{CommitError, CommitReceipt, CommitRefusal};

/// The outcome of a group.
pub(super) enum GroupOutcome {
    /// Every admitted set is durable, or none was admitted.
    Durable,
    /// Nothing was written.
    Untouched(String),
    /// The append failed: an opening may find the admitted sets.
    Doubtful(String),
}

/// The outcome of one set.
pub(super) enum Verdict {
    Admitted(CommitReceipt),
    Refused(Box<CommitRefusal>),
    /// An id of the set is taken. The judge does not see this, and no correct caller does it.
    IdTaken(UniqueId),
}

impl Verdict {
    pub(super) fn receipt(&self) -> Option<CommitReceipt> {
        match self {
            Verdict::Admitted(receipt) => Some(*receipt),
            Verdict::Refused(_) | Verdict::IdTaken(_) => None,
        }
    }
}

/// Answers every set. A refusal may rest on a neighbour's write, so it counts only once the group
/// is durable.
pub(super) fn answer(jobs: impl Iterator<Item = Job>, verdicts: Vec<Verdict>, outcome: &GroupOutcome) {
    let mut verdicts = verdicts.into_iter();
    for job in jobs {
        let verdict = verdicts.next();
        let result = match (outcome, verdict) {
            (GroupOutcome::Durable, Some(Verdict::Admitted(receipt))) => Ok(receipt),
            (GroupOutcome::Durable, Some(Verdict::Refused(refusal))) => Err(CommitError::Refused(refusal)),
            (_, Some(Verdict::IdTaken(id))) => Err(CommitError::Unavailable(format!(
                "the store refused the set, which is a defect to report: {}",
                id.why_taken()
            ))),
            // Every set of a durable group has a verdict; a missing verdict tells nothing.
            (GroupOutcome::Doubtful(_), Some(Verdict::Admitted(_))) | (GroupOutcome::Durable, None) => {
                Err(CommitError::InDoubt(job.set.id()))
            }
            (GroupOutcome::Untouched(why) | GroupOutcome::Doubtful(why), _) => {
                Err(CommitError::Unavailable(why.clone()))
            }
        };
        // The caller may have gone away; the commit stands.
        let _ = job.answer.send(result);
    }
}

/// The error in words for operators.
pub(super) fn io_reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => NO_SPACE.to_owned(),
        _ => error.to_string(),
    }
}
