//! Audit records: every claim, change of hands, provider attempt, answer and operator act, committed with its
//! effect. They hold no personal data by construction: kinds, numbers, and words from closed lists.

use crate::types::id::{SubjectId, TenantId};
use crate::types::time::Time;
use crate::types::ulid::Ulid;

/// The id of the first record of a decision: it sorts by time, then by the claim's new revision, so a timeline
/// reads in the order of its commits even within one millisecond. The low byte is left to siblings
/// ([`Ulid::after`]).
pub fn record_id(at: Time, revision: u64, chance: u128) -> Ulid {
    const CHANCE_BITS: u128 = (1 << 48) - 1;
    let order = u128::from(revision & 0xff_ffff) << 56;
    Ulid::new(at, order | ((chance & CHANCE_BITS) << 8))
}

/// One audited step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Sorts as time does, within a decision as written.
    pub id: Ulid,
    /// Whose it is.
    pub tenant: TenantId,
    /// What it belongs to.
    pub subject: SubjectId,
    /// When it was decided, on the store's clock.
    pub at: Time,
    /// The fence it was decided under.
    pub fence: u64,
    /// What happened.
    pub kind: AuditKind,
    /// More about it, as `name=value` words.
    pub detail: String,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKind {
    /// A key was claimed and its work enqueued.
    Claimed,
    /// Another attempt began under a higher fence.
    TakenOver,
    /// The provider answered, or did not.
    ProviderAnswered,
    /// The provider was asked what it knows.
    ProviderQueried,
    /// The outcome is not known yet, or the attempt is put off.
    Pending,
    /// The answer was stored.
    Settled,
    /// A human is needed.
    Parked,
    /// An account or asset was made.
    Opened,
    /// A transaction was written.
    Posted,
    /// A request was refused for good.
    Refused,
    /// A human settled what was parked.
    Resolved,
}

const KINDS: [AuditKind; 11] = [
    AuditKind::Claimed,
    AuditKind::TakenOver,
    AuditKind::ProviderAnswered,
    AuditKind::ProviderQueried,
    AuditKind::Pending,
    AuditKind::Settled,
    AuditKind::Parked,
    AuditKind::Opened,
    AuditKind::Posted,
    AuditKind::Refused,
    AuditKind::Resolved,
];

impl AuditKind {
    /// The word clients and operators see.
    pub const fn name(self) -> &'static str {
        match self {
            AuditKind::Claimed => "claimed",
            AuditKind::TakenOver => "taken_over",
            AuditKind::ProviderAnswered => "provider_answered",
            AuditKind::ProviderQueried => "provider_queried",
            AuditKind::Pending => "pending",
            AuditKind::Settled => "settled",
            AuditKind::Parked => "parked",
            AuditKind::Opened => "opened",
            AuditKind::Posted => "posted",
            AuditKind::Refused => "refused",
            AuditKind::Resolved => "resolved",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<AuditKind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_millisecond_sort_by_revision_and_siblings_stay_between() {
        let at = Time::from_ms(5);
        let first = record_id(at, 1, u128::MAX);
        let second = record_id(at, 2, 0);
        assert!(first < first.after(9) && first.after(9) < second);
        assert!(second < record_id(Time::from_ms(6), 1, 0));
    }

    /// Time, 24 bits of revision, 48 of chance, 8 for siblings.
    #[test]
    fn golden_record_id() {
        let id = record_id(Time::from_ms(5), 0x0100_0003, 0xffff_0123_4567_89ab);
        assert_eq!(id.to_bytes(), [0, 0, 0, 0, 0, 5, 0, 0, 3, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0]);
    }

    #[test]
    fn golden_kinds() {
        let words = [
            "claimed",
            "taken_over",
            "provider_answered",
            "provider_queried",
            "pending",
            "settled",
            "parked",
            "opened",
            "posted",
            "refused",
            "resolved",
        ];
        for (kind, word) in KINDS.into_iter().zip(words) {
            assert_eq!((kind.name(), AuditKind::parse(word)), (word, Some(kind)));
        }
        assert_eq!(AuditKind::parse("xyzzy"), None);
    }
}
