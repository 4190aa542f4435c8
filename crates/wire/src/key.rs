//! The record of an idempotency key, as its owner sees it.

use crate::json;
use crate::time::Stamp;
use counterfoil_core::idempotency::claim::{ClaimState, Meeting, Resource as Makes};
use counterfoil_core::outbox::ParkReason;
use counterfoil_core::types::reference::{Reference, ReferenceKind, References};
use counterfoil_core::types::time::Time;
use counterfoil_engine::service::KeyView;

/// The record as of `now`, or nothing if the key is free (again).
///
/// Windows are judged here, at read time: a settled answer that is past its replay window shows as `expired`
/// whether or not the sweeper has been there.
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
    let made = made(view, references);
    let mut out = Vec::with_capacity(320);
    json::object(&mut out, |record| {
        record
            .string("object", "idempotency_key")
            .string("state", state)
            .string("created_at", Stamp::of(claim.created_at).as_str())
            .string_or_null("expires_at", expires_at.as_ref().map(Stamp::as_str));
        match &made {
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

/// The key's resource: its type and its reference, if the key made or moved anything that has one.
fn made(view: &KeyView, references: &References) -> Option<(&'static str, Reference)> {
    let claim = &view.claim;
    let (makes, subject) = (claim.makes, claim.subject.to_i64());
    let (named, kind, number) = match makes {
        // A declined charge is a charge, and so is a refund or a payout that was refused at the provider. What was
        // refused before anything was made is about no payment.
        Makes::Charge | Makes::Capture | Makes::Void => {
            (Makes::Charge, ReferenceKind::Charge, view.payment?.subject().to_i64())
        }
        Makes::Refund => view.payment.map(|_| (makes, ReferenceKind::Refund, subject))?,
        Makes::Payout => view.payment.map(|_| (makes, ReferenceKind::Payout, subject))?,
        // A refusal of the ledger is nothing.
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
pub struct Record {
    /// `idempotency_key`
    pub object: String,
    /// `in_flight`, `failed_retry`, `uncertain`, `completed`, `failed_terminal` or `expired`.
    pub state: String,
    /// When the key was first used.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Until when the stored answer is replayed; null while there is none, and again once it was dropped.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// What the key made, of a capture or a void the charge; null where that has no id, and where nothing was made.
    pub resource: Option<Resource>,
    /// How often somebody set out to execute the request.
    pub attempts: u32,
    /// Grows with every change of hands.
    pub fence: u64,
    /// Whether the same request may be tried under a new key without a risk of doing it twice.
    pub safe_new_key: bool,
    /// Why a human is needed, if one is: `answer_differs`, `no_evidence`, `contradiction` or
    /// `cannot_undo`.
    pub parked: Option<String>,
}

/// What a key made.
#[derive(Debug, utoipa::ToSchema)]
#[schema(as = IdempotencyKeyResource)]
pub struct Resource {
    /// `charge`, `refund`, `payout`, `account`, `transfer`, `transaction` or `bulk`.
    pub r#type: String,
    /// Its id.
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

    fn shown(state: ClaimState, parked: Option<ParkReason>, now: Time) -> Option<serde_json::Value> {
        shown_of(Makes::Charge, state, Some(3), parked, now)
    }

    fn shown_of(
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
    fn each_state_by_its_name_and_the_window_at_read_time() {
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
            let record = shown(state, None, at(now)).unwrap();
            assert_eq!(record["state"], name);
            assert_eq!(record["expires_at"], serde_json::json!(expires), "{name}");
            assert_eq!(record["safe_new_key"], safe, "{name}");
            assert_eq!(record["resource"]["type"], "charge");
            assert_eq!((&record["attempts"], &record["fence"]), (&8.into(), &6.into()));
        }
        let parked = shown(ClaimState::InFlight(lease), Some(ParkReason::NoEvidence), at(0)).unwrap();
        assert_eq!(parked["parked"], "no_evidence");
    }

    fn resource(name: &str, kind: ReferenceKind, number: i64) -> serde_json::Value {
        let references = References::new(MacKey::new(&[9; 32]));
        serde_json::json!({"type": name, "id": references.seal(kind, number).as_str()})
    }

    #[test]
    fn what_a_key_made_in_the_ledger_by_its_kind() {
        for (makes, kind) in [
            (Makes::Account, Some(ReferenceKind::Account)),
            (Makes::Asset, None),
            (Makes::Transfer, Some(ReferenceKind::Transfer)),
            (Makes::Transaction, Some(ReferenceKind::Transaction)),
            (Makes::Bulk, Some(ReferenceKind::Bulk)),
            (Makes::Shards, None),
            (Makes::Resolution, None),
        ] {
            let refused = shown_of(makes, ClaimState::FailedTerminal(settled()), None, None, at(0)).unwrap();
            assert_eq!(refused["resource"], serde_json::Value::Null, "{makes:?}");
            let done = shown_of(makes, ClaimState::Completed(settled()), None, None, at(0)).unwrap();
            let expected = kind.map(|kind| resource(makes.name(), kind, 3));
            assert_eq!(done["resource"], serde_json::json!(expected), "{makes:?}");
        }
    }

    #[test]
    fn what_a_key_made_or_moved_of_payments() {
        for (makes, expected) in [
            (Makes::Charge, resource("charge", ReferenceKind::Charge, 8)),
            (Makes::Capture, resource("charge", ReferenceKind::Charge, 8)),
            (Makes::Void, resource("charge", ReferenceKind::Charge, 8)),
            (Makes::Refund, resource("refund", ReferenceKind::Refund, 3)),
        ] {
            for state in [ClaimState::FailedTerminal(settled()), ClaimState::Completed(settled())] {
                let refused = shown_of(makes, state.clone(), None, None, at(0)).unwrap();
                assert_eq!(refused["resource"], serde_json::Value::Null, "nothing was made: {makes:?}");
                let made = shown_of(makes, state, Some(8), None, at(0)).unwrap();
                assert_eq!(made["resource"], expected, "{makes:?}");
            }
        }
    }

    #[test]
    fn a_key_past_its_tombstone_is_free() {
        assert_eq!(shown(ClaimState::Completed(settled()), None, at(2_000)), None);
        assert_eq!(shown(ClaimState::Expired { tombstone_until: at(2_000) }, None, at(2_000)), None);
    }
}
