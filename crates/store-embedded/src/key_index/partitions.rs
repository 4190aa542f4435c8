//! The partitions of the key index in SQL, and the lists of keys of closed partitions.

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::types::digest::Digest;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const YOUNGEST: &str = "SELECT max(1, coalesce((SELECT max(partition) FROM claims), 0), \
    coalesce((SELECT max(partition) + 1 FROM key_partitions), 0))";
const NEXT: &str = "SELECT min(partition) FROM claims WHERE partition > ?1";
const IDS: &str = "SELECT id FROM claims WHERE partition = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
const LIST: &str = "SELECT keys FROM key_partitions WHERE partition = ?1";
const IS_LISTED: &str = "SELECT 1 FROM key_partitions WHERE partition = ?1";
const UNLISTED: &str = "SELECT partition FROM claim_partitions WHERE partition BETWEEN ?1 AND ?2 - 1 \
    AND partition NOT IN (SELECT partition FROM key_partitions)";
const PUT: &str = "INSERT INTO key_partitions (partition, keys) VALUES (?1, ?2)";
/// The list of the youngest closed partition stays, so that its number is not used again.
const DROP_EMPTY: &str = "DELETE FROM key_partitions \
    WHERE partition NOT IN (SELECT partition FROM claim_partitions) \
    AND partition < (SELECT max(partition) FROM key_partitions)";

/// Keys per read: a short read does not keep SQLite's WAL from restarting.
const PAGE: usize = 4_096;

/// The number of a partition; later keys are in higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Partition(i64);

impl Partition {
    #[cfg(test)]
    pub(crate) const FIRST: Partition = Partition(1);

    pub(crate) fn next(self) -> Partition {
        Partition(self.0.saturating_add(1))
    }

    pub(crate) fn number(self) -> i64 {
        self.0
    }
}

/// The first eight bytes of a key's digest, as lists and filters have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPrefix(pub(crate) u64);

impl From<ClaimId> for KeyPrefix {
    fn from(id: ClaimId) -> KeyPrefix {
        let bytes = id.digest().as_bytes().first_chunk();
        KeyPrefix(bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes)))
    }
}

/// The partition for new keys: never one that is closed.
pub(crate) fn youngest_partition(db: &Connection) -> Result<Partition> {
    db.query_row(YOUNGEST, [], |row| row.get(0).map(Partition))
}

/// Whether the partition is closed: its keys are listed, and no more may be added.
pub(crate) fn is_listed(db: &Connection, partition: Partition) -> Result<bool> {
    db.prepare_cached(IS_LISTED)?.exists([partition.0])
}

/// Passes all keys to `add`, some at a time, while `go_on` is true. Removed keys may be among
/// them. Partitions are read oldest first, because a reused key moves to the youngest one.
pub(super) fn read_all_keys(
    db: &Connection,
    mut add: impl FnMut(Partition, &[KeyPrefix]),
    go_on: impl Fn() -> bool,
) -> Result<()> {
    let mut last = i64::MIN;
    while let Some(partition) = db.prepare_cached(NEXT)?.query_row([last], |row| row.get(0))? {
        read_keys(db, Partition(partition), |keys| add(Partition(partition), keys), &go_on)?;
        last = partition;
    }
    Ok(())
}

fn read_keys(
    db: &Connection,
    partition: Partition,
    mut add: impl FnMut(&[KeyPrefix]),
    go_on: impl Fn() -> bool,
) -> Result<()> {
    let list: Option<Vec<u8>> =
        db.prepare_cached(LIST)?.query_row([partition.0], |row| row.get(0)).optional()?;
    if let Some(list) = list {
        let (keys, _) = list.as_chunks();
        for page in keys.chunks(PAGE).take_while(|_| go_on()) {
            add(&page.iter().map(|bytes| KeyPrefix(u64::from_be_bytes(*bytes))).collect::<Vec<_>>());
        }
        return Ok(());
    }
    let mut page = db.prepare_cached(IDS)?;
    let mut last: Option<ClaimId> = None;
    while go_on() {
        let after: &[u8] = last.as_ref().map_or(&[], |last| last.digest().as_bytes());
        let read = |row: &Row<'_>| row.get(0).map(Digest::from_bytes).map(ClaimId::from_digest);
        let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let ids: Vec<ClaimId> =
            page.query_map(params![partition.0, after, limit], read)?.collect::<Result<_>>()?;
        add(&ids.iter().map(|id| KeyPrefix::from(*id)).collect::<Vec<_>>());
        if ids.len() < PAGE {
            break;
        }
        last = ids.last().copied();
    }
    Ok(())
}

/// Lists the keys of the unlisted partitions below `open`, and drops lists without any key left.
/// Partitions below `from` are known to be listed.
pub(crate) fn list_closed_partitions(
    db: &Connection,
    from: Option<Partition>,
    open: Partition,
) -> Result<()> {
    for partition in unlisted(db, from, open)? {
        let mut list = Vec::new();
        read_keys(
            db,
            partition,
            |keys| list.extend(keys.iter().flat_map(|key| key.0.to_be_bytes())),
            || true,
        )?;
        db.prepare_cached(PUT)?.execute(params![partition.0, list])?;
    }
    db.prepare_cached(DROP_EMPTY)?.execute([]).map(|_| ())
}

fn unlisted(db: &Connection, from: Option<Partition>, open: Partition) -> Result<Vec<Partition>> {
    let from = from.map_or(i64::MIN, Partition::number);
    db.prepare_cached(UNLISTED)?.query_map([from, open.0], |row| row.get(0).map(Partition))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Found, STEPS, migrate};

    fn tables() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, Found::Fresh, STEPS).unwrap();
        db
    }

    fn key(number: i64) -> ClaimId {
        ClaimId::from_digest(Digest::of("key", &[&number.to_be_bytes()]))
    }

    fn insert(db: &Connection, number: i64, partition: i64) {
        let sql = "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, \
            attempts, state, sweep_at, partition, makes) \
            VALUES (?1, ?2, 1, x'', x'', 0, 1, 1, 1, 'expired', 5, ?3, 'charge')";
        db.execute(sql, params![number, key(number).digest().as_bytes(), partition]).unwrap();
    }

    fn read(db: &Connection, mut meanwhile: impl FnMut(Partition)) -> Vec<KeyPrefix> {
        let mut found = Vec::new();
        let add = |partition, keys: &[KeyPrefix]| {
            meanwhile(partition);
            found.extend_from_slice(keys);
        };
        read_all_keys(db, add, || true).unwrap();
        found
    }

    fn listed(db: &Connection) -> Vec<i64> {
        let mut lists = db.prepare("SELECT partition FROM key_partitions ORDER BY partition").unwrap();
        lists.query_map([], |row| row.get(0)).unwrap().collect::<Result<_>>().unwrap()
    }

    /// The key moves to a partition that was not there when the reading began.
    #[test]
    fn a_key_that_is_reused_while_all_keys_are_read_is_not_missed() {
        let db = tables();
        (1..=3).for_each(|number| insert(&db, number, number));
        let found = read(&db, |partition| {
            if partition == Partition(1) {
                let moved =
                    "UPDATE claims SET subject = 9, partition = 4, fence = 2, revision = 2 WHERE subject = 3";
                db.execute(moved, []).unwrap();
            }
        });
        assert_eq!(found, [1, 2, 3].map(|number| KeyPrefix::from(key(number))));
    }

    #[test]
    fn a_list_has_every_key_of_its_partition() {
        let db = tables();
        (1..=9_000).for_each(|number| insert(&db, number, 1));
        insert(&db, 9_001, 2);
        let mut by_index = read(&db, |_| {});
        list_closed_partitions(&db, None, Partition(2)).unwrap();
        let mut by_list = read(&db, |_| {});
        for keys in [&mut by_index, &mut by_list] {
            keys.sort_unstable_by_key(|key| key.0);
        }
        assert_eq!((by_list.len(), by_list), (9_001, by_index));
    }

    #[test]
    fn lists_without_keys_are_dropped_except_the_youngest() {
        let db = tables();
        (1..=4).for_each(|number| insert(&db, number, number));
        list_closed_partitions(&db, None, Partition(4)).unwrap();
        db.execute("DELETE FROM claims", []).unwrap();
        list_closed_partitions(&db, None, Partition(4)).unwrap();
        assert_eq!(listed(&db), [3]);
        assert_eq!(youngest_partition(&db), Ok(Partition(4)), "a closed partition is not used again");
    }

    #[test]
    fn only_partitions_below_the_open_one_are_listed() {
        let db = tables();
        (1..=5).for_each(|number| insert(&db, number, number));
        list_closed_partitions(&db, Some(Partition(2)), Partition(4)).unwrap();
        assert_eq!(listed(&db), [2, 3]);
        list_closed_partitions(&db, None, Partition(4)).unwrap();
        assert_eq!(listed(&db), [1, 2, 3]);
    }

    #[test]
    fn a_list_that_is_not_whole_is_refused() {
        let db = tables();
        (1..=3).for_each(|number| insert(&db, number, number));
        let put = "INSERT INTO key_partitions (partition, keys) VALUES (?1, ?2)";
        for (partition, keys) in [(1, Vec::<u8>::new()), (1, vec![0; 16]), (3, vec![0; 8]), (7, Vec::new())] {
            let refused = db.execute(put, params![partition, keys]).unwrap_err().to_string();
            assert!(refused.contains("listed once, and all of them"), "{partition}: {refused}");
        }
        list_closed_partitions(&db, None, Partition(3)).unwrap();
        for again in [
            "INSERT OR REPLACE INTO key_partitions VALUES (1, zeroblob(8))",
            "UPDATE key_partitions SET keys = zeroblob(8)",
        ] {
            assert!(db.execute(again, []).unwrap_err().to_string().contains("listed once"), "{again}");
        }
    }
}
