//! What a group writes: for each row what it was and what it became, whatever happened to it in between.

use super::Job;
use crate::session::{Session, Step};
use crate::tables::{self, Batch, Place, commits, journal, statements};
use crate::wake;
use counterfoil_core::types::time::Time;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, Row, RowKey};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::types::ToSql;

/// Rows that were there before the group; where they are only remembered, with the transaction that must have written
/// them last.
pub(super) type Present = HashMap<RowKey, Option<Arc<str>>>;

/// Everything between the judge and the commit. Borrowed from the sets and the image they left.
pub(super) struct Writes<'a> {
    tables: Vec<Write<'a>>,
    ids: Vec<i64>,
    touched: Vec<&'a str>,
    sets: i64,
    now: i64,
    entries: Batch<'a>,
    /// Keys of the claims that somebody may wait for.
    settled: Vec<i64>,
}

/// One statement.
struct Write<'a> {
    sql: &'static str,
    batch: Batch<'a>,
    rows: i64,
    /// For rows that were there: who must have written each last, if that matters.
    written_by: Option<Vec<Option<&'a str>>>,
}

impl<'a> Writes<'a> {
    pub(super) fn of(admitted: &[&'a Job], image: &'a Image, present: &'a Present, now: Time) -> Writes<'a> {
        let mut keys: Vec<RowKey> =
            admitted.iter().flat_map(|job| job.set.changes()).map(Change::key).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut changes, mut inserts) = (Vec::new(), Vec::new());
        for of_table in keys.chunk_by(|one, other| Place::of(one) == Place::of(other)) {
            if let Some(first) = of_table.first() {
                table(Place::of(first), of_table, image, present, &mut changes, &mut inserts);
            }
        }
        let mut entries = Batch::over(journal::ENTRY.iter().map(|column| column.kind));
        for (turn, job) in (1_i64..).zip(admitted) {
            for change in job.set.changes() {
                if let Change::Insert(row) = change
                    && let Row::Transaction(transaction) = &**row
                {
                    journal::put_entries(transaction, turn, &mut entries);
                }
            }
        }
        Writes {
            tables: changes.into_iter().chain(inserts).collect(),
            ids: admitted.iter().map(|job| job.set.id().to_i64()).collect(),
            touched: admitted.iter().map(|job| job.touched.as_str()).collect(),
            sets: i64::try_from(admitted.len()).unwrap_or(i64::MAX),
            now: now.ms(),
            entries,
            settled: admitted.iter().flat_map(|job| job.set.changes()).filter_map(wake::settled).collect(),
        }
    }

    /// Whether something is in it that the database cannot hold.
    pub(super) fn are_unfit(&self) -> bool {
        self.entries.is_unfit() || self.tables.iter().any(|write| write.batch.is_unfit())
    }

    pub(super) fn statements(&self) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = self.tables.iter().map(|write| write.sql).collect();
        all.push(commits::SEAL);
        if self.entries.len() > 0 {
            all.push(journal::INSERT_ENTRIES.as_str());
        }
        if !self.settled.is_empty() {
            all.push(wake::TELL);
        }
        all
    }

    /// How many steps come before the one that takes positions.
    pub(super) fn rows_before_head(&self) -> usize {
        self.tables.len()
    }

    /// Rows that were there first, table after table: this may be what locks them, and locks come before insertions in
    /// every process. Then new rows, table after table; then the head, which everybody waits for; then what needs its positions.
    pub(super) fn steps<'b>(&'b self, session: &'b Session) -> Vec<Step<'b>> {
        let mut steps: Vec<Step<'b>> = Vec::with_capacity(self.tables.len().saturating_add(3));
        for write in &self.tables {
            let mut parameters = write.batch.parameters();
            if let Some(written_by) = &write.written_by {
                parameters.push(written_by);
                parameters.push(&write.rows);
            }
            steps.push(session.query(write.sql, parameters));
        }
        let sealing: Vec<&(dyn ToSql + Sync)> = vec![&self.ids, &self.touched, &self.sets, &self.now];
        steps.push(session.query(commits::SEAL, sealing));
        if self.entries.len() > 0 {
            let mut parameters = self.entries.parameters();
            parameters.push(&self.sets);
            steps.push(session.query(journal::INSERT_ENTRIES.as_str(), parameters));
        }
        // Behind the head, so that one group at a time holds these locks: the server has room for only so many.
        if !self.settled.is_empty() {
            steps.push(session.query(wake::TELL, vec![&self.settled]));
        }
        steps
    }
}

fn table<'a>(
    place: Place,
    keys: &[RowKey],
    image: &'a Image,
    present: &'a Present,
    changes: &mut Vec<Write<'a>>,
    inserts: &mut Vec<Write<'a>>,
) {
    let (table, made) = (place.table(), statements(place));
    let (mut inserted, mut updated) = (Batch::rows(&table), Batch::rows(&table));
    let mut deleted = Batch::keys(&table);
    let (mut updated_from, mut deleted_from) = (Vec::new(), Vec::new());
    for key in keys {
        match (present.get_key_value(key), image.get(key)) {
            (None, Some(row)) => tables::put(row, &mut inserted),
            (Some((_, by)), Some(row)) => {
                tables::put(row, &mut updated);
                updated_from.push(by.as_deref());
            }
            (Some((key, by)), None) => {
                tables::put_key(key, &mut deleted);
                deleted_from.push(by.as_deref());
            }
            // It came and went within the group.
            (None, None) => {}
        }
    }
    for (sql, batch, from) in [(&made.update, updated, updated_from), (&made.delete, deleted, deleted_from)] {
        if batch.len() > 0 {
            changes.push(Write { sql, rows: batch.len(), batch, written_by: Some(from) });
        }
    }
    if inserted.len() > 0 {
        inserts.push(Write { sql: &made.insert, rows: inserted.len(), batch: inserted, written_by: None });
    }
}
