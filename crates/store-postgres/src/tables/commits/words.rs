//! What a commit touched in words that a human can read, as schemas before 14 keep it: for each row the kind, then the key; before
//! them, where it changes, whose they are. Commits of schema 8 and before do not say that.

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
use counterfoil_store::{Change, Position, RowKey, UNTOLD};
use std::fmt::Write;

/// The rows a set touches, to store.
pub(crate) fn encode(changes: &[Change]) -> String {
    let mut out = String::with_capacity(changes.len().saturating_mul(32));
    let mut of = UNTOLD;
    for change in changes {
        if !out.is_empty() {
            out.push(' ');
        }
        let key = change.key();
        if let Some(tenant) = told(&key).filter(|tenant| *tenant != of) {
            // Writing to a string does not fail.
            let _ = write!(out, "of {} ", tenant.to_i64());
            of = tenant;
        }
        let _ = match key {
            RowKey::Claim(_, id) => write!(out, "claim {}", id.digest().hex()),
            RowKey::Charge(_, id) => write!(out, "charge {}", id.to_i64()),
            RowKey::Operation(_, id) => write!(out, "operation {}", id.to_i64()),
            RowKey::Payout(_, id) => write!(out, "payout {}", id.to_i64()),
            RowKey::Outbox(_, id) => write!(out, "outbox {}", id.to_i64()),
            RowKey::Audit(_, subject, id) => {
                write!(out, "audit {} {:032x}", subject.to_i64(), u128::from_be_bytes(id.to_bytes()))
            }
            RowKey::Tenant(name) => write!(out, "tenant {name}"),
            RowKey::ApiKey(digest) => write!(out, "api_key {}", digest.hex()),
            RowKey::Slot(number) => write!(out, "slot {number}"),
            RowKey::Account(_, id) => write!(out, "account {}", id.to_i64()),
            RowKey::Name(tenant, code) => write!(out, "name {} {code}", tenant.to_i64()),
            RowKey::Asset(tenant, asset) => write!(out, "asset {} {asset}", tenant.to_i64()),
            RowKey::Balance(_, account, shard) => write!(out, "balance {} {shard}", account.to_i64()),
            RowKey::Transaction(_, id) => write!(out, "transaction {}", id.to_i64()),
            RowKey::Reversal(_, id) => write!(out, "reversal {}", id.to_i64()),
            RowKey::Hold(_, id) => write!(out, "hold {}", id.to_i64()),
            RowKey::Snapshot(_, account, position) => {
                write!(out, "snapshot {} {}", account.to_i64(), position.0)
            }
            RowKey::Cursor(reader) => write!(out, "cursor {}", reader.name()),
        };
    }
    out
}

/// The tenant, where the key's own words do not say it.
fn told(key: &RowKey) -> Option<TenantId> {
    match key {
        RowKey::Name(..) | RowKey::Asset(..) => None,
        _ => key.tenant(),
    }
}

/// As stored; nothing if the words are not what [`encode`] writes or wrote.
pub(super) fn decode(text: &str) -> Option<Vec<RowKey>> {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let (mut keys, mut of) = (Vec::new(), UNTOLD);
    while let Some(kind) = words.next() {
        let mut word = || words.next();
        if kind == "of" {
            of = TenantId::from_i64(number(word()?)?);
            continue;
        }
        keys.push(match kind {
            "claim" => RowKey::Claim(of, ClaimId::from_digest(digest(word()?)?)),
            "charge" => RowKey::Charge(of, ChargeId::from_i64(number(word()?)?)),
            "operation" => RowKey::Operation(of, OperationId::from_i64(number(word()?)?)),
            "payout" => RowKey::Payout(of, PayoutId::from_i64(number(word()?)?)),
            "outbox" => RowKey::Outbox(of, SubjectId::from_i64(number(word()?)?)),
            "audit" => {
                RowKey::Audit(of, SubjectId::from_i64(number(word()?)?), Ulid::from_bytes(bytes(word()?)?))
            }
            "tenant" => RowKey::Tenant(TenantName::parse(word()?).ok()?),
            "api_key" => RowKey::ApiKey(digest(word()?)?),
            "slot" => RowKey::Slot(word()?.parse().ok()?),
            "account" => RowKey::Account(of, AccountId::from_i64(number(word()?)?)),
            "name" => RowKey::Name(TenantId::from_i64(number(word()?)?), AccountCode::parse(word()?).ok()?),
            "asset" => RowKey::Asset(TenantId::from_i64(number(word()?)?), Asset::parse(word()?).ok()?),
            "balance" => RowKey::Balance(of, AccountId::from_i64(number(word()?)?), word()?.parse().ok()?),
            "transaction" => RowKey::Transaction(of, TransactionId::from_i64(number(word()?)?)),
            "reversal" => RowKey::Reversal(of, TransactionId::from_i64(number(word()?)?)),
            "hold" => RowKey::Hold(of, HoldId::from_i64(number(word()?)?)),
            "snapshot" => {
                RowKey::Snapshot(of, AccountId::from_i64(number(word()?)?), Position(word()?.parse().ok()?))
            }
            "cursor" => RowKey::Cursor(FeedReader::parse(word()?)?),
            _ => return None,
        });
    }
    Some(keys)
}

fn number(word: &str) -> Option<i64> {
    word.parse().ok()
}

fn digest(word: &str) -> Option<Digest> {
    bytes(word).map(Digest::from_bytes)
}

/// Hexadecimal digits of exactly `N` bytes.
fn bytes<const N: usize>(word: &str) -> Option<[u8; N]> {
    if word.len() != N.checked_mul(2)? {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(word.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(of: TenantId) -> Vec<RowKey> {
        vec![
            RowKey::Claim(of, ClaimId::from_digest(Digest::from_bytes([0xaa; 32]))),
            RowKey::Charge(of, ChargeId::from_i64(1)),
            RowKey::Operation(of, OperationId::from_i64(8)),
            RowKey::Payout(of, PayoutId::from_i64(9)),
            RowKey::Outbox(of, SubjectId::from_i64(-1)),
            RowKey::Audit(of, SubjectId::from_i64(2), Ulid::from_bytes([0x0b; 16])),
            RowKey::Tenant(TenantName::parse("acme").unwrap()),
            RowKey::ApiKey(Digest::from_bytes([0xcc; 32])),
            RowKey::Slot(258),
            RowKey::Account(of, AccountId::from_i64(3)),
            RowKey::Name(TenantId::from_i64(4), AccountCode::parse("chart:payable:USD").unwrap()),
            RowKey::Asset(TenantId::from_i64(4), Asset::parse("POINTS").unwrap()),
            RowKey::Balance(of, AccountId::from_i64(3), 255),
            RowKey::Transaction(of, TransactionId::from_i64(5)),
            RowKey::Reversal(of, TransactionId::from_i64(5)),
            RowKey::Hold(of, HoldId::from_i64(6)),
            RowKey::Snapshot(of, AccountId::from_i64(3), Position(7)),
            RowKey::Cursor(FeedReader::Projection),
        ]
    }

    fn told(keys: Vec<RowKey>) -> String {
        encode(&keys.into_iter().map(|key| Change::Remove { key, expect: 1 }).collect::<Vec<_>>())
    }

    #[test]
    fn words_say_the_tenant_where_it_changes() {
        let (first, second) = (TenantId::from_i64(31), TenantId::from_i64(32));
        let charge = |tenant| RowKey::Charge(tenant, ChargeId::from_i64(1));
        let points = RowKey::Asset(second, Asset::parse("POINTS").unwrap());
        let work = RowKey::Outbox(first, SubjectId::from_i64(1));
        let keys = vec![RowKey::Slot(3), charge(first), points, work, charge(second)];
        let text = told(keys.clone());
        assert_eq!(text, "slot 3 of 31 charge 1 asset 32 POINTS outbox 1 of 32 charge 1");
        assert_eq!(decode(&text), Some(keys));
    }

    /// As they were before they said the tenant.
    #[test]
    fn golden_words() {
        let text = told(keys(UNTOLD));
        let expected = format!(
            "claim {} charge 1 operation 8 payout 9 outbox -1 audit 2 {} tenant acme api_key {} slot 258 account 3 \
             name 4 chart:payable:USD asset 4 POINTS balance 3 255 transaction 5 reversal 5 hold 6 snapshot 3 7 \
             cursor projection",
            "aa".repeat(32),
            "0b".repeat(16),
            "cc".repeat(32)
        );
        assert_eq!(text, expected);
        assert_eq!(decode(&text), Some(keys(UNTOLD)));
        let of = TenantId::from_i64(31);
        assert_eq!(told(keys(of)), format!("of 31 {text}"));
        assert_eq!(decode(&format!("of 31 {text}")), Some(keys(of)));
        assert_eq!(decode(""), Some(Vec::new()));
    }

    #[test]
    fn cut_or_unknown_words_are_refused() {
        for bad in [
            "claim",
            "claim aa",
            "charge x",
            "ledger 1",
            "name 4",
            "audit 2",
            "cursor nobody",
            "slot 70000",
            "of",
            "of x",
        ] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
