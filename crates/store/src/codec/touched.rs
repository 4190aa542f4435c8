//! The rows a commit touched: for each a byte for its kind, then its key; numbers big-endian, names with a length. Where
//! the tenant changes, it comes first, under a kind of its own. Commits from before that do not tell it.

use crate::port::Position;
use crate::row::{RowKey, UNTOLD};
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
/// Whose the keys that follow are.
const OF: u8 = 19;

/// To store.
pub fn encode(keys: impl ExactSizeIterator<Item = RowKey>) -> Vec<u8> {
    let mut out = Vec::with_capacity(keys.len().saturating_mul(24));
    let mut of = UNTOLD;
    for key in keys {
        if let Some(tenant) = told(&key).filter(|tenant| *tenant != of) {
            put(&mut out, OF, &[&number(tenant.to_i64())]);
            of = tenant;
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

/// The tenant, where the key itself does not hold it.
fn told(key: &RowKey) -> Option<TenantId> {
    match key {
        RowKey::Name(..) | RowKey::Asset(..) => None,
        _ => key.tenant(),
    }
}

/// As stored; nothing if the bytes are not what [`encode`] writes or wrote.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<RowKey>> {
    let mut keys = Vec::with_capacity(bytes.len() / 16);
    let rest = &mut bytes;
    let mut of = UNTOLD;
    while let Some((kind, after)) = rest.split_first() {
        *rest = after;
        if *kind == OF {
            of = TenantId::from_i64(take_number(rest)?);
            continue;
        }
        keys.push(match *kind {
            CLAIM => RowKey::Claim(of, ClaimId::from_digest(Digest::from_bytes(take(rest)?))),
            CHARGE => RowKey::Charge(of, ChargeId::from_i64(take_number(rest)?)),
            OUTBOX => RowKey::Outbox(of, SubjectId::from_i64(take_number(rest)?)),
            AUDIT => {
                RowKey::Audit(of, SubjectId::from_i64(take_number(rest)?), Ulid::from_bytes(take(rest)?))
            }
            TENANT => RowKey::Tenant(TenantName::parse(take_name(rest)?).ok()?),
            API_KEY => RowKey::ApiKey(Digest::from_bytes(take(rest)?)),
            SLOT => RowKey::Slot(u16::from_be_bytes(take(rest)?)),
            ACCOUNT => RowKey::Account(of, AccountId::from_i64(take_number(rest)?)),
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
                RowKey::Balance(of, account, shard)
            }
            TRANSACTION => RowKey::Transaction(of, TransactionId::from_i64(take_number(rest)?)),
            REVERSAL => RowKey::Reversal(of, TransactionId::from_i64(take_number(rest)?)),
            HOLD => RowKey::Hold(of, HoldId::from_i64(take_number(rest)?)),
            SNAPSHOT => {
                let account = AccountId::from_i64(take_number(rest)?);
                RowKey::Snapshot(of, account, Position(u64::from_be_bytes(take(rest)?)))
            }
            CURSOR => RowKey::Cursor(FeedReader::parse(take_name(rest)?)?),
            OPERATION => RowKey::Operation(of, OperationId::from_i64(take_number(rest)?)),
            PAYOUT => RowKey::Payout(of, PayoutId::from_i64(take_number(rest)?)),
            _ => return None,
        });
    }
    Some(keys)
}

const fn number(number: i64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Names have at most 64 bytes.
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

    fn keys() -> Vec<RowKey> {
        vec![
            RowKey::Claim(UNTOLD, ClaimId::from_digest(Digest::from_bytes([0xaa; 32]))),
            RowKey::Charge(UNTOLD, ChargeId::from_i64(0x0102_0304_0506_0708)),
            RowKey::Outbox(UNTOLD, SubjectId::from_i64(-1)),
            RowKey::Audit(UNTOLD, SubjectId::from_i64(2), Ulid::from_bytes([0xbb; 16])),
            RowKey::Tenant(TenantName::parse("acme").unwrap()),
            RowKey::ApiKey(Digest::from_bytes([0xcc; 32])),
            RowKey::Slot(258),
            RowKey::Account(UNTOLD, AccountId::from_i64(3)),
            RowKey::Name(TenantId::from_i64(4), AccountCode::parse("chart:fees:EUR").unwrap()),
            RowKey::Asset(TenantId::from_i64(5), Asset::parse("CO2_GRAMS").unwrap()),
            RowKey::Balance(UNTOLD, AccountId::from_i64(6), 255),
            RowKey::Transaction(UNTOLD, TransactionId::from_i64(7)),
            RowKey::Reversal(UNTOLD, TransactionId::from_i64(8)),
            RowKey::Hold(UNTOLD, HoldId::from_i64(9)),
            RowKey::Snapshot(UNTOLD, AccountId::from_i64(10), Position(0x0102)),
            RowKey::Cursor(FeedReader::Projection),
            RowKey::Operation(UNTOLD, OperationId::from_i64(11)),
            RowKey::Payout(UNTOLD, PayoutId::from_i64(12)),
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
    fn golden_bytes_with_tenants() {
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

    /// As they were before commits told tenants.
    #[test]
    fn golden_bytes() {
        assert_eq!(encode(keys().into_iter()), golden());
        assert_eq!(decode(&golden()), Some(keys()));
    }

    #[test]
    fn cut_or_unknown_bytes_are_refused() {
        let whole = golden();
        let ends: Vec<usize> = (0..whole.len()).filter(|end| decode(&whole[..*end]).is_some()).collect();
        let between = [0, 33, 42, 51, 76, 82, 115, 118, 127, 151, 170, 180, 189, 198, 207, 224, 236, 245];
        assert_eq!(ends, between, "only between two keys");
        assert_eq!(decode(&[19]), None);
        assert_eq!(decode(&[20]), None);
    }
}
