//! The rows a commit touched: for each a byte for its kind, then its key; numbers big-endian, names with a length.

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::tenancy::TenantName;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{Change, RowKey};

const CLAIM: u8 = 1;
const CHARGE: u8 = 2;
const OUTBOX: u8 = 3;
const AUDIT: u8 = 4;
const TENANT: u8 = 5;
const API_KEY: u8 = 6;
const SLOT: u8 = 7;

/// To store.
pub(crate) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::with_capacity(changes.len().saturating_mul(24));
    for change in changes {
        match change.key() {
            RowKey::Claim(id) => put(&mut out, CLAIM, &[id.digest().as_bytes()]),
            RowKey::Charge(id) => put(&mut out, CHARGE, &[&id.to_i64().to_be_bytes()]),
            RowKey::Outbox(id) => put(&mut out, OUTBOX, &[&id.to_i64().to_be_bytes()]),
            RowKey::Audit(subject, id) => {
                put(&mut out, AUDIT, &[&subject.to_i64().to_be_bytes(), &id.to_bytes()]);
            }
            RowKey::Tenant(name) => {
                // A tenant's name has at most 64 bytes.
                let length = u8::try_from(name.as_str().len()).unwrap_or(u8::MAX);
                put(&mut out, TENANT, &[&[length], name.as_str().as_bytes()]);
            }
            RowKey::ApiKey(digest) => put(&mut out, API_KEY, &[digest.as_bytes()]),
            RowKey::Slot(number) => put(&mut out, SLOT, &[&number.to_be_bytes()]),
        }
    }
    out
}

/// As stored; nothing if the bytes are not what [`encode`] writes.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<RowKey>> {
    let mut keys = Vec::with_capacity(bytes.len() / 16);
    let rest = &mut bytes;
    while let Some((kind, after)) = rest.split_first() {
        *rest = after;
        keys.push(match *kind {
            CLAIM => RowKey::Claim(ClaimId::from_digest(Digest::from_bytes(take(rest)?))),
            CHARGE => RowKey::Charge(charge(rest)?),
            OUTBOX => RowKey::Outbox(charge(rest)?),
            AUDIT => RowKey::Audit(charge(rest)?, Ulid::from_bytes(take(rest)?)),
            TENANT => {
                let [length] = take(rest)?;
                let (name, after) = rest.split_at_checked(usize::from(length))?;
                *rest = after;
                RowKey::Tenant(TenantName::parse(std::str::from_utf8(name).ok()?).ok()?)
            }
            API_KEY => RowKey::ApiKey(Digest::from_bytes(take(rest)?)),
            SLOT => RowKey::Slot(u16::from_be_bytes(take(rest)?)),
            _ => return None,
        });
    }
    Some(keys)
}

fn put(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    out.push(kind);
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*head)
}

fn charge(rest: &mut &[u8]) -> Option<ChargeId> {
    Some(ChargeId::from_i64(i64::from_be_bytes(take(rest)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<RowKey> {
        vec![
            RowKey::Claim(ClaimId::from_digest(Digest::from_bytes([0xaa; 32]))),
            RowKey::Charge(ChargeId::from_i64(0x0102_0304_0506_0708)),
            RowKey::Outbox(ChargeId::from_i64(-1)),
            RowKey::Audit(ChargeId::from_i64(2), Ulid::from_bytes([0xbb; 16])),
            RowKey::Tenant(TenantName::parse("acme").unwrap()),
            RowKey::ApiKey(Digest::from_bytes([0xcc; 32])),
            RowKey::Slot(258),
        ]
    }

    fn golden() -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend([0xaa; 32]);
        bytes.extend([2, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes.extend([3, 255, 255, 255, 255, 255, 255, 255, 255]);
        bytes.extend([4, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes.extend([0xbb; 16]);
        bytes.extend(b"\x05\x04acme");
        bytes.push(6);
        bytes.extend([0xcc; 32]);
        bytes.extend([7, 1, 2]);
        bytes
    }

    #[test]
    fn golden_bytes() {
        let changes: Vec<Change> = keys().into_iter().map(|key| Change::Remove { key, expect: 1 }).collect();
        assert_eq!(encode(&changes), golden());
        assert_eq!(decode(&golden()), Some(keys()));
    }

    #[test]
    fn cut_or_unknown_bytes_are_refused() {
        let whole = golden();
        let ends: Vec<usize> = (0..whole.len()).filter(|end| decode(&whole[..*end]).is_some()).collect();
        assert_eq!(ends, [0, 33, 42, 51, 76, 82, 115], "only between two keys");
        assert_eq!(decode(&[9]), None);
    }
}
