//! The encoding of a settled claim, for caches of answers outside the store. The claim's id is the
//! cache key and is not encoded.
//!
//! Layout: form byte; tenant, subject, fingerprint, request, creation time, fence, revision,
//! attempts; state byte; the two windows, status; resource name, media name, a byte for the
//! presence of a location, location, body. The last parts are length-prefixed. Numbers are
//! big-endian.

use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;

/// Version of the layout. Bytes of another version are not decoded.
const FORM: u8 = 1;
const COMPLETED: u8 = 1;
const FAILED_TERMINAL: u8 = 2;

/// Encodes a claim; `None` if the claim is not settled.
pub fn encode(claim: &Claim) -> Option<Vec<u8>> {
    let (state, settled) = match &claim.state {
        ClaimState::Completed(settled) => (COMPLETED, settled),
        ClaimState::FailedTerminal(settled) => (FAILED_TERMINAL, settled),
        ClaimState::InFlight(_)
        | ClaimState::FailedRetry { .. }
        | ClaimState::Uncertain(_)
        | ClaimState::Expired { .. } => {
            return None;
        }
    };
    let Settled { reply, windows } = settled;
    let mut out = Vec::with_capacity(reply.body.len().saturating_add(256));
    out.push(FORM);
    out.extend_from_slice(&claim.tenant.to_i64().to_be_bytes());
    out.extend_from_slice(&claim.subject.to_i64().to_be_bytes());
    out.extend_from_slice(claim.fingerprint.digest().as_bytes());
    out.extend_from_slice(&claim.request.to_bytes());
    out.extend_from_slice(&claim.created_at.ms().to_be_bytes());
    out.extend_from_slice(&claim.fence.to_be_bytes());
    out.extend_from_slice(&claim.revision.to_be_bytes());
    out.extend_from_slice(&claim.attempts.to_be_bytes());
    out.push(state);
    out.extend_from_slice(&windows.replay_until.ms().to_be_bytes());
    out.extend_from_slice(&windows.tombstone_until.ms().to_be_bytes());
    out.extend_from_slice(&reply.status.to_be_bytes());
    put(&mut out, claim.makes.name().as_bytes())?;
    put(&mut out, reply.media.name().as_bytes())?;
    out.push(u8::from(reply.location.is_some()));
    if let Some(location) = &reply.location {
        put(&mut out, location.as_bytes())?;
    }
    put(&mut out, &reply.body)?;
    Some(out)
}

/// Decodes the claim `id`; `None` if [`encode`] cannot have written the bytes.
pub fn decode(id: ClaimId, mut bytes: &[u8]) -> Option<Claim> {
    let rest = &mut bytes;
    let [FORM] = take(rest)? else { return None };
    let tenant = TenantId::from_i64(i64::from_be_bytes(take(rest)?));
    let subject = SubjectId::from_i64(i64::from_be_bytes(take(rest)?));
    let fingerprint = Fingerprint::from_digest(Digest::from_bytes(take(rest)?));
    let request = Ulid::from_bytes(take(rest)?);
    let created_at = take_time(rest)?;
    let fence = u64::from_be_bytes(take(rest)?);
    let revision = u64::from_be_bytes(take(rest)?);
    let attempts = u32::from_be_bytes(take(rest)?);
    let [state] = take(rest)?;
    let windows = Windows { replay_until: take_time(rest)?, tombstone_until: take_time(rest)? };
    let status = u16::from_be_bytes(take(rest)?);
    let makes = Resource::parse(take_text(rest)?)?;
    let media = ReplyMedia::parse(take_text(rest)?)?;
    let location = match take(rest)? {
        [0] => None,
        [1] => Some(take_text(rest)?.into()),
        _ => return None,
    };
    let body = take_part(rest)?.to_vec().into();
    let settled = Settled { reply: Reply { status, media, location, body }, windows };
    let state = match state {
        COMPLETED => ClaimState::Completed(settled),
        FAILED_TERMINAL => ClaimState::FailedTerminal(settled),
        _ => return None,
    };
    let claim = Claim {
        id,
        tenant,
        fingerprint,
        subject,
        makes,
        request,
        created_at,
        fence,
        revision,
        attempts,
        state,
    };
    rest.is_empty().then_some(claim)
}

/// Appends a length and the part; `None` if the length does not fit, which no stored answer
/// reaches.
fn put(out: &mut Vec<u8>, part: &[u8]) -> Option<()> {
    out.extend_from_slice(&u32::try_from(part.len()).ok()?.to_be_bytes());
    out.extend_from_slice(part);
    Some(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*head)
}

fn take_time(rest: &mut &[u8]) -> Option<Time> {
    take(rest).map(i64::from_be_bytes).map(Time::from_ms)
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(take(rest)?);
    let (part, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = after;
    Some(part)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_part(rest)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{fixtures, variants};

    fn claim() -> Claim {
        let settled = Settled {
            reply: Reply {
                status: 201,
                media: ReplyMedia::Json,
                location: Some("/v1/x".into()),
                body: b"{}".to_vec().into(),
            },
            windows: Windows { replay_until: Time::from_ms(5), tombstone_until: Time::from_ms(6) },
        };
        Claim {
            id: ClaimId::from_digest(Digest::from_bytes([0xaa; 32])),
            tenant: TenantId::from_i64(1),
            fingerprint: Fingerprint::from_digest(Digest::from_bytes([0xbb; 32])),
            subject: SubjectId::from_i64(2),
            makes: Resource::Charge,
            request: Ulid::from_bytes([0xcc; 16]),
            created_at: Time::from_ms(3),
            fence: 4,
            revision: 7,
            attempts: 8,
            state: ClaimState::Completed(settled),
        }
    }

    fn golden() -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend(b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02");
        bytes.extend([0xbb; 32]);
        bytes.extend([0xcc; 16]);
        bytes.extend(b"\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x07\0\0\0\x08");
        bytes.extend(b"\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\xc9");
        bytes.extend(b"\0\0\0\x06charge\0\0\0\x04json\x01\0\0\0\x05/v1/x\0\0\0\x02{}");
        bytes
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(encode(&claim()), Some(golden()));
        assert_eq!(decode(claim().id, &golden()), Some(claim()));
    }

    #[test]
    fn cut_lengthened_or_unknown_bytes_are_refused() {
        for end in 0..golden().len() {
            assert_eq!(decode(claim().id, &golden()[..end]), None, "cut at {end}");
        }
        let longer: Vec<u8> = golden().into_iter().chain([0]).collect();
        assert_eq!(decode(claim().id, &longer), None);
        let mut other_form = golden();
        other_form[0] = 2;
        assert_eq!(decode(claim().id, &other_form), None);
        let mut other_state = golden();
        let state = 1 + 8 + 8 + 32 + 16 + 8 + 8 + 8 + 4;
        assert_eq!(other_state[state], COMPLETED);
        other_state[state] = 3;
        assert_eq!(decode(claim().id, &other_state), None);
    }

    #[test]
    fn every_settled_claim_survives_and_no_other_is_kept() {
        let (settled, unsettled): (Vec<_>, Vec<_>) =
            variants::claims().into_iter().partition(|claim| claim.state.settled().is_some());
        assert!(settled.len() >= 4 && unsettled.len() >= 4, "{} {}", settled.len(), unsettled.len());
        for claim in settled {
            let bytes = encode(&claim).unwrap();
            assert_eq!(decode(claim.id, &bytes), Some(claim));
        }
        for claim in unsettled {
            assert_eq!(encode(&claim), None);
        }
        assert_eq!(encode(&fixtures::claim(1)), None);
    }
}
