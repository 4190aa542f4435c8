//! The idempotency record and its state machine.
//!
//! [`Claim::on`] is the only transition function. It lists illegal pairs, so a new state or event
//! fails the build there. [`Claim::meet`] decides what a request gets that finds the record.
//! Neither reads a clock: `now` is the store's time.

use super::fingerprint::Fingerprint;
use super::key::IdempotencyKey;
use super::reply::Reply;
use super::window::Windows;
use crate::types::digest::Digest;
use crate::types::id::{Holder, SubjectId, TenantId};
use crate::types::time::{Span, Time};
use crate::types::ulid::Ulid;

/// Identifies a claim: the digest of tenant and key. The store does not keep the key's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(Digest);

impl ClaimId {
    /// The id of the tenant's claim for `key`.
    pub fn new(tenant: TenantId, key: &IdempotencyKey) -> ClaimId {
        ClaimId(Digest::of("counterfoil/claim/1", &[&tenant.to_i64().to_be_bytes(), key.as_str().as_bytes()]))
    }

    pub const fn from_digest(digest: Digest) -> ClaimId {
        ClaimId(digest)
    }

    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The digest of tenant and key.
    pub id: ClaimId,
    pub tenant: TenantId,
    /// The fingerprint of the first request.
    pub fingerprint: Fingerprint,
    /// The object created or moved under the key; minted with the claim.
    pub subject: SubjectId,
    /// The kind of the subject.
    pub makes: Resource,
    /// The request behind the claim. Stored error bodies contain the id.
    pub request: Ulid,
    /// The time at which the key was first used.
    pub created_at: Time,
    /// Grows with every change of holder. A writer with an older fence has lost.
    pub fence: u64,
    /// Grows with every write of the record, for compare-and-swap.
    pub revision: u64,
    /// The number of times that a holder began to execute the request.
    pub attempts: u32,
    pub state: ClaimState,
}

/// The kinds of objects that a key can create or move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    Charge,
    Account,
    /// A tenant's own asset.
    Asset,
    /// A transfer, held or posted.
    Transfer,
    Transaction,
    Bulk,
    /// No new object: an account has another number of shards.
    Shards,
    Capture,
    Void,
    Refund,
    /// No new object: a dead letter is resolved.
    Resolution,
    Payout,
}

const RESOURCES: [Resource; 12] = [
    Resource::Charge,
    Resource::Account,
    Resource::Asset,
    Resource::Transfer,
    Resource::Transaction,
    Resource::Bulk,
    Resource::Shards,
    Resource::Capture,
    Resource::Void,
    Resource::Refund,
    Resource::Resolution,
    Resource::Payout,
];

impl Resource {
    /// The name clients and stores see.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Charge => "charge",
            Resource::Account => "account",
            Resource::Asset => "asset",
            Resource::Transfer => "transfer",
            Resource::Transaction => "transaction",
            Resource::Bulk => "bulk",
            Resource::Shards => "shards",
            Resource::Capture => "capture",
            Resource::Void => "void",
            Resource::Refund => "refund",
            Resource::Resolution => "resolution",
            Resource::Payout => "payout",
        }
    }

    pub fn parse(name: &str) -> Option<Resource> {
        RESOURCES.into_iter().find(|resource| resource.name() == name)
    }
}

/// The state of a claim. Each state owns its data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimState {
    /// A holder executes the request under a lease.
    InFlight(Lease),
    /// Certainly not executed; may be tried again from `not_before`.
    FailedRetry { not_before: Time },
    /// Perhaps executed. Only evidence or an operator ends this state.
    Uncertain(Custody),
    /// Executed; retries get the answer.
    Completed(Settled),
    /// Refused for good; retries get the refusal.
    FailedTerminal(Settled),
    /// The answer was dropped after its window; only the tombstone remains.
    Expired {
        /// The instant from which the key is free.
        tombstone_until: Time,
    },
}

/// Whether a holder works on an uncertain claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Custody {
    /// No holder; work continues at `not_before`.
    Waiting {
        /// The next search for evidence.
        not_before: Time,
    },
    /// A holder looks for evidence under a lease.
    Held(Lease),
}

/// The right to execute, until an instant of the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub holder: Holder,
    /// The end of the lease, unless renewed.
    pub until: Time,
    /// The limit of all renewals.
    pub ceiling: Time,
}

/// An answer and its windows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settled {
    /// The answer to every retry.
    pub reply: Reply,
    pub windows: Windows,
}

/// The lengths of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasePolicy {
    /// The length of a lease and of each renewal.
    pub lease: Span,
    /// The longest time for which a holder may keep a lease.
    pub ceiling: Span,
}

impl LeasePolicy {
    /// A new lease for `holder`.
    pub const fn grant(&self, holder: Holder, now: Time) -> Lease {
        Lease { holder, until: now.plus(self.lease), ceiling: now.plus(self.ceiling) }
    }
}

impl Lease {
    /// Whether a new holder may take over.
    pub const fn is_over(&self, now: Time) -> bool {
        self.until.ms() <= now.ms()
    }
}

/// The events of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEvent {
    /// The holder is still at work.
    Renewed {
        /// The new end of the lease; the ceiling limits it.
        until: Time,
    },
    /// A new holder takes over. The old holder has lost, even without knowing.
    TakenOver(Lease),
    /// The provider approved.
    Completed(Settled),
    /// The provider refused, or nothing was executed and nothing will be.
    Failed(Settled),
    /// Nothing was executed; try again later.
    PutOff { not_before: Time },
    /// The request may have been executed; look for evidence later.
    Doubted { not_before: Time },
    /// The replay window is over, and the answer is dropped.
    Aged {
        /// The instant from which the key is free.
        tombstone_until: Time,
    },
}

/// An event that the claim's state does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IllegalMove {
    pub from: &'static str,
    pub event: &'static str,
}

impl ClaimState {
    /// The name clients and operators see.
    pub const fn name(&self) -> &'static str {
        match self {
            ClaimState::InFlight(_) => "in_flight",
            ClaimState::FailedRetry { .. } => "failed_retry",
            ClaimState::Uncertain(_) => "uncertain",
            ClaimState::Completed(_) => "completed",
            ClaimState::FailedTerminal(_) => "failed_terminal",
            ClaimState::Expired { .. } => "expired",
        }
    }

    /// The current lease, if any.
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            ClaimState::InFlight(lease) | ClaimState::Uncertain(Custody::Held(lease)) => Some(*lease),
            ClaimState::FailedRetry { .. }
            | ClaimState::Uncertain(Custody::Waiting { .. })
            | ClaimState::Completed(_)
            | ClaimState::FailedTerminal(_)
            | ClaimState::Expired { .. } => None,
        }
    }

    /// The stored answer, if any.
    pub const fn settled(&self) -> Option<&Settled> {
        match self {
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => Some(settled),
            ClaimState::InFlight(_)
            | ClaimState::FailedRetry { .. }
            | ClaimState::Uncertain(_)
            | ClaimState::Expired { .. } => None,
        }
    }
}

impl ClaimEvent {
    const fn name(&self) -> &'static str {
        match self {
            ClaimEvent::Renewed { .. } => "renewed",
            ClaimEvent::TakenOver(_) => "taken_over",
            ClaimEvent::Completed(_) => "completed",
            ClaimEvent::Failed(_) => "failed",
            ClaimEvent::PutOff { .. } => "put_off",
            ClaimEvent::Doubted { .. } => "doubted",
            ClaimEvent::Aged { .. } => "aged",
        }
    }
}

impl Claim {
    /// The claim after `event`. The only transition function.
    pub fn on(&self, event: ClaimEvent) -> Result<Claim, IllegalMove> {
        let is_takeover = matches!(event, ClaimEvent::TakenOver(_));
        let state = match (&self.state, event) {
            (ClaimState::InFlight(lease), ClaimEvent::Renewed { until }) => {
                ClaimState::InFlight(lease.renewed(until))
            }
            (ClaimState::InFlight(_), ClaimEvent::PutOff { not_before }) => {
                ClaimState::FailedRetry { not_before }
            }
            (ClaimState::InFlight(_) | ClaimState::FailedRetry { .. }, ClaimEvent::TakenOver(lease)) => {
                ClaimState::InFlight(lease)
            }
            (ClaimState::Uncertain(Custody::Held(lease)), ClaimEvent::Renewed { until }) => {
                ClaimState::Uncertain(Custody::Held(lease.renewed(until)))
            }
            (ClaimState::Uncertain(_), ClaimEvent::TakenOver(lease)) => {
                ClaimState::Uncertain(Custody::Held(lease))
            }
            (
                ClaimState::InFlight(_) | ClaimState::Uncertain(Custody::Held(_)),
                ClaimEvent::Doubted { not_before },
            ) => ClaimState::Uncertain(Custody::Waiting { not_before }),
            (ClaimState::InFlight(_) | ClaimState::Uncertain(_), ClaimEvent::Completed(settled)) => {
                ClaimState::Completed(settled)
            }
            (ClaimState::InFlight(_) | ClaimState::Uncertain(_), ClaimEvent::Failed(settled)) => {
                ClaimState::FailedTerminal(settled)
            }
            (
                ClaimState::Completed(_) | ClaimState::FailedTerminal(_),
                ClaimEvent::Aged { tombstone_until },
            ) => ClaimState::Expired { tombstone_until },
            (
                state @ (ClaimState::FailedRetry { .. }
                | ClaimState::Uncertain(_)
                | ClaimState::InFlight(_)
                | ClaimState::Completed(_)
                | ClaimState::FailedTerminal(_)
                | ClaimState::Expired { .. }),
                event @ (ClaimEvent::Renewed { .. }
                | ClaimEvent::TakenOver(_)
                | ClaimEvent::Completed(_)
                | ClaimEvent::Failed(_)
                | ClaimEvent::PutOff { .. }
                | ClaimEvent::Doubted { .. }
                | ClaimEvent::Aged { .. }),
            ) => {
                return Err(IllegalMove { from: state.name(), event: event.name() });
            }
        };
        Ok(Claim {
            state,
            fence: self.fence.saturating_add(u64::from(is_takeover)),
            attempts: self.attempts.saturating_add(u32::from(is_takeover)),
            revision: self.revision.saturating_add(1),
            ..self.clone()
        })
    }

    /// Whether `next` is a legal successor. Enforced by every store.
    pub fn may_become(&self, next: &Claim) -> bool {
        if next.subject == self.subject { self.may_advance_to(next) } else { self.may_be_reused_as(next) }
    }

    /// Whether `next` is a legal successor of this claim for the same request.
    fn may_advance_to(&self, next: &Claim) -> bool {
        let same_request = next.fingerprint == self.fingerprint
            && next.makes == self.makes
            && next.tenant == self.tenant
            && next.request == self.request
            && next.created_at == self.created_at;
        let changes_holder = match (self.state.lease(), next.state.lease()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => old.holder != new.holder,
        };
        let fenced = if changes_holder { next.fence > self.fence } else { next.fence >= self.fence };
        let legal_state = match &self.state {
            ClaimState::InFlight(_) => !matches!(next.state, ClaimState::Expired { .. }),
            ClaimState::FailedRetry { .. } => matches!(next.state, ClaimState::InFlight(_)),
            ClaimState::Uncertain(_) => {
                matches!(
                    next.state,
                    ClaimState::Uncertain(_) | ClaimState::Completed(_) | ClaimState::FailedTerminal(_)
                )
            }
            ClaimState::Completed(_) | ClaimState::FailedTerminal(_) => {
                matches!(next.state, ClaimState::Expired { .. })
            }
            ClaimState::Expired { .. } => false,
        };
        same_request && fenced && legal_state && next.attempts >= self.attempts
    }

    /// Whether `next` is a new request and may reuse the claim's key. The new claim starts under a
    /// higher fence. If the request needs no provider, its first write settles the claim.
    fn may_be_reused_as(&self, next: &Claim) -> bool {
        let initial_state = matches!(
            next.state,
            ClaimState::InFlight(_) | ClaimState::Completed(_) | ClaimState::FailedTerminal(_)
        );
        // The revision alone does not identify a record, because a key that was removed and reused
        // counts from 1. A writer with the older record in mind must not overwrite a younger, still
        // valid record.
        let key_was_free = self.free_at().is_some_and(|free_at| free_at <= next.created_at);
        initial_state && key_was_free && next.fence > self.fence && next.tenant == self.tenant
    }

    /// The instant from which a new request may use the key; `None` while work is in progress.
    fn free_at(&self) -> Option<Time> {
        match &self.state {
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => {
                Some(settled.windows.tombstone_until)
            }
            ClaimState::Expired { tombstone_until } => Some(*tombstone_until),
            ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } | ClaimState::Uncertain(_) => None,
        }
    }

    /// Whether the claim may be removed some day. A key that is never reused is kept forever.
    pub fn ends(&self) -> bool {
        self.free_at().is_some_and(|free_at| free_at < Time::MAX)
    }

    /// When the sweeper should look at this claim, to drop its answer or the whole claim.
    pub fn sweep_at(&self) -> Option<Time> {
        match &self.state {
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => {
                Some(settled.windows.replay_until)
            }
            ClaimState::Expired { tombstone_until } if *tombstone_until < Time::MAX => Some(*tombstone_until),
            ClaimState::Expired { .. }
            | ClaimState::InFlight(_)
            | ClaimState::FailedRetry { .. }
            | ClaimState::Uncertain(_) => None,
        }
    }

    /// The answer to a request with `fingerprint` at `now`.
    pub fn meet(&self, fingerprint: Fingerprint, now: Time) -> Meeting<'_> {
        if self.free_at().is_some_and(|free_at| free_at <= now) {
            return Meeting::Free;
        }
        if fingerprint != self.fingerprint {
            return Meeting::Mismatch;
        }
        match &self.state {
            ClaimState::InFlight(_) => Meeting::InFlight,
            ClaimState::FailedRetry { not_before }
            | ClaimState::Uncertain(Custody::Waiting { not_before }) => {
                Meeting::Pending { not_before: *not_before }
            }
            ClaimState::Uncertain(Custody::Held(_)) => Meeting::Pending { not_before: now },
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled)
                if now < settled.windows.replay_until =>
            {
                Meeting::Replay(settled)
            }
            ClaimState::Completed(_) | ClaimState::FailedTerminal(_) | ClaimState::Expired { .. } => {
                Meeting::Expired { original_request_at: self.created_at }
            }
        }
    }

    /// Whether the client may start again under a new key without the risk of a second effect. True
    /// only if the key's request certainly had no effect.
    pub const fn safe_new_key(&self) -> bool {
        matches!(self.state, ClaimState::FailedTerminal(_))
    }
}

impl Lease {
    fn renewed(self, until: Time) -> Lease {
        Lease { until: until.min(self.ceiling).max(self.until), ..self }
    }
}

/// The answer to a request that finds a claim, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting<'a> {
    /// The tombstone is over; the request may reuse the key.
    Free,
    /// The key belongs to a different request.
    Mismatch,
    /// A holder is at work; wait for its result. Expired leases are the recovery worker's task.
    InFlight,
    /// No holder works before the next attempt.
    Pending {
        /// The next attempt.
        not_before: Time,
    },
    /// The stored answer.
    Replay(&'a Settled),
    /// The replay window is over.
    Expired {
        /// The time at which the key was first used.
        original_request_at: Time,
    },
}
