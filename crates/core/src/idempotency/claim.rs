//! The idempotency record and its state machine.
//!
//! [`Claim::on`] is the one place where a claim changes; illegal pairs are listed, so a new state or event fails
//! the build there. [`Claim::meet`] says what a request that finds the record gets. Neither reads a clock: `now`
//! is the store's time.

use super::fingerprint::Fingerprint;
use super::key::IdempotencyKey;
use super::reply::Reply;
use super::window::Windows;
use crate::types::digest::Digest;
use crate::types::id::{Holder, SubjectId, TenantId};
use crate::types::time::{Span, Time};
use crate::types::ulid::Ulid;

/// Identifies a claim: the digest of tenant and key. The key's own text is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(Digest);

impl ClaimId {
    /// The claim of `key` within `tenant`.
    pub fn new(tenant: TenantId, key: &IdempotencyKey) -> ClaimId {
        ClaimId(Digest::of("counterfoil/claim/1", &[&tenant.to_i64().to_be_bytes(), key.as_str().as_bytes()]))
    }

    /// As stored.
    pub const fn from_digest(digest: Digest) -> ClaimId {
        ClaimId(digest)
    }

    /// To store.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

/// The idempotency record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Tenant and key, digested.
    pub id: ClaimId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What the first request asked for.
    pub fingerprint: Fingerprint,
    /// What this key makes; minted with the claim.
    pub subject: SubjectId,
    /// Which kind of thing that is.
    pub makes: Resource,
    /// The request that made the claim; it stands in stored error bodies.
    pub request: Ulid,
    /// When the key was first used.
    pub created_at: Time,
    /// Grows with every change of hands; a writer with an older fence has lost.
    pub fence: u64,
    /// Grows with every write of the record: what a compare-and-swap compares.
    pub revision: u64,
    /// How often somebody set out to execute the request.
    pub attempts: u32,
    /// Where it stands.
    pub state: ClaimState,
}

/// The kinds of things a key can make or move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// A charge.
    Charge,
    /// A ledger account.
    Account,
    /// An asset of the tenant's own.
    Asset,
    /// A transfer, held or not.
    Transfer,
    /// A transaction.
    Transaction,
    /// Many transactions.
    Bulk,
    /// Nothing new: an account has another spread.
    Shards,
    /// A capture of a charge.
    Capture,
    /// A void of a charge.
    Void,
    /// A refund of a charge.
    Refund,
    /// Nothing new: a dead letter is resolved.
    Resolution,
    /// A payout.
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
    /// The word clients and stores see.
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

    /// The resource of that name.
    pub fn parse(name: &str) -> Option<Resource> {
        RESOURCES.into_iter().find(|resource| resource.name() == name)
    }
}

/// Where a claim stands. Data lives in the state that owns it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimState {
    /// Somebody executes it, under a lease.
    InFlight(Lease),
    /// Certainly not executed; it may be tried again from `not_before` on.
    FailedRetry {
        /// When the next attempt is due.
        not_before: Time,
    },
    /// Perhaps executed. It leaves this state only on evidence or by an operator.
    Uncertain(Custody),
    /// Executed; the answer is replayed.
    Completed(Settled),
    /// Refused for good; the refusal is replayed.
    FailedTerminal(Settled),
    /// The answer was dropped after its window; only the tombstone is left.
    Expired {
        /// When the key is free again.
        tombstone_until: Time,
    },
}

/// Who works on an uncertain claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Custody {
    /// Nobody before this instant.
    Waiting {
        /// When evidence is sought again.
        not_before: Time,
    },
    /// Somebody seeks evidence, under a lease.
    Held(Lease),
}

/// The right to execute, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds it.
    pub holder: Holder,
    /// It is over at this instant unless renewed.
    pub until: Time,
    /// It cannot be renewed past this instant.
    pub ceiling: Time,
}

/// An answer and how long it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settled {
    /// What every retry gets.
    pub reply: Reply,
    /// Until when.
    pub windows: Windows,
}

/// How leases are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasePolicy {
    /// Length of a lease and of each renewal.
    pub lease: Span,
    /// Longest time one holder may keep it.
    pub ceiling: Span,
}

impl LeasePolicy {
    /// A fresh lease for `holder`.
    pub const fn grant(&self, holder: Holder, now: Time) -> Lease {
        Lease { holder, until: now.plus(self.lease), ceiling: now.plus(self.ceiling) }
    }
}

impl Lease {
    /// Whether anybody may take over.
    pub const fn is_over(&self, now: Time) -> bool {
        self.until.ms() <= now.ms()
    }
}

/// What may happen to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimEvent {
    /// The holder is still at work.
    Renewed {
        /// The new end of the lease, cut at its ceiling.
        until: Time,
    },
    /// Somebody else continues; the old holder has lost, whether it knows or not.
    TakenOver(Lease),
    /// The provider approved.
    Completed(Settled),
    /// The provider refused, or nothing happened and nothing will.
    Failed(Settled),
    /// Nothing happened; try again later.
    PutOff {
        /// When.
        not_before: Time,
    },
    /// It may have happened; seek evidence later.
    Doubted {
        /// When.
        not_before: Time,
    },
    /// The replay window is over and the answer is dropped.
    Aged {
        /// When the key is free again.
        tombstone_until: Time,
    },
}

/// A pair of state and event that must not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IllegalMove {
    /// The state's name.
    pub from: &'static str,
    /// The event's name.
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

    /// The lease, where somebody holds one.
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

    /// The stored answer, where there is one.
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
    /// The claim after `event`. The one transition function.
    pub fn on(&self, event: ClaimEvent) -> Result<Claim, IllegalMove> {
        let (state, handed_over) = match (&self.state, event) {
            (ClaimState::InFlight(lease), ClaimEvent::Renewed { until }) => {
                (ClaimState::InFlight(lease.renewed(until)), false)
            }
            (ClaimState::InFlight(_) | ClaimState::FailedRetry { .. }, ClaimEvent::TakenOver(lease)) => {
                (ClaimState::InFlight(lease), true)
            }
            (ClaimState::InFlight(_), ClaimEvent::PutOff { not_before }) => {
                (ClaimState::FailedRetry { not_before }, false)
            }
            (ClaimState::Uncertain(Custody::Held(lease)), ClaimEvent::Renewed { until }) => {
                (ClaimState::Uncertain(Custody::Held(lease.renewed(until))), false)
            }
            (ClaimState::Uncertain(_), ClaimEvent::TakenOver(lease)) => {
                (ClaimState::Uncertain(Custody::Held(lease)), true)
            }
            (
                ClaimState::InFlight(_) | ClaimState::Uncertain(Custody::Held(_)),
                ClaimEvent::Doubted { not_before },
            ) => (ClaimState::Uncertain(Custody::Waiting { not_before }), false),
            (ClaimState::InFlight(_) | ClaimState::Uncertain(_), ClaimEvent::Completed(settled)) => {
                (ClaimState::Completed(settled), false)
            }
            (ClaimState::InFlight(_) | ClaimState::Uncertain(_), ClaimEvent::Failed(settled)) => {
                (ClaimState::FailedTerminal(settled), false)
            }
            (
                ClaimState::Completed(_) | ClaimState::FailedTerminal(_),
                ClaimEvent::Aged { tombstone_until },
            ) => (ClaimState::Expired { tombstone_until }, false),
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
            fence: if handed_over { self.fence.saturating_add(1) } else { self.fence },
            attempts: if handed_over { self.attempts.saturating_add(1) } else { self.attempts },
            revision: self.revision.saturating_add(1),
            state,
            ..self.clone()
        })
    }

    /// Whether `next` may stand where this claim stands now: what every store holds against every writer.
    pub fn may_become(&self, next: &Claim) -> bool {
        if next.subject != self.subject {
            // The key was free again and means a new request: everything starts anew, under a higher fence. A request
            // that needs no provider is settled by its first write.
            let begun = matches!(
                next.state,
                ClaimState::InFlight(_) | ClaimState::Completed(_) | ClaimState::FailedTerminal(_)
            );
            let anew = begun && next.fence > self.fence && next.tenant == self.tenant;
            // A record is not recognised by its revision alone: a key that was removed and used again counts from 1.
            // Whoever decided on an older record must not overwrite a younger one that is still good.
            return anew && self.free_at().is_some_and(|free_at| free_at <= next.created_at);
        }
        let same = next.fingerprint == self.fingerprint
            && next.makes == self.makes
            && next.tenant == self.tenant
            && next.request == self.request
            && next.created_at == self.created_at;
        let handed_over = match (self.state.lease(), next.state.lease()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => old.holder != new.holder,
        };
        let fenced = if handed_over { next.fence > self.fence } else { next.fence >= self.fence };
        let moves = match &self.state {
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
        same && fenced && moves && next.attempts >= self.attempts
    }

    /// From when on the key may mean another request; never while somebody is at work on it.
    fn free_at(&self) -> Option<Time> {
        match &self.state {
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => {
                Some(settled.windows.tombstone_until)
            }
            ClaimState::Expired { tombstone_until } => Some(*tombstone_until),
            ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } | ClaimState::Uncertain(_) => None,
        }
    }

    /// Whether there is a time from which on nobody needs it. A key that never means another request is kept for good.
    pub fn ends(&self) -> bool {
        self.free_at().is_some_and(|free_at| free_at < Time::MAX)
    }

    /// When the sweeper should look at this claim: to drop its answer, or to drop it whole.
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

    /// What a request with `fingerprint` gets that finds this claim at `now`.
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

    /// May the client start again under a new key without a risk of a second effect? Only where this key's
    /// request is known to have had none.
    pub const fn safe_new_key(&self) -> bool {
        matches!(self.state, ClaimState::FailedTerminal(_))
    }
}

impl Lease {
    fn renewed(self, until: Time) -> Lease {
        Lease { until: until.min(self.ceiling).max(self.until), ..self }
    }
}

/// What a request gets that finds a claim. In order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting<'a> {
    /// The tombstone is over: the key may be claimed anew in the old one's place.
    Free,
    /// The key belongs to another request.
    Mismatch,
    /// Somebody is at work; wait for them. (A lease that is over belongs to the recovery worker.)
    InFlight,
    /// Nobody is at work before this instant.
    Pending {
        /// When work goes on.
        not_before: Time,
    },
    /// The answer.
    Replay(&'a Settled),
    /// The answer was given too long ago.
    Expired {
        /// When the key was first used.
        original_request_at: Time,
    },
}
