//! The record of an idempotency key, as its owner sees it.

use crate::json;
use crate::time::Stamp;
use counterfoil_core::idempotency::claim::{ClaimState, Meeting, Resource as Makes};
use counterfoil_core::outbox::ParkReason;
use counterfoil_core::types::reference::{Reference, ReferenceKind, References};
use counterfoil_core::types::time::Time;
use counterfoil_engine::service::KeyView;

/// Writes the record as of `now`; `None` if the key is free.
///
/// Windows are checked at read time: a settled answer past its replay window is `expired`, even
/// before the sweeper has removed it.
pub fn write(view: &KeyView, references: &References, now: Time) -> Option<Vec<u8>> {
    let claim = &view.claim;
    let state = match claim.meet(claim.fingerprint, now) {
        Meeting::Free => return None,
        Meeting::Expired { .. } => "expired",
        // A claim always matches its own fingerprint.
        Meeting::Mismatch | Meeting::InFlight | Meeting::Pending { .. } | Meeting::Replay(_) => {
            claim.state.name()
        }
    };
    let expires_at = claim.state.settled().map(|settled| Stamp::of(settled.windows.replay_until));
    let resource = resource_of(view, references);
    let mut out = Vec::with_capacity(320);
    json::object(&mut out, |record| {
        record
            .string("object", "idempotency_key")
            .string("state", state)
            .string("created_at", Stamp::of(claim.created_at).as_str())
            .string_or_null("expires_at", expires_at.as_ref().map(Stamp::as_str));
        match &resource {
            Some((name, id)) => record.object("resource", |resource| {
                resource.string("type", name).string("id", id.as_str());
            }),
            None => record.null("resource"),
        };
        record
            .count("attempts", u64::from(claim.attempts))
            .count("fence", claim.fence)
            .boolean("safe_new_key", claim.safe_new_key())
            .string_or_null("parked", view.parked.map(ParkReason::name));
    });
    Some(out)
}

/// The type and reference of the object that the key created or changed.
fn resource_of(view: &KeyView, references: &References) -> Option<(&'static str, Reference)> {
    let claim = &view.claim;
    let (makes, subject) = (claim.makes, claim.subject.to_i64());
    let (named, kind, number) = match makes {
        // A failed charge, refund or payout is an object too. A request refused before anything was
        // created has no payment.
        Makes::Charge | Makes::Capture | Makes::Void => {
            (Makes::Charge, ReferenceKind::Charge, view.payment?.subject().to_i64())
        }
        Makes::Refund => view.payment.map(|_| (makes, ReferenceKind::Refund, subject))?,
        Makes::Payout => view.payment.map(|_| (makes, ReferenceKind::Payout, subject))?,
        // A refusal of the ledger creates nothing.
        _ if matches!(claim.state, ClaimState::FailedTerminal(_)) => return None,
        Makes::Account => (makes, ReferenceKind::Account, subject),
        Makes::Transfer => (makes, ReferenceKind::Transfer, subject),
        Makes::Transaction => (makes, ReferenceKind::Transaction, subject),
        Makes::Bulk => (makes, ReferenceKind::Bulk, subject),
        Makes::Asset | Makes::Shards | Makes::Resolution => return None,
    };
    Some((named.name(), references.seal(kind, number)))
}

/// The record of an idempotency key.
#[derive(Debug, utoipa::ToSchema)]
#[schema(as = IdempotencyKey)]
pub struct KeyRecord {
    /// `idempotency_key`
    pub object: String,
    /// `in_flight`, `failed_retry`, `uncertain`, `completed`, `failed_terminal` or `expired`.
    pub state: String,
    /// When the key was first used.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When replay of the stored answer ends; null while there is no answer, and after it was
    /// deleted.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// The object the key created; for a capture or a void, the charge. Null if nothing with an id
    /// was created.
    pub resource: Option<KeyResource>,
    /// How often execution of the request was started.
    pub attempts: u32,
    /// Grows each time a server takes over the request.
    pub fence: u64,
    /// Whether the same request can safely be retried under a new key, without executing it twice.
    pub safe_new_key: bool,
    /// Why an operator is needed, if one is: `answer_differs`, `no_evidence`, `contradiction` or
    /// `cannot_undo`.
    pub parked: Option<String>,
}

/// The object a key created.
#[derive(Debug, utoipa::ToSchema)]
#[schema(as = IdempotencyKeyResource)]
pub struct KeyResource {
    /// `charge`, `refund`, `payout`, `account`, `transfer`, `transaction` or `bulk`.
    pub r#type: String,
    /// The object's id.
    pub id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Custody, Lease, Settled};
    use counterfoil_core::idempotency::fingerprint::Fingerprint;
    use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
    use counterfoil_core::idempotency::window::Windows;
    use counterfoil_core::outbox::Payment;
    use counterfoil_core::types::digest::{Digest, MacKey};
    use counterfoil_core::types::id::{ChargeId, Holder, SubjectId, TenantId};
    use counterfoil_core::types::ulid::Ulid;

    fn at(ms: i64) -> Time {
        Time::from_ms(ms)
    }

    fn settled() -> Settled {
        Settled {
            reply: Reply { status: 201, media: ReplyMedia::Json, location: None, body: Bytes::new() },
            windows: Windows { replay_until: at(1_000), tombstone_until: at(2_000) },
        }
    }

    fn written(state: ClaimState, parked: Option<ParkReason>, now: Time) -> Option<serde_json::Value> {
        written_for(Makes::Charge, state, Some(3), parked, now)
    }

    fn written_for(
        makes: Makes,
        state: ClaimState,
        charge: Option<i64>,
        parked: Option<ParkReason>,
        now: Time,
    ) -> Option<serde_json::Value> {
        let claim = Claim {
            id: ClaimId::from_digest(Digest::from_bytes([1; 32])),
            tenant: TenantId::from_i64(1),
            fingerprint: Fingerprint::from_digest(Digest::from_bytes([2; 32])),
            subject: SubjectId::from_i64(3),
            makes,
            request: Ulid::from_bytes([4; 16]),
            created_at: at(5),
            fence: 6,
            revision: 7,
            attempts: 8,
            state,
        };
        let references = References::new(MacKey::new(&[9; 32]));
        let view =
            KeyView { claim, payment: charge.map(|id| Payment::Charge(ChargeId::from_i64(id))), parked };
        let text = write(&view, &references, now)?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    #[test]
    fn states_are_named_and_windows_checked_at_read_time() {
        let lease = Lease { holder: Holder { slot: 1, epoch: 1 }, until: at(1), ceiling: at(2) };
        let waiting = ClaimState::Uncertain(Custody::Waiting { not_before: at(9) });
        for (state, now, name, expires, safe) in [
            (ClaimState::InFlight(lease), 0, "in_flight", None, false),
            (ClaimState::FailedRetry { not_before: at(9) }, 0, "failed_retry", None, false),
            (waiting, 0, "uncertain", None, false),
            (ClaimState::Completed(settled()), 999, "completed", Some("1970-01-01T00:00:01.000Z"), false),
            (ClaimState::Completed(settled()), 1_000, "expired", Some("1970-01-01T00:00:01.000Z"), false),
            (
                ClaimState::FailedTerminal(settled()),
                0,
                "failed_terminal",
                Some("1970-01-01T00:00:01.000Z"),
                true,
            ),
            (ClaimState::Expired { tombstone_until: at(2_000) }, 1_500, "expired", None, false),
        ] {
            let record = written(state, None, at(now)).unwrap();
            assert_eq!(record["state"], name);
            assert_eq!(record["expires_at"], serde_json::json!(expires), "{name}");
            assert_eq!(record["safe_new_key"], safe, "{name}");
            assert_eq!(record["resource"]["type"], "charge");
            assert_eq!((&record["attempts"], &record["fence"]), (&8.into(), &6.into()));
        }
        let parked = written(ClaimState::InFlight(lease), Some(ParkReason::NoEvidence), at(0)).unwrap();
        assert_eq!(parked["parked"], "no_evidence");
    }

    fn resource(name: &str, kind: ReferenceKind, number: i64) -> serde_json::Value {
        let references = References::new(MacKey::new(&[9; 32]));
        serde_json::json!({"type": name, "id": references.seal(kind, number).as_str()})
    }

    #[test]
    fn ledger_objects_of_a_key_are_named_by_kind() {
        for (makes, kind) in [
            (Makes::Account, Some(ReferenceKind::Account)),
            (Makes::Asset, None),
            (Makes::Transfer, Some(ReferenceKind::Transfer)),
            (Makes::Transaction, Some(ReferenceKind::Transaction)),
            (Makes::Bulk, Some(ReferenceKind::Bulk)),
            (Makes::Shards, None),
            (Makes::Resolution, None),
        ] {
            let refused =
                written_for(makes, ClaimState::FailedTerminal(settled()), None, None, at(0)).unwrap();
            assert_eq!(refused["resource"], serde_json::Value::Null, "{makes:?}");
            let done = written_for(makes, ClaimState::Completed(settled()), None, None, at(0)).unwrap();
            let expected = kind.map(|kind| resource(makes.name(), kind, 3));
            assert_eq!(done["resource"], serde_json::json!(expected), "{makes:?}");
        }
    }

    #[test]
    fn payments_created_or_changed_by_a_key_are_named() {
        for (makes, expected) in [
            (Makes::Charge, resource("charge", ReferenceKind::Charge, 8)),
            (Makes::Capture, resource("charge", ReferenceKind::Charge, 8)),
            (Makes::Void, resource("charge", ReferenceKind::Charge, 8)),
            (Makes::Refund, resource("refund", ReferenceKind::Refund, 3)),
        ] {
            for state in [ClaimState::FailedTerminal(settled()), ClaimState::Completed(settled())] {
                let refused = written_for(makes, state.clone(), None, None, at(0)).unwrap();
                assert_eq!(refused["resource"], serde_json::Value::Null, "nothing was created: {makes:?}");
                let settled = written_for(makes, state, Some(8), None, at(0)).unwrap();
                assert_eq!(settled["resource"], expected, "{makes:?}");
            }
        }
    }

    #[test]
    fn a_key_past_its_tombstone_is_free() {
        assert_eq!(written(ClaimState::Completed(settled()), None, at(2_000)), None);
        assert_eq!(written(ClaimState::Expired { tombstone_until: at(2_000) }, None, at(2_000)), None);
    }
}
