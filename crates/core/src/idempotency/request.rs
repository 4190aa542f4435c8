//! Who asks, under which key, for what: the part of every write request the idempotency layer looks at.

use super::claim::{Claim, ClaimId, ClaimState, Resource, Settled};
use super::fingerprint::Fingerprint;
use crate::types::id::{SubjectId, TenantId};
use crate::types::time::Time;
use crate::types::ulid::Ulid;

/// A write request under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whose request it is.
    pub tenant: TenantId,
    /// Tenant and key, digested.
    pub claim: ClaimId,
    /// Which request the key stands for.
    pub fingerprint: Fingerprint,
    /// The request's own id.
    pub id: Ulid,
}

impl Request {
    /// The claim this request makes on its key. `expired` is the record whose key is free again and is claimed anew.
    pub fn claim(
        &self,
        subject: SubjectId,
        makes: Resource,
        state: ClaimState,
        now: Time,
        expired: Option<&Claim>,
    ) -> Claim {
        Claim {
            id: self.claim,
            tenant: self.tenant,
            fingerprint: self.fingerprint,
            subject,
            makes,
            request: self.id,
            created_at: now,
            fence: expired.map_or(1, |old| old.fence.saturating_add(1)),
            revision: expired.map_or(1, |old| old.revision.saturating_add(1)),
            attempts: 1,
            state,
        }
    }

    /// The claim of a request that was executed and answered in one step.
    pub fn settled(
        &self,
        subject: SubjectId,
        makes: Resource,
        outcome: Outcome,
        now: Time,
        expired: Option<&Claim>,
    ) -> Claim {
        let state = match outcome {
            Outcome::Done(settled) => ClaimState::Completed(settled),
            Outcome::Refused(settled) => ClaimState::FailedTerminal(settled),
        };
        self.claim(subject, makes, state, now, expired)
    }
}

/// How a request ended that needed no provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done(Settled),
    /// It was refused for good.
    Refused(Settled),
}
