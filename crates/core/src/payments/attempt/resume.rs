//! Takes over work from a lost holder, or resumes work that was put off. Resume is the same path as
//! start.

use crate::audit::{AuditKind, AuditRecord, record_id};
use crate::idempotency::claim::{Claim, ClaimEvent, IllegalMove, LeasePolicy};
use crate::outbox::Outbox;
use crate::types::id::Holder;
use crate::types::time::Time;

/// A claim under a new lease. Commit before any other action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// The claim under a higher fence.
    pub claim: Claim,
    /// The work, due when the new lease ends.
    pub outbox: Outbox,
    pub audit: AuditRecord,
}

/// Takes over the work for `holder`. A previous holder may have begun a provider call at any time
/// until its lease ended.
pub fn take_over(
    claim: &Claim,
    outbox: &Outbox,
    policy: LeasePolicy,
    holder: Holder,
    now: Time,
    chance: u128,
) -> Result<Resumption, IllegalMove> {
    let lease = policy.grant(holder, now);
    let resumed = claim.on(ClaimEvent::TakenOver(lease))?;
    let mut outbox =
        Outbox { due_at: lease.until, revision: outbox.revision.saturating_add(1), ..outbox.clone() };
    let abandoned = claim.state.lease().is_some();
    if abandoned {
        // The lease bounds the beginning of a call, not the departure of its bytes. A call that
        // began just before now may still be sent; the rules for quiescence account for it.
        outbox.history.unknown = true;
        outbox.history.last_sent_at = now;
    }
    let audit = AuditRecord {
        id: record_id(now, resumed.revision, chance),
        tenant: claim.tenant,
        subject: outbox.payment.subject(),
        at: now,
        fence: resumed.fence,
        kind: AuditKind::TakenOver,
        detail: format!("from={} attempt={}", claim.state.name(), resumed.attempts),
    };
    Ok(Resumption { claim: resumed, outbox, audit })
}
