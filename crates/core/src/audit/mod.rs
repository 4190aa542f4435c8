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
pub struct Record {
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
    pub kind: Kind,
    /// More about it, as `name=value` words.
    pub detail: String,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

const KINDS: [Kind; 11] = [
    Kind::Claimed,
    Kind::TakenOver,
    Kind::ProviderAnswered,
    Kind::ProviderQueried,
    Kind::Pending,
    Kind::Settled,
    Kind::Parked,
    Kind::Opened,
    Kind::Posted,
    Kind::Refused,
    Kind::Resolved,
];

impl Kind {
    /// The word clients and operators see.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Claimed => "claimed",
            Kind::TakenOver => "taken_over",
            Kind::ProviderAnswered => "provider_answered",
            Kind::ProviderQueried => "provider_queried",
            Kind::Pending => "pending",
            Kind::Settled => "settled",
            Kind::Parked => "parked",
            Kind::Opened => "opened",
            Kind::Posted => "posted",
            Kind::Refused => "refused",
            Kind::Resolved => "resolved",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Kind> {
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
            assert_eq!((kind.name(), Kind::parse(word)), (word, Some(kind)));
        }
        assert_eq!(Kind::parse("xyzzy"), None);
    }
}
