//! The audited steps of a charge, a payout or a transfer, as clients see them.

use crate::json;
use crate::time::Stamp;
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::types::ulid::Ulid;
use std::collections::BTreeMap;

pub fn write(out: &mut Vec<u8>, record: &AuditRecord) {
    json::object(out, |entry| {
        entry
            .string("id", &record.id.to_string())
            .string("object", "timeline_entry")
            .string("at", Stamp::of(record.at).as_str())
            .string("kind", record.kind.name())
            .count("fence", record.fence)
            .object("detail", |detail| {
                for word in record.detail.split_ascii_whitespace() {
                    let (name, value) = word.split_once('=').unwrap_or((word, ""));
                    detail.string(name, value);
                }
            });
    });
}

/// Parses the id of an entry, for paging; `None` if the text is no ULID.
pub fn read_id(text: &str) -> Option<Ulid> {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    if text.len() != 26 {
        return None;
    }
    let word = text.bytes().try_fold(0_u128, |word, byte| {
        let digit = ALPHABET.iter().position(|known| *known == byte)?;
        word.checked_mul(32)?.checked_add(u128::try_from(digit).ok()?)
    })?;
    Some(Ulid::from_bytes(word.to_be_bytes()))
}

/// An audited step.
#[derive(Debug, utoipa::ToSchema)]
pub struct TimelineEntry {
    /// Ids sort by time.
    pub id: String,
    /// `timeline_entry`
    pub object: String,
    /// When the step was decided.
    #[schema(format = DateTime)]
    pub at: String,
    /// The kind of step: `claimed`, `taken_over`, `provider_answered`, `provider_queried`,
    /// `pending`, `settled`, `parked`, `resolved`, `opened`, `posted` or `refused`.
    pub kind: String,
    /// The fence under which the step was decided; the fence grows with every takeover.
    pub fence: u64,
    /// Details of the step.
    pub detail: BTreeMap<String, String>,
}

/// The audited steps of a charge, a payout or a transfer, in order.
#[derive(Debug, utoipa::ToSchema)]
pub struct Timeline {
    /// `list`
    pub object: String,
    /// The entries on the page.
    pub data: Vec<TimelineEntry>,
    /// Whether more entries follow.
    pub has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::audit::AuditKind;
    use counterfoil_core::types::id::{SubjectId, TenantId};
    use counterfoil_core::types::time::Time;
    use proptest::prelude::*;

    #[test]
    fn golden_entry() {
        let record = AuditRecord {
            id: Ulid::from_bytes([0; 16]),
            tenant: TenantId::from_i64(1),
            subject: SubjectId::from_i64(2),
            at: Time::EPOCH,
            fence: 3,
            kind: AuditKind::Claimed,
            detail: "request=req_1 reused=false".to_owned(),
        };
        let mut out = Vec::new();
        write(&mut out, &record);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"id":"00000000000000000000000000","object":"timeline_entry","at":"1970-01-01T00:00:00.000Z","kind":"claimed","fence":3,"detail":{"request":"req_1","reused":"false"}}"#
        );
    }

    #[test]
    fn invalid_ids_are_refused() {
        for text in ["", "0", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "0000000000000000000000000U", &"é".repeat(13)] {
            assert_eq!(read_id(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ids_round_trip(bytes: [u8; 16]) {
            let id = Ulid::from_bytes(bytes);
            prop_assert_eq!(read_id(&id.to_string()), Some(id));
        }
    }
}
