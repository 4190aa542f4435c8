//! Recovery: an opening replays the entries that the database lacks.

use super::segments::paths;
use super::{Lineage, LogFile, LogStorage, Record, replay};
use crate::error::{OpenError, is_refusal};
use crate::tables::{commits, meta};
use rusqlite::Connection;
use std::path::Path;

/// A record that the database lacks.
struct Found {
    record: Record,
    segment: usize,
    /// The offset of the entry in its segment.
    at: u64,
}

/// Replays the entries that the database lacks, in one synced transaction.
pub(crate) fn recover(db: &mut Connection, dir: &Path, storage: &dyn LogStorage) -> Result<(), OpenError> {
    let Unreplayed { files, found } = find_unreplayed(db, dir, storage)?;
    if found.is_empty() {
        return Ok(());
    }
    let transaction = db.transaction()?;
    let mut sets = 0;
    for (index, Found { record, segment, at }) in found.iter().enumerate() {
        let Some(entry) = files.get(*segment).and_then(|file| entry(file.as_ref(), record, *at)) else {
            // The last entry may be torn: its sets were never answered. All entries before it were
            // durable when it was begun.
            if index.saturating_add(1) == found.len() {
                break;
            }
            return Err(OpenError::Corrupt(format!(
                "commit {} is damaged in the write-ahead log",
                record.first
            )));
        };
        replay(&transaction, &entry).map_err(|error| refused(record, error))?;
        sets = record.sets.saturating_add(sets);
    }
    transaction.commit()?;
    tracing::info!(sets, "commits were replayed from the write-ahead log");
    Ok(())
}

/// The tables may refuse an admitted row, for example after a foreign write. Retrying cannot help.
fn refused(record: &Record, error: rusqlite::Error) -> OpenError {
    if is_refusal(&error) {
        OpenError::Refused { commit: record.first, why: error.to_string() }
    } else {
        error.into()
    }
}

/// Whether the log has an entry that the database lacks.
pub(crate) fn has_unreplayed_entries(
    db: &Connection,
    dir: &Path,
    storage: &dyn LogStorage,
) -> Result<bool, OpenError> {
    let Unreplayed { files, found } = find_unreplayed(db, dir, storage)?;
    Ok(found.first().is_some_and(|Found { record, segment, at }| {
        files.get(*segment).is_some_and(|file| entry(file.as_ref(), record, *at).is_some())
    }))
}

/// The segments, and the records that follow the last commit of the database, in order.
#[derive(Default)]
struct Unreplayed {
    files: Vec<Box<dyn LogFile>>,
    found: Vec<Found>,
}

fn find_unreplayed(db: &Connection, dir: &Path, storage: &dyn LogStorage) -> Result<Unreplayed, OpenError> {
    let Some(lineage) = meta::lineage(db)? else { return Ok(Unreplayed::default()) };
    let mut files = Vec::new();
    let mut found = Vec::new();
    for path in paths(dir) {
        if path.exists() {
            let file = storage.open(&path)?;
            read_heads(file.as_ref(), files.len(), lineage, &mut found)?;
            files.push(file);
        }
    }
    let mut expected = commits::last(db)?.map_or(0, |last| last.position.0).saturating_add(1);
    found.retain(|found| found.record.last() >= expected);
    found.sort_by_key(|found| found.record.first);
    for Found { record, .. } in &found {
        if record.first != expected {
            return Err(OpenError::Corrupt(format!(
                "the write-ahead log goes on at commit {}, the database ends before {expected}",
                record.first
            )));
        }
        expected = record.last().saturating_add(1);
    }
    Ok(Unreplayed { files, found })
}

/// Reads the heads of one lineage's records, from the beginning of the segment.
fn read_heads(
    file: &dyn LogFile,
    segment: usize,
    lineage: Lineage,
    found: &mut Vec<Found>,
) -> Result<(), OpenError> {
    let length = file.length()?;
    let mut at = 0;
    let mut expected = None;
    loop {
        let entry = u64::try_from(Record::HEAD).map_or(u64::MAX, |head| head.saturating_add(at));
        if entry > length {
            return Ok(());
        }
        let mut head = [0; Record::HEAD];
        file.read(&mut head, at)?;
        // Bytes after the last record are older: of another opening, or of the ring's last round.
        let Some(record) = Record::decode(&head).filter(|record| {
            record.lineage == lineage && expected.is_none_or(|expected| record.first == expected)
        }) else {
            return Ok(());
        };
        expected = Some(record.last().saturating_add(1));
        found.push(Found { record, segment, at: entry });
        at = entry.saturating_add(u64::from(record.length));
    }
}

/// The entry of a record, if it is whole.
fn entry(file: &dyn LogFile, record: &Record, at: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(record.length).ok()?];
    file.read(&mut bytes, at).ok()?;
    record.is_of(&bytes).then_some(bytes)
}
