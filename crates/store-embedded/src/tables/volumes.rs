//! The volumes that keys stand in, and the lists of those that are closed.

use super::cell;
use counterfoil_core::idempotency::claim::ClaimId;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const YOUNGEST: &str = "SELECT max(1, coalesce((SELECT max(volume) FROM claims), 0), \
    coalesce((SELECT max(volume) + 1 FROM volume_keys), 0))";
const NEXT: &str = "SELECT min(volume) FROM claims WHERE volume > ?1";
const IDS: &str = "SELECT id FROM claims WHERE volume = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
const LIST: &str = "SELECT keys FROM volume_keys WHERE volume = ?1";
const LISTS: &str = "SELECT count(*) FROM volume_keys WHERE volume = ?1";
const UNLISTED: &str = "SELECT volume FROM claim_volumes WHERE volume BETWEEN ?1 AND ?2 - 1 \
    AND volume NOT IN (SELECT volume FROM volume_keys)";
const PUT: &str = "INSERT INTO volume_keys (volume, keys) VALUES (?1, ?2)";
const FORGET: &str = "DELETE FROM volume_keys WHERE volume NOT IN (SELECT volume FROM claim_volumes) \
    AND volume < (SELECT max(volume) FROM volume_keys)";
/// Keys that are read at a time: nothing keeps the log from starting over for long.
const PAGE: usize = 4_096;

/// Keys that came one after the other and stand together in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Volume(i64);

impl Volume {
    #[cfg(test)]
    pub(crate) const FIRST: Volume = Volume(1);

    /// The one that comes after it.
    pub(crate) fn next(self) -> Volume {
        Volume(self.0.saturating_add(1))
    }

    pub(super) fn number(self) -> i64 {
        self.0
    }
}

/// So much of a key as lists have of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abridged(pub(crate) u64);

impl From<ClaimId> for Abridged {
    fn from(id: ClaimId) -> Abridged {
        let bytes = id.digest().as_bytes().first_chunk();
        Abridged(bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes)))
    }
}

/// The volume that new keys go into: never one that is listed.
pub(crate) fn youngest(db: &Connection) -> Result<Volume> {
    db.query_row(YOUNGEST, [], |row| row.get(0).map(Volume))
}

/// All keys, with some that are gone, some at a time. `go_on` tells whether more are wanted. The oldest volume first, and those that come
/// to be meanwhile: a key that is used again moves to a younger one.
pub(crate) fn all_keys(
    db: &Connection,
    mut see: impl FnMut(Volume, &[Abridged]),
    go_on: impl Fn() -> bool,
) -> Result<()> {
    let mut last = i64::MIN;
    while let Some(volume) = db.prepare_cached(NEXT)?.query_row([last], |row| row.get(0))? {
        keys(db, Volume(volume), |keys| see(Volume(volume), keys), &go_on)?;
        last = volume;
    }
    Ok(())
}

fn keys(
    db: &Connection,
    volume: Volume,
    mut see: impl FnMut(&[Abridged]),
    go_on: impl Fn() -> bool,
) -> Result<()> {
    let list: Option<Vec<u8>> =
        db.prepare_cached(LIST)?.query_row([volume.0], |row| row.get(0)).optional()?;
    if let Some(list) = list {
        let (keys, _) = list.as_chunks();
        for page in keys.chunks(PAGE).take_while(|_| go_on()) {
            see(&page.iter().map(|bytes| Abridged(u64::from_be_bytes(*bytes))).collect::<Vec<_>>());
        }
        return Ok(());
    }
    let mut page = db.prepare_cached(IDS)?;
    let mut last: Option<ClaimId> = None;
    while go_on() {
        let after: &[u8] = last.as_ref().map_or(&[], |last| last.digest().as_bytes());
        let read = |row: &Row<'_>| cell::digest(row, 0).map(ClaimId::from_digest);
        let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let ids: Vec<ClaimId> =
            page.query_map(params![volume.0, after, limit], read)?.collect::<Result<_>>()?;
        see(&ids.iter().map(|id| Abridged::from(*id)).collect::<Vec<_>>());
        if ids.len() < PAGE {
            break;
        }
        last = ids.last().copied();
    }
    Ok(())
}

/// Lists the keys of volumes that come before `open` where that was not done yet, and drops lists of which no key is left. `from`: those
/// before it were looked at.
pub(crate) fn list_closed(db: &Connection, from: Option<Volume>, open: Volume) -> Result<()> {
    for volume in unlisted(db, from, open)? {
        let mut list = Vec::new();
        keys(db, volume, |keys| list.extend(keys.iter().flat_map(|key| key.0.to_be_bytes())), || true)?;
        db.prepare_cached(PUT)?.execute(params![volume.0, list])?;
    }
    db.prepare_cached(FORGET)?.execute([]).map(|_| ())
}

/// Lists of one volume: none while it is open.
pub(super) fn lists_of(db: &Connection, volume: Volume) -> Result<usize> {
    db.prepare_cached(LISTS)?.query_row([volume.0], |row| row.get(0))
}

fn unlisted(db: &Connection, from: Option<Volume>, open: Volume) -> Result<Vec<Volume>> {
    let from = from.map_or(i64::MIN, Volume::number);
    db.prepare_cached(UNLISTED)?.query_map([from, open.0], |row| row.get(0).map(Volume))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Found, STEPS, migrate};
    use counterfoil_core::types::digest::Digest;

    fn tables() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, Found::Fresh, STEPS).unwrap();
        db
    }

    fn key(number: i64) -> ClaimId {
        ClaimId::from_digest(Digest::of("key", &[&number.to_be_bytes()]))
    }

    fn insert(db: &Connection, number: i64, volume: i64) {
        let sql = "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, \
            attempts, state, sweep_at, volume, makes) \
            VALUES (?1, ?2, 1, x'', x'', 0, 1, 1, 1, 'expired', 5, ?3, 'charge')";
        db.execute(sql, params![number, key(number).digest().as_bytes(), volume]).unwrap();
    }

    fn seen(db: &Connection, mut meanwhile: impl FnMut(Volume)) -> Vec<Abridged> {
        let mut seen = Vec::new();
        let see = |volume, keys: &[Abridged]| {
            meanwhile(volume);
            seen.extend_from_slice(keys);
        };
        all_keys(db, see, || true).unwrap();
        seen
    }

    /// The volume it goes to was not there when the reading began.
    #[test]
    fn a_key_that_is_used_again_while_all_are_read_is_not_missed() {
        let db = tables();
        (1..=3).for_each(|number| insert(&db, number, number));
        let seen = seen(&db, |volume| {
            if volume == Volume(1) {
                let moved =
                    "UPDATE claims SET subject = 9, volume = 4, fence = 2, revision = 2 WHERE subject = 3";
                db.execute(moved, []).unwrap();
            }
        });
        assert_eq!(seen, [1, 2, 3].map(|number| Abridged::from(key(number))));
    }

    #[test]
    fn lists_of_which_no_key_is_left_are_dropped_but_for_the_last() {
        let db = tables();
        (1..=4).for_each(|number| insert(&db, number, number));
        list_closed(&db, None, Volume(4)).unwrap();
        db.execute("DELETE FROM claims", []).unwrap();
        list_closed(&db, None, Volume(4)).unwrap();
        let left = |sql| db.query_row::<i64, _, _>(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left("SELECT count(*) FROM volume_keys"), 1);
        assert_eq!(left("SELECT max(volume) FROM volume_keys"), 3);
        assert_eq!(youngest(&db), Ok(Volume(4)), "not one that is listed");
    }

    #[test]
    fn only_volumes_before_the_open_one_are_listed() {
        let db = tables();
        (1..=5).for_each(|number| insert(&db, number, number));
        list_closed(&db, Some(Volume(2)), Volume(4)).unwrap();
        let listed: Vec<i64> = db
            .prepare("SELECT volume FROM volume_keys")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_>>()
            .unwrap();
        assert_eq!(listed, [2, 3]);
        list_closed(&db, None, Volume(4)).unwrap();
        let listed: i64 = db.query_row("SELECT count(*) FROM volume_keys", [], |row| row.get(0)).unwrap();
        assert_eq!(listed, 3);
    }
}
