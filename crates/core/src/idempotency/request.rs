//! The part of a write request that the idempotency layer needs: tenant, key and fingerprint.

use super::claim::{Claim, ClaimId, ClaimState, Resource, Settled};
use super::fingerprint::Fingerprint;
use crate::types::id::{SubjectId, TenantId};
use crate::types::time::Time;
use crate::types::ulid::Ulid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub tenant: TenantId,
    /// The digest of tenant and key.
    pub claim: ClaimId,
    pub fingerprint: Fingerprint,
    /// The request's own id.
    pub id: Ulid,
}

impl Request {
    /// The request's claim on the key. `expired` is the claim whose key is free again and is
    /// reused.
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

    /// The claim of a request with execution and answer in one step.
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

/// The end of a request that needed no provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Settled),
    /// Refused for good.
    Refused(Settled),
}
