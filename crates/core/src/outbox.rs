//! The outbox row: what is still to be done for a payment, pinned to its provider, and what is known of the
//! attempts so far. It is written with the claim and removed with the answer, so work cannot be forgotten.

use crate::idempotency::claim::ClaimId;
use crate::saga::progress::SagaProgress;
use crate::types::id::{ChargeId, HoldId, PayoutId, SubjectId, TenantId};
use crate::types::peer::PeerName;
use crate::types::reference::{Reference, ReferenceKind, References};
use crate::types::time::Time;
use std::sync::Arc;

/// Work to be done for one payment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// What its claim makes: the payment itself, or an operation on it.
    pub id: SubjectId,
    /// The payment it is for.
    pub payment: Payment,
    /// Which saga it is, and how far it has come.
    pub saga: Saga,
    /// The money that is reserved for it in the ledger.
    pub hold: Option<HoldId>,
    /// The claim whose fence guards it.
    pub claim: ClaimId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The provider and endpoint this payment is bound to for life.
    pub provider: ProviderBinding,
    /// When somebody should look at it: the end of the lease, or the next attempt.
    pub due_at: Time,
    /// When the work was first enqueued.
    pub created_at: Time,
    /// What is known of the attempts so far.
    pub history: History,
    /// Set when only a human can go on.
    pub parked: Option<ParkReason>,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// A payment: what a history belongs to, and what a provider knows by our reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payment {
    /// A charge.
    Charge(ChargeId),
    /// A payout.
    Payout(PayoutId),
}

impl Payment {
    /// What its history hangs on.
    pub fn subject(self) -> SubjectId {
        match self {
            Payment::Charge(charge) => charge.into(),
            Payment::Payout(payout) => payout.into(),
        }
    }

    /// What clients and the provider call it.
    pub fn reference(self, references: &References) -> Reference {
        let kind = match self {
            Payment::Charge(_) => ReferenceKind::Charge,
            Payment::Payout(_) => ReferenceKind::Payout,
        };
        references.seal(kind, self.subject().to_i64())
    }

    /// The payment of that reference; nothing if this instance never made it.
    pub fn open(references: &References, text: &str) -> Option<Payment> {
        let charge =
            references.open(ReferenceKind::Charge, text).map(|id| Payment::Charge(ChargeId::from_i64(id)));
        charge.or_else(|| {
            references.open(ReferenceKind::Payout, text).map(|id| Payment::Payout(PayoutId::from_i64(id)))
        })
    }
}

/// A saga under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saga {
    /// Which.
    pub flow: Flow,
    /// Under which of its definitions it began, and ends.
    pub version: u16,
    /// The step that is next.
    pub progress: SagaProgress,
}

/// What a payment can go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// Charged at once.
    Charge,
    /// Held for a later capture.
    Authorize,
    /// Charged in part to a wallet, in part to a card.
    Split,
    /// What is held is captured, whole or in part.
    Capture,
    /// What is held is given up.
    Void,
    /// What was captured is given back, whole or in part.
    Refund,
    /// What an account holds is paid to a bank account.
    Payout,
}

/// Every flow.
pub const FLOWS: [Flow; 7] =
    [Flow::Charge, Flow::Authorize, Flow::Split, Flow::Capture, Flow::Void, Flow::Refund, Flow::Payout];

impl Flow {
    /// The word in stores, timelines and dead letters.
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

    /// The flow of that name.
    pub fn parse(name: &str) -> Option<Flow> {
        FLOWS.into_iter().find(|flow| flow.name() == name)
    }
}

/// The provider a payment is bound to: some do not deduplicate across their endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProviderBinding {
    /// The profile's name.
    pub profile: Arc<str>,
    /// Scheme, host and port, or a peer's name and place; never the credential.
    pub endpoint: Arc<str>,
}

/// The profile of payments that are bound to a peer.
pub const PEER_PROFILE: &str = "counterfoil";

impl ProviderBinding {
    /// Bound to a peer: under its name, at its endpoint, by the account there that the money comes from. The account's id
    /// names the peer's store and tenant as well, so that nothing can be done twice in two of them.
    pub fn to_peer(name: &PeerName, endpoint: &str, account: &str) -> ProviderBinding {
        ProviderBinding {
            profile: PEER_PROFILE.into(),
            endpoint: format!("{name}={endpoint}/{account}").into(),
        }
    }

    /// The name of the peer a payment is bound to; nothing if it is bound to a provider.
    pub fn peer(&self) -> Option<&str> {
        let name = || self.endpoint.split_once('=').map_or("", |(name, _)| name);
        (*self.profile == *PEER_PROFILE).then(name)
    }

    /// Who executes it, as clients know them: the peer by its name, a provider by its profile.
    pub fn name(&self) -> &str {
        self.peer().unwrap_or(&self.profile)
    }
}

/// What is known of the calls made so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct History {
    /// Which derived key is in use; it changes only after proof that the one before it had no effect.
    pub generation: u16,
    /// Calls that were made and certainly had no effect.
    pub idle_calls: u32,
    /// Some call may have had an effect.
    pub unknown: bool,
    /// Calls under the current key that the provider answered with a server error, or with nothing we understand.
    pub server_errors: u32,
    /// Before this instant nothing was sent under the current key.
    pub first_sent_at: Time,
    /// After this instant nothing was sent.
    pub last_sent_at: Time,
}

impl History {
    /// Before the first call of a step.
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
    /// Whether `next` may stand where this row stands: a payment keeps its provider and its saga, and a key that was
    /// given up for a step does not come back.
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
    /// The provider neither deduplicates any longer nor answers queries.
    NoEvidence,
    /// The provider executed more than once, or its answers contradict each other.
    Contradiction,
    /// What should have undone an earlier step was refused.
    CannotUndo,
}

const PARKS: [ParkReason; 4] =
    [ParkReason::AnswerDiffers, ParkReason::NoEvidence, ParkReason::Contradiction, ParkReason::CannotUndo];

impl ParkReason {
    /// The word clients and operators see.
    pub const fn name(self) -> &'static str {
        match self {
            ParkReason::AnswerDiffers => "answer_differs",
            ParkReason::NoEvidence => "no_evidence",
            ParkReason::Contradiction => "contradiction",
            ParkReason::CannotUndo => "cannot_undo",
        }
    }

    /// The park of that name.
    pub fn parse(name: &str) -> Option<ParkReason> {
        PARKS.into_iter().find(|park| park.name() == name)
    }
}
