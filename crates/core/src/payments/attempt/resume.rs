//! Going on with work somebody else began, or that was put off. Resume is the same path as start.

use crate::audit::{AuditKind, AuditRecord, record_id};
use crate::idempotency::claim::{Claim, ClaimEvent, IllegalMove, LeasePolicy};
use crate::outbox::Outbox;
use crate::types::id::Holder;
use crate::types::time::Time;

/// A claim in new hands, to be committed before anything else is done for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// The record under a higher fence.
    pub claim: Claim,
    /// The work, due again when the new lease is over.
    pub outbox: Outbox,
    /// The audit record.
    pub audit: AuditRecord,
}

/// Takes the work over for `holder`. Whoever held a lease before may have begun to call the provider until it ended.
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
        // The lease bounds when a call begins, not when its bytes leave: one begun just before now may still be sent.
        // For how long, the rules say when quiescence is asked for.
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
