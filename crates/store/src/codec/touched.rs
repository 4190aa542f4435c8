//! The keys of the rows that a commit touched. Each key is a kind byte and the key's fields:
//! big-endian numbers, and names with a length byte in front. A tenant entry precedes the first key
//! of a tenant and every change of tenant.

use crate::port::Position;
use crate::row::RowKey;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::account::AccountCode;
use counterfoil_core::ledger::snapshot::FeedReader;
use counterfoil_core::tenancy::TenantName;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::ulid::Ulid;

const CLAIM: u8 = 1;
const CHARGE: u8 = 2;
const OUTBOX: u8 = 3;
const AUDIT: u8 = 4;
const TENANT: u8 = 5;
const API_KEY: u8 = 6;
const SLOT: u8 = 7;
const ACCOUNT: u8 = 8;
const NAME: u8 = 9;
const ASSET: u8 = 10;
const BALANCE: u8 = 11;
const TRANSACTION: u8 = 12;
const REVERSAL: u8 = 13;
const HOLD: u8 = 14;
const SNAPSHOT: u8 = 15;
const CURSOR: u8 = 16;
const OPERATION: u8 = 17;
const PAYOUT: u8 = 18;
/// The tenant of the keys that follow.
const OWNER: u8 = 19;

/// Encodes a commit's keys.
pub fn encode(keys: impl ExactSizeIterator<Item = RowKey>) -> Vec<u8> {
    let mut out = Vec::with_capacity(keys.len().saturating_mul(24));
    let mut current = None;
    for key in keys {
        let owner = separate_owner(&key);
        if let Some(tenant) = owner.filter(|_| owner != current) {
            put(&mut out, OWNER, &[&number(tenant.to_i64())]);
            current = owner;
        }
        match key {
            RowKey::Claim(_, id) => put(&mut out, CLAIM, &[id.digest().as_bytes()]),
            RowKey::Charge(_, id) => put(&mut out, CHARGE, &[&number(id.to_i64())]),
            RowKey::Outbox(_, id) => put(&mut out, OUTBOX, &[&number(id.to_i64())]),
            RowKey::Audit(_, subject, id) => {
                put(&mut out, AUDIT, &[&number(subject.to_i64()), &id.to_bytes()]);
            }
            RowKey::Tenant(name) => put_named(&mut out, TENANT, &[], name.as_str()),
            RowKey::ApiKey(digest) => put(&mut out, API_KEY, &[digest.as_bytes()]),
            RowKey::Slot(slot) => put(&mut out, SLOT, &[&slot.to_be_bytes()]),
            RowKey::Account(_, id) => put(&mut out, ACCOUNT, &[&number(id.to_i64())]),
            RowKey::Name(tenant, code) => put_named(&mut out, NAME, &number(tenant.to_i64()), code.as_str()),
            RowKey::Asset(tenant, asset) => {
                put_named(&mut out, ASSET, &number(tenant.to_i64()), asset.code());
            }
            RowKey::Balance(_, account, shard) => {
                put(&mut out, BALANCE, &[&number(account.to_i64()), &[shard]]);
            }
            RowKey::Transaction(_, id) => put(&mut out, TRANSACTION, &[&number(id.to_i64())]),
            RowKey::Reversal(_, original) => put(&mut out, REVERSAL, &[&number(original.to_i64())]),
            RowKey::Hold(_, id) => put(&mut out, HOLD, &[&number(id.to_i64())]),
            RowKey::Snapshot(_, account, position) => {
                put(&mut out, SNAPSHOT, &[&number(account.to_i64()), &position.0.to_be_bytes()]);
            }
            RowKey::Cursor(reader) => put_named(&mut out, CURSOR, &[], reader.name()),
            RowKey::Operation(_, id) => put(&mut out, OPERATION, &[&number(id.to_i64())]),
            RowKey::Payout(_, id) => put(&mut out, PAYOUT, &[&number(id.to_i64())]),
        }
    }
    out
}

/// The tenant of a key, unless the key's own encoding contains the tenant.
fn separate_owner(key: &RowKey) -> Option<TenantId> {
    match key {
        RowKey::Name(..) | RowKey::Asset(..) => None,
        _ => key.tenant(),
    }
}

/// Decodes a commit's keys; `None` if [`encode`] cannot have written the bytes.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<RowKey>> {
    let mut keys = Vec::with_capacity(bytes.len() / 16);
    let rest = &mut bytes;
    let mut owner: Option<TenantId> = None;
    while let Some((kind, after)) = rest.split_first() {
        *rest = after;
        if *kind == OWNER {
            owner = Some(TenantId::from_i64(take_number(rest)?));
            continue;
        }
        keys.push(match *kind {
            CLAIM => RowKey::Claim(owner?, ClaimId::from_digest(Digest::from_bytes(take(rest)?))),
            CHARGE => RowKey::Charge(owner?, ChargeId::from_i64(take_number(rest)?)),
            OUTBOX => RowKey::Outbox(owner?, SubjectId::from_i64(take_number(rest)?)),
            AUDIT => {
                RowKey::Audit(owner?, SubjectId::from_i64(take_number(rest)?), Ulid::from_bytes(take(rest)?))
            }
            TENANT => RowKey::Tenant(TenantName::parse(take_name(rest)?).ok()?),
            API_KEY => RowKey::ApiKey(Digest::from_bytes(take(rest)?)),
            SLOT => RowKey::Slot(u16::from_be_bytes(take(rest)?)),
            ACCOUNT => RowKey::Account(owner?, AccountId::from_i64(take_number(rest)?)),
            NAME => {
                let tenant = TenantId::from_i64(take_number(rest)?);
                RowKey::Name(tenant, AccountCode::parse(take_name(rest)?).ok()?)
            }
            ASSET => {
                let tenant = TenantId::from_i64(take_number(rest)?);
                RowKey::Asset(tenant, Asset::parse(take_name(rest)?).ok()?)
            }
            BALANCE => {
                let account = AccountId::from_i64(take_number(rest)?);
                let [shard] = take(rest)?;
                RowKey::Balance(owner?, account, shard)
            }
            TRANSACTION => RowKey::Transaction(owner?, TransactionId::from_i64(take_number(rest)?)),
            REVERSAL => RowKey::Reversal(owner?, TransactionId::from_i64(take_number(rest)?)),
            HOLD => RowKey::Hold(owner?, HoldId::from_i64(take_number(rest)?)),
            SNAPSHOT => {
                let account = AccountId::from_i64(take_number(rest)?);
                RowKey::Snapshot(owner?, account, Position(u64::from_be_bytes(take(rest)?)))
            }
            CURSOR => RowKey::Cursor(FeedReader::parse(take_name(rest)?)?),
            OPERATION => RowKey::Operation(owner?, OperationId::from_i64(take_number(rest)?)),
            PAYOUT => RowKey::Payout(owner?, PayoutId::from_i64(take_number(rest)?)),
            _ => return None,
        });
    }
    Some(keys)
}

const fn number(number: i64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Names have at most 64 bytes, so their length always fits the byte.
fn put_named(out: &mut Vec<u8>, kind: u8, before: &[u8], name: &str) {
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    put(out, kind, &[before, &[length], name.as_bytes()]);
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

fn take_number(rest: &mut &[u8]) -> Option<i64> {
    take(rest).map(i64::from_be_bytes)
}

fn take_name<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let [length] = take(rest)?;
    let (name, after) = rest.split_at_checked(usize::from(length))?;
    *rest = after;
    std::str::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: TenantId = TenantId::from_i64(0x21);

    /// One key of every kind. The tenants of the name and of the asset are part of their keys.
    fn keys() -> Vec<RowKey> {
        vec![
            RowKey::Claim(OWN, ClaimId::from_digest(Digest::from_bytes([0xaa; 32]))),
            RowKey::Charge(OWN, ChargeId::from_i64(0x0102_0304_0506_0708)),
            RowKey::Outbox(OWN, SubjectId::from_i64(-1)),
            RowKey::Audit(OWN, SubjectId::from_i64(2), Ulid::from_bytes([0xbb; 16])),
            RowKey::Tenant(TenantName::parse("acme").unwrap()),
            RowKey::ApiKey(Digest::from_bytes([0xcc; 32])),
            RowKey::Slot(258),
            RowKey::Account(OWN, AccountId::from_i64(3)),
            RowKey::Name(TenantId::from_i64(4), AccountCode::parse("chart:fees:EUR").unwrap()),
            RowKey::Asset(TenantId::from_i64(5), Asset::parse("CO2_GRAMS").unwrap()),
            RowKey::Balance(OWN, AccountId::from_i64(6), 255),
            RowKey::Transaction(OWN, TransactionId::from_i64(7)),
            RowKey::Reversal(OWN, TransactionId::from_i64(8)),
            RowKey::Hold(OWN, HoldId::from_i64(9)),
            RowKey::Snapshot(OWN, AccountId::from_i64(10), Position(0x0102)),
            RowKey::Cursor(FeedReader::Projection),
            RowKey::Operation(OWN, OperationId::from_i64(11)),
            RowKey::Payout(OWN, PayoutId::from_i64(12)),
        ]
    }

    fn golden() -> Vec<u8> {
        let mut bytes = vec![19, 0, 0, 0, 0, 0, 0, 0, 0x21, 1];
        bytes.extend([0xaa; 32]);
        bytes.extend([2, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes.extend([3, 255, 255, 255, 255, 255, 255, 255, 255]);
        bytes.extend([4, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes.extend([0xbb; 16]);
        bytes.extend(b"\x05\x04acme");
        bytes.push(6);
        bytes.extend([0xcc; 32]);
        bytes.extend([7, 1, 2]);
        bytes.extend([8, 0, 0, 0, 0, 0, 0, 0, 3]);
        bytes.extend(b"\x09\0\0\0\0\0\0\0\x04\x0echart:fees:EUR");
        bytes.extend(b"\x0a\0\0\0\0\0\0\0\x05\x09CO2_GRAMS");
        bytes.extend([11, 0, 0, 0, 0, 0, 0, 0, 6, 255]);
        bytes.extend([12, 0, 0, 0, 0, 0, 0, 0, 7]);
        bytes.extend([13, 0, 0, 0, 0, 0, 0, 0, 8]);
        bytes.extend([14, 0, 0, 0, 0, 0, 0, 0, 9]);
        bytes.extend([15, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 1, 2]);
        bytes.extend(b"\x10\x0aprojection");
        bytes.extend([17, 0, 0, 0, 0, 0, 0, 0, 11]);
        bytes.extend([18, 0, 0, 0, 0, 0, 0, 0, 12]);
        bytes
    }

    #[test]
    fn golden_bytes_where_the_tenant_changes() {
        let (first, second) = (TenantId::from_i64(0x21), TenantId::from_i64(0x22));
        let charge = |tenant| RowKey::Charge(tenant, ChargeId::from_i64(7));
        let keys = vec![
            RowKey::Slot(258),
            charge(first),
            RowKey::Outbox(first, SubjectId::from_i64(7)),
            RowKey::Asset(second, Asset::parse("CO2_GRAMS").unwrap()),
            RowKey::Hold(first, HoldId::from_i64(7)),
            charge(second),
        ];
        let mut bytes = vec![7, 1, 2];
        bytes.extend([19, 0, 0, 0, 0, 0, 0, 0, 0x21]);
        bytes.extend([2, 0, 0, 0, 0, 0, 0, 0, 7, 3, 0, 0, 0, 0, 0, 0, 0, 7]);
        bytes.extend(b"\x0a\0\0\0\0\0\0\0\x22\x09CO2_GRAMS");
        bytes.extend([14, 0, 0, 0, 0, 0, 0, 0, 7]);
        bytes.extend([19, 0, 0, 0, 0, 0, 0, 0, 0x22]);
        bytes.extend([2, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(encode(keys.clone().into_iter()), bytes);
        assert_eq!(decode(&bytes), Some(keys));
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(encode(keys().into_iter()), golden());
        assert_eq!(decode(&golden()), Some(keys()));
    }

    #[test]
    fn cut_or_unknown_bytes_are_refused() {
        let whole = golden();
        let ends: Vec<usize> = (0..whole.len()).filter(|end| decode(&whole[..*end]).is_some()).collect();
        let between = [0, 9, 42, 51, 60, 85, 91, 124, 127, 136, 160, 179, 189, 198, 207, 216, 233, 245, 254];
        assert_eq!(ends, between, "only between two keys");
        assert_eq!(decode(&[19]), None);
        assert_eq!(decode(&[20]), None);
    }

    #[test]
    fn a_key_without_its_tenant_is_refused() {
        assert_eq!(decode(&[2, 0, 0, 0, 0, 0, 0, 0, 7]), None);
        assert_eq!(decode(&[7, 1, 2]), Some(vec![RowKey::Slot(258)]), "slots belong to no tenant");
    }
}
