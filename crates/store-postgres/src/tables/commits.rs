//! The log of commits: the feed, and how a commit in doubt is resolved.
//!
//! What a commit touched is kept as words that a human can read: for each row the kind, then the key; before them, where
//! it changes, whose they are. Commits of schema 8 and before do not say that.

use super::{Damage, Line, Part, Place, journal, sql};
use crate::wake;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::account::Code;
use counterfoil_core::ledger::snapshot::Reader;
use counterfoil_core::tenancy::TenantName;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, SetId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{Change, Committed, Position, Receipt, RowKey, UNTOLD};
use std::fmt::Write;
use std::sync::LazyLock;
use tokio_postgres::Row;

/// What the statement that seals a group does besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealing {
    /// It writes these parts first.
    pub(crate) parts: &'static [Part],
    /// What is mostly empty in them is.
    pub(crate) thin: bool,
    /// It writes transactions and their entries.
    pub(crate) posts: bool,
    /// It sends words to who waits.
    pub(crate) tells: bool,
}

impl Sealing {
    pub(crate) fn all() -> impl Iterator<Item = Sealing> {
        let parts = sql::TOGETHER.into_iter().flat_map(|parts| [(parts, false), (parts, true)]);
        parts.chain([(&[] as &[Part], false)]).flat_map(|(parts, thin)| {
            let besides = [(false, false), (true, false), (false, true), (true, true)];
            besides.map(|(posts, tells)| Sealing { parts, thin, posts, tells })
        })
    }

    /// Takes positions for a group and writes its commits under them. The head's row is locked from here to the end of the
    /// transaction: position order is commit order. Entries need positions; their transactions come with them, so that the
    /// rule of their balance finds them whole. Words come last, so that one group at a time holds the locks they take: the
    /// server has room for only so many.
    pub(crate) fn sql(self) -> &'static str {
        // One of all.
        SEALS.iter().find(|(sealing, _)| *sealing == self).map_or("", |(_, sql)| sql.as_str())
    }
}

static SEALS: LazyLock<Vec<(Sealing, String)>> =
    LazyLock::new(|| Sealing::all().map(|sealing| (sealing, seal(sealing))).collect());

/// The head is taken only once all parts are written: the condition on it counts them.
///
/// Its row is there; to "insert" it is the way to change the row as it is once nobody else holds it. An `UPDATE` that had to
/// wait would find the row changed since its statement began, and prepare the whole statement a second time to look again,
/// with the head in hand that everybody waits for.
fn seal(sealing: Sealing) -> String {
    let (before, only_if, ids) = if sealing.parts.is_empty() {
        (String::new(), String::new(), 1)
    } else {
        let (done, meant, next) = sql::parts(sealing.parts, sealing.thin);
        (format!("{done}, "), format!(" WHERE {meant}"), next)
    };
    let [touched, sets, now, mut next] = [1, 2, 3, 4].map(|further| ids.saturating_add(further));
    let mut posting = String::new();
    if sealing.posts {
        let legs = next.saturating_add(Place::Transaction.table().columns.len());
        posting = format!(
            ", opened AS ({}), entered AS ({})",
            sql::insert(Place::Transaction, next),
            journal::insert_entries(legs)
        );
        next = legs.saturating_add(journal::ENTRY.len());
    }
    let telling = if sealing.tells { format!(", ({})", wake::tell(next)) } else { String::new() };
    format!(
        "WITH {before}moved AS ( \
            INSERT INTO head AS h (one, position, at) SELECT TRUE, ${sets}::bigint, ${now}::bigint{only_if} \
            ON CONFLICT (one) DO UPDATE SET position = h.position + excluded.position, \
                at = greatest(h.at, now_ms(), excluded.at) \
            RETURNING position - ${sets}::bigint AS base, at \
        ), written AS ( \
            INSERT INTO commits (position, set_id, at, touched) \
            SELECT moved.base + u.turn, u.set_id, moved.at, u.touched \
            FROM moved, (SELECT unnest(${ids}::bigint[]) AS set_id, unnest(${touched}::text[]) AS touched, \
                                generate_series(1, ${sets}::bigint) AS turn) AS u \
        ){posting} SELECT base, at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
        pg_current_xact_id()::xid::text{telling} FROM moved"
    )
}

pub(crate) const OF_SET: &str = "SELECT position, at FROM commits WHERE set_id = $1";
pub(crate) const AFTER: &str =
    "SELECT position, at, set_id, touched FROM commits WHERE position > $1 ORDER BY position LIMIT $2";

/// Whose the rows of these numbers are, for commits that do not say it. Numbers are unique over all tenants, and what bears the
/// same number in several tables belongs to one. Nothing leads to them but each tenant's keys.
pub(crate) const OWNERS: &str = "SELECT k.id, o.id FROM (SELECT unnest($1::bigint[]) AS id) AS k CROSS JOIN tenants AS o \
    CROSS JOIN LATERAL (SELECT 1 FROM journal_transactions AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM charges AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM operations AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM payouts AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM accounts AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM holds AS t WHERE t.tenant = o.id AND t.id = k.id LIMIT 1) AS found";

/// The number by which [`OWNERS`] finds whose a row is.
pub(crate) fn sought(key: &RowKey) -> Option<i64> {
    match key {
        RowKey::Charge(_, id) => Some(id.to_i64()),
        RowKey::Operation(_, id) => Some(id.to_i64()),
        RowKey::Payout(_, id) => Some(id.to_i64()),
        RowKey::Outbox(_, subject) | RowKey::Audit(_, subject, _) => Some(subject.to_i64()),
        RowKey::Account(_, account) | RowKey::Balance(_, account, _) | RowKey::Snapshot(_, account, _) => {
            Some(account.to_i64())
        }
        RowKey::Transaction(_, id) | RowKey::Reversal(_, id) => Some(id.to_i64()),
        RowKey::Hold(_, id) => Some(id.to_i64()),
        RowKey::Claim(..)
        | RowKey::Tenant(_)
        | RowKey::ApiKey(_)
        | RowKey::Slot(_)
        | RowKey::Name(..)
        | RowKey::Asset(..)
        | RowKey::Cursor(_) => None,
    }
}

/// The name of the index that keeps a set from being committed twice.
pub(crate) const BY_SET: &str = "commits_by_set";

pub(crate) fn receipt(row: &Row) -> Result<Receipt, Damage> {
    take_receipt(&mut Line::new(row, "commits"))
}

fn take_receipt(line: &mut Line<'_>) -> Result<Receipt, Damage> {
    Ok(Receipt { position: Position(line.number()?), at: line.time()? })
}

pub(crate) fn committed(row: &Row) -> Result<Committed, Damage> {
    let mut line = Line::new(row, "commits");
    Ok(Committed {
        receipt: take_receipt(&mut line)?,
        set: SetId::from_i64(line.int()?),
        touched: line.word(decode)?,
    })
}

/// The rows a set touches, to store.
pub(crate) fn touched(changes: &[Change]) -> String {
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

/// As stored; nothing if the words are not what [`touched`] writes or wrote.
fn decode(text: &str) -> Option<Vec<RowKey>> {
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
            "name" => RowKey::Name(TenantId::from_i64(number(word()?)?), Code::parse(word()?).ok()?),
            "asset" => RowKey::Asset(TenantId::from_i64(number(word()?)?), Asset::parse(word()?).ok()?),
            "balance" => RowKey::Balance(of, AccountId::from_i64(number(word()?)?), word()?.parse().ok()?),
            "transaction" => RowKey::Transaction(of, TransactionId::from_i64(number(word()?)?)),
            "reversal" => RowKey::Reversal(of, TransactionId::from_i64(number(word()?)?)),
            "hold" => RowKey::Hold(of, HoldId::from_i64(number(word()?)?)),
            "snapshot" => {
                RowKey::Snapshot(of, AccountId::from_i64(number(word()?)?), Position(word()?.parse().ok()?))
            }
            "cursor" => RowKey::Cursor(Reader::parse(word()?)?),
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
            RowKey::Name(TenantId::from_i64(4), Code::parse("chart:payable:USD").unwrap()),
            RowKey::Asset(TenantId::from_i64(4), Asset::parse("POINTS").unwrap()),
            RowKey::Balance(of, AccountId::from_i64(3), 255),
            RowKey::Transaction(of, TransactionId::from_i64(5)),
            RowKey::Reversal(of, TransactionId::from_i64(5)),
            RowKey::Hold(of, HoldId::from_i64(6)),
            RowKey::Snapshot(of, AccountId::from_i64(3), Position(7)),
            RowKey::Cursor(Reader::Projection),
        ]
    }

    fn told(keys: Vec<RowKey>) -> String {
        touched(&keys.into_iter().map(|key| Change::Remove { key, expect: 1 }).collect::<Vec<_>>())
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
