//! What an opening does with the redo log it finds: play what the database does not have.

use super::segments::paths;
use super::{Lineage, Media, Record, Tape, play};
use crate::error::{OpenError, is_refusal};
use crate::tables::{commits, meta};
use rusqlite::Connection;
use std::path::Path;

/// A record that was found.
struct Found {
    record: Record,
    segment: usize,
    /// Where its script begins.
    at: u64,
}

/// Plays what the database does not have yet. It is durable when this returns.
pub(crate) fn recover(db: &mut Connection, dir: &Path, media: &dyn Media) -> Result<(), OpenError> {
    let (tapes, found) = look(db, dir, media)?;
    if found.is_empty() {
        return Ok(());
    }
    let transaction = db.transaction()?;
    let mut sets = 0;
    for (index, Found { record, segment, at }) in found.iter().enumerate() {
        let Some(script) = tapes.get(*segment).and_then(|tape| script(tape.as_ref(), record, *at)) else {
            // The last one may have been cut off while it was written: nobody was told that it stands. Those before it
            // were safe when it was begun.
            if index.saturating_add(1) == found.len() {
                break;
            }
            return Err(OpenError::Corrupt(format!("commit {} is damaged in the redo log", record.first)));
        };
        play(&transaction, &script).map_err(|error| refused(record, error))?;
        sets = record.sets.saturating_add(sets);
    }
    transaction.commit()?;
    tracing::info!(sets, "commits were played from the redo log");
    Ok(())
}

/// The tables may refuse what an earlier release has admitted: no later try changes that.
fn refused(record: &Record, error: rusqlite::Error) -> OpenError {
    if is_refusal(&error) {
        OpenError::Refused { commit: record.first, why: error.to_string() }
    } else {
        error.into()
    }
}

/// Whether there is something to play.
pub(crate) fn is_left_over(db: &Connection, dir: &Path, media: &dyn Media) -> Result<bool, OpenError> {
    let (tapes, found) = look(db, dir, media)?;
    Ok(found.first().is_some_and(|Found { record, segment, at }| {
        tapes.get(*segment).is_some_and(|tape| script(tape.as_ref(), record, *at).is_some())
    }))
}

type Look = (Vec<Box<dyn Tape>>, Vec<Found>);

/// The records that follow what the database has, in order.
fn look(db: &Connection, dir: &Path, media: &dyn Media) -> Result<Look, OpenError> {
    let Some(lineage) = meta::lineage(db)? else { return Ok((Vec::new(), Vec::new())) };
    let mut tapes = Vec::new();
    let mut found = Vec::new();
    for path in paths(dir) {
        // One that was never made holds nothing.
        if path.exists() {
            let tape = media.open(&path)?;
            heads(tape.as_ref(), tapes.len(), lineage, &mut found)?;
            tapes.push(tape);
        }
    }
    let mut expected = commits::last(db)?.map_or(0, |last| last.position.0).saturating_add(1);
    found.retain(|found| found.record.last() >= expected);
    found.sort_by_key(|found| found.record.first);
    for Found { record, .. } in &found {
        if record.first != expected {
            return Err(OpenError::Corrupt(format!(
                "the redo log goes on at commit {}, the database ends before {expected}",
                record.first
            )));
        }
        expected = record.last().saturating_add(1);
    }
    Ok((tapes, found))
}

/// The heads of this opening's records, one after the other from the beginning of the segment.
fn heads(tape: &dyn Tape, segment: usize, lineage: Lineage, found: &mut Vec<Found>) -> Result<(), OpenError> {
    let length = tape.length()?;
    let mut at = 0;
    let mut expected = None;
    loop {
        let script = u64::try_from(Record::HEAD).map_or(u64::MAX, |head| head.saturating_add(at));
        if script > length {
            return Ok(());
        }
        let mut head = [0; Record::HEAD];
        tape.read(&mut head, at)?;
        // What stands behind the last record is older: another opening's, or an earlier turn's.
        let Some(record) = Record::decode(&head).filter(|record| {
            record.lineage == lineage && expected.is_none_or(|expected| record.first == expected)
        }) else {
            return Ok(());
        };
        expected = Some(record.last().saturating_add(1));
        found.push(Found { record, segment, at: script });
        at = script.saturating_add(u64::from(record.length));
    }
}

/// The script of a record, if it is whole.
fn script(tape: &dyn Tape, record: &Record, at: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(record.length).ok()?];
    tape.read(&mut bytes, at).ok()?;
    record.is_of(&bytes).then_some(bytes)
}
