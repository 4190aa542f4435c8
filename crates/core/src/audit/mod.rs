//! Audit records: every claim, takeover, provider attempt, answer and operator action, committed
//! with its effect. Records contain only kinds, numbers and names from closed lists, so they hold
//! no personal data.

use crate::types::id::{SubjectId, TenantId};
use crate::types::time::Time;
use crate::types::ulid::Ulid;

/// The id of the first record of a decision. Ids sort by time and then by the claim's new revision,
/// so a timeline keeps the order of commits within one millisecond. The low byte numbers further
/// records of the decision ([`Ulid::after`]).
pub fn record_id(at: Time, revision: u64, chance: u128) -> Ulid {
    const CHANCE_BITS: u128 = (1 << 48) - 1;
    let order = u128::from(revision & 0xff_ffff) << 56;
    Ulid::new(at, order | ((chance & CHANCE_BITS) << 8))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Sorts by time, and within a decision by the order of writing.
    pub id: Ulid,
    pub tenant: TenantId,
    /// The owner of the timeline.
    pub subject: SubjectId,
    /// The time of the decision, on the store's clock.
    pub at: Time,
    /// The fence of the decision.
    pub fence: u64,
    pub kind: AuditKind,
    /// Details as `name=value` pairs.
    pub detail: String,
}

/// The kinds of audit records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKind {
    /// A key was claimed and its work enqueued.
    Claimed,
    /// A new attempt began under a higher fence.
    TakenOver,
    /// The provider answered, or the call had no answer.
    ProviderAnswered,
    /// The provider was queried.
    ProviderQueried,
    /// The outcome is not known yet, or the attempt is put off.
    Pending,
    /// The answer was stored.
    Settled,
    /// Only a human can continue.
    Parked,
    /// An account or asset was created.
    Opened,
    /// A transaction was written.
    Posted,
    /// A request was refused for good.
    Refused,
    /// A human resolved parked work.
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
    /// The name clients and operators see.
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

    pub fn parse(name: &str) -> Option<AuditKind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_millisecond_sort_by_revision_and_then_by_number() {
        let at = Time::from_ms(5);
        let first = record_id(at, 1, u128::MAX);
        let second = record_id(at, 2, 0);
        assert!(first < first.after(9) && first.after(9) < second);
        assert!(second < record_id(Time::from_ms(6), 1, 0));
    }

    /// Time, 24 bits of revision, 48 random bits, 8 bits for further records.
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
