//! The outbox row: the outstanding work of a payment, bound to a provider, with the history of its
//! calls. The row is written with the claim and removed with the answer, so no work can be
//! forgotten.

use crate::idempotency::claim::ClaimId;
use crate::saga::progress::SagaProgress;
use crate::types::id::{ChargeId, HoldId, PayoutId, SubjectId, TenantId};
use crate::types::peer::PeerName;
use crate::types::reference::{Reference, ReferenceKind, References};
use crate::types::time::Time;
use std::sync::Arc;

/// The outstanding work of one payment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// The claim's subject: the payment itself, or an operation on it.
    pub id: SubjectId,
    pub payment: Payment,
    pub saga: Saga,
    /// The ledger hold of the reserved money.
    pub hold: Option<HoldId>,
    /// The claim of the work; the fence guards every write.
    pub claim: ClaimId,
    pub tenant: TenantId,
    /// The provider and endpoint, fixed for the payment's life.
    pub provider: ProviderBinding,
    /// When to look at the work: at the end of the lease, or at the next attempt.
    pub due_at: Time,
    pub created_at: Time,
    pub history: History,
    /// Set when only a human can continue.
    pub parked: Option<ParkReason>,
    pub revision: u64,
}

/// A payment: the owner of a timeline, known to the provider by our reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payment {
    Charge(ChargeId),
    Payout(PayoutId),
}

impl Payment {
    /// The subject of the payment's audit records.
    pub fn subject(self) -> SubjectId {
        match self {
            Payment::Charge(charge) => charge.into(),
            Payment::Payout(payout) => payout.into(),
        }
    }

    /// The payment's name for clients and the provider.
    pub fn reference(self, references: &References) -> Reference {
        let kind = match self {
            Payment::Charge(_) => ReferenceKind::Charge,
            Payment::Payout(_) => ReferenceKind::Payout,
        };
        references.seal(kind, self.subject().to_i64())
    }

    /// The payment of that reference; `None` if a different instance created the reference.
    pub fn open(references: &References, text: &str) -> Option<Payment> {
        let charge =
            references.open(ReferenceKind::Charge, text).map(|id| Payment::Charge(ChargeId::from_i64(id)));
        charge.or_else(|| {
            references.open(ReferenceKind::Payout, text).map(|id| Payment::Payout(PayoutId::from_i64(id)))
        })
    }
}

/// A saga in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saga {
    pub flow: Flow,
    /// The version of the definition that the saga runs under, from begin to end.
    pub version: u16,
    /// The next step.
    pub progress: SagaProgress,
}

/// The kinds of sagas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// A charge captured at once.
    Charge,
    /// A charge held for a later capture.
    Authorize,
    /// A charge paid partly by a wallet and partly by a card.
    Split,
    /// The capture of a held amount, in full or in part.
    Capture,
    /// The release of a held amount.
    Void,
    /// The return of a captured amount, in full or in part.
    Refund,
    /// A payment from an account to a bank account or a peer.
    Payout,
}

pub const FLOWS: [Flow; 7] =
    [Flow::Charge, Flow::Authorize, Flow::Split, Flow::Capture, Flow::Void, Flow::Refund, Flow::Payout];

impl Flow {
    /// The name in stores, timelines and dead letters.
    pub const fn name(self) -> &'static str {
        match self {
            Flow::Charge => "charge",
            Flow::Authorize => "authorize",
            Flow::Split => "split",
            Flow::Capture => "capture",
            Flow::Void => "void",
            Flow::Refund => "refund",
            Flow::Payout => "payout",
        }
    }

    pub fn parse(name: &str) -> Option<Flow> {
        FLOWS.into_iter().find(|flow| flow.name() == name)
    }
}

/// The provider of a payment. The endpoint is part of the binding, because some providers do not
/// deduplicate across endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProviderBinding {
    /// The profile's name.
    pub profile: Arc<str>,
    /// Scheme, host and port; for a peer, its name, endpoint and account. Never the credential.
    pub endpoint: Arc<str>,
}

/// The profile of payments bound to a peer.
pub const PEER_PROFILE: &str = "counterfoil";

impl ProviderBinding {
    /// A binding to a peer: its name, endpoint and paying account. The account's id also identifies
    /// the peer's store and tenant, so one payment cannot run in two of them.
    pub fn to_peer(name: &PeerName, endpoint: &str, account: &str) -> ProviderBinding {
        ProviderBinding {
            profile: PEER_PROFILE.into(),
            endpoint: format!("{name}={endpoint}/{account}").into(),
        }
    }

    /// The name of the peer; `None` for a provider.
    pub fn peer(&self) -> Option<&str> {
        let name = || self.endpoint.split_once('=').map_or("", |(name, _)| name);
        (*self.profile == *PEER_PROFILE).then(name)
    }

    /// The executor's name for clients: the peer's name, or the provider's profile.
    pub fn name(&self) -> &str {
        self.peer().unwrap_or(&self.profile)
    }
}

/// The history of provider calls of the current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct History {
    /// The number of the derived key in use. Changes only after proof that calls with the previous
    /// key had no effect.
    pub generation: u16,
    /// Calls without any effect, for certain.
    pub idle_calls: u32,
    /// Set once a call may have had an effect.
    pub unknown: bool,
    /// Calls with the current key that got a server error or an unreadable answer.
    pub server_errors: u32,
    /// The earliest possible departure of a call with the current key.
    pub first_sent_at: Time,
    /// The latest possible departure of a call.
    pub last_sent_at: Time,
}

impl History {
    /// The history before the first call of a step.
    pub const fn begun(now: Time) -> History {
        History {
            generation: 1,
            idle_calls: 0,
            unknown: false,
            server_errors: 0,
            first_sent_at: now,
            last_sent_at: now,
        }
    }
}

impl Outbox {
    /// Whether `next` is a legal successor of the row. A payment keeps its provider and its saga,
    /// and within a step the generation never falls.
    pub fn may_become(&self, next: &Outbox) -> bool {
        let same_step = self.saga == next.saga;
        self.provider == next.provider
            && self.payment == next.payment
            && self.saga.flow == next.saga.flow
            && self.saga.version == next.saga.version
            && (!same_step || self.history.generation <= next.history.generation)
    }
}

/// Why a payment needs a human.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParkReason {
    /// The provider's answer names another amount, currency or payment than ours.
    AnswerDiffers,
    /// The provider no longer deduplicates and does not answer queries.
    NoEvidence,
    /// The provider executed more than once, or gave contradictory answers.
    Contradiction,
    /// The compensation of an earlier step was refused.
    CannotUndo,
}

const PARKS: [ParkReason; 4] =
    [ParkReason::AnswerDiffers, ParkReason::NoEvidence, ParkReason::Contradiction, ParkReason::CannotUndo];

impl ParkReason {
    /// The name clients and operators see.
    pub const fn name(self) -> &'static str {
        match self {
            ParkReason::AnswerDiffers => "answer_differs",
            ParkReason::NoEvidence => "no_evidence",
            ParkReason::Contradiction => "contradiction",
            ParkReason::CannotUndo => "cannot_undo",
        }
    }

    pub fn parse(name: &str) -> Option<ParkReason> {
        PARKS.into_iter().find(|park| park.name() == name)
    }
}
