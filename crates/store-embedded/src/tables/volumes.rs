//! The volumes that keys stand in, and the lists of those that are closed.

use super::cell;
use counterfoil_core::idempotency::claim::ClaimId;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::cell::Cell;

const YOUNGEST: &str = "SELECT max(coalesce((SELECT max(volume) FROM claims), 0), \
    coalesce((SELECT max(volume) + 1 FROM volume_keys), 0))";
const ALL: &str = "SELECT volume FROM claim_volumes ORDER BY volume";
const IDS: &str = "SELECT id FROM claims WHERE volume = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
const LIST: &str = "SELECT keys FROM volume_keys WHERE volume = ?1";
/// Closed volumes without a list, from one of them on. The youngest of the claims may still be open.
const UNLISTED: &str = "SELECT volume FROM claim_volumes WHERE volume >= ?1 \
    AND volume < (SELECT max(volume) FROM claims) AND volume NOT IN (SELECT volume FROM volume_keys)";
const PUT: &str = "INSERT INTO volume_keys (volume, keys) VALUES (?1, ?2)";
const FORGET: &str = "DELETE FROM volume_keys WHERE volume NOT IN (SELECT volume FROM claim_volumes) \
    AND volume < (SELECT max(volume) FROM volume_keys)";

/// Keys that a list may have: one that was made of more would be long in the making. Older formats had all in one volume.
const LISTED_MAX: usize = 1 << 22;
/// Keys that are read at a time: nothing keeps the log from starting over for long.
const PAGE: usize = 4_096;

/// Keys that came one after the other and stand together in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Volume(i64);

impl Volume {
    #[cfg(test)]
    pub(crate) const FIRST: Volume = Volume(0);

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

/// All that have keys, the oldest first.
pub(crate) fn all(db: &Connection) -> Result<Vec<Volume>> {
    db.prepare_cached(ALL)?.query_map([], |row| row.get(0).map(Volume))?.collect()
}

/// The keys of a volume, with some that are gone if it is listed, some at a time; `go_on` tells whether more are wanted.
pub(crate) fn keys(
    db: &Connection,
    volume: Volume,
    mut see: impl FnMut(&[Abridged]),
    go_on: impl Fn() -> bool,
) -> Result<()> {
    let list: Option<Vec<u8>> =
        db.prepare_cached(LIST)?.query_row([volume.0], |row| row.get(0)).optional()?;
    if let Some(list) = list {
        let (keys, _) = list.as_chunks();
        see(&keys.iter().map(|bytes| Abridged(u64::from_be_bytes(*bytes))).collect::<Vec<_>>());
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

/// Lists the keys of closed volumes where that was not done yet, and drops lists of which no key is left. `from`: those before it were
/// looked at.
pub(crate) fn list_closed(db: &Connection, from: Option<Volume>) -> Result<()> {
    let from = from.map_or(i64::MIN, Volume::number);
    let unlisted: Vec<Volume> = db
        .prepare_cached(UNLISTED)?
        .query_map([from], |row| row.get(0).map(Volume))?
        .collect::<Result<_>>()?;
    for volume in unlisted {
        let (mut list, found) = (Vec::new(), Cell::new(0_usize));
        let see = |keys: &[Abridged]| {
            found.set(found.get().saturating_add(keys.len()));
            list.extend(keys.iter().flat_map(|key| key.0.to_be_bytes()));
        };
        keys(db, volume, see, || found.get() <= LISTED_MAX)?;
        if found.get() <= LISTED_MAX {
            db.prepare_cached(PUT)?.execute(params![volume.0, list])?;
        }
    }
    db.prepare_cached(FORGET)?.execute([]).map(|_| ())
}
