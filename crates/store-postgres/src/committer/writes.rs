//! What a group writes: for each row what it was and what it became, whatever happened to it in between.

use super::Job;
use crate::session::{Session, Step};
use crate::tables::{self, Batch, Place, commits, journal, statements};
use counterfoil_core::types::time::Time;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, Row, RowKey};
use std::collections::HashSet;
use tokio_postgres::types::ToSql;

/// Everything between the judge and the commit. Borrowed from the sets and the image they left.
pub(super) struct Writes<'a> {
    tables: Vec<Write<'a>>,
    ids: Vec<i64>,
    touched: Vec<&'a str>,
    sets: i64,
    now: i64,
    entries: Batch<'a>,
}

/// One statement.
struct Write<'a> {
    sql: &'static str,
    batch: Batch<'a>,
    rows: i64,
    /// Whether the statement is told how many rows are meant.
    counted: bool,
}

impl<'a> Writes<'a> {
    pub(super) fn of(
        admitted: &[&'a Job],
        image: &'a Image,
        present: &'a HashSet<RowKey>,
        now: Time,
    ) -> Writes<'a> {
        let mut keys: Vec<RowKey> =
            admitted.iter().flat_map(|job| job.set.changes()).map(Change::key).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut writes = Vec::new();
        for of_table in keys.chunk_by(|one, other| Place::of(one) == Place::of(other)) {
            if let Some(first) = of_table.first() {
                table(Place::of(first), of_table, image, present, &mut writes);
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
            tables: writes,
            ids: admitted.iter().map(|job| job.set.id().to_i64()).collect(),
            touched: admitted.iter().map(|job| job.touched.as_str()).collect(),
            sets: i64::try_from(admitted.len()).unwrap_or(i64::MAX),
            now: now.ms(),
            entries,
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
        all
    }

    /// How many steps come before the one that takes positions.
    pub(super) fn rows_before_head(&self) -> usize {
        self.tables.len()
    }

    /// The rows first, table after table; then the head, which everybody waits for; then what needs its positions.
    pub(super) fn steps<'b>(&'b self, session: &'b Session) -> Vec<Step<'b>> {
        let mut steps: Vec<Step<'b>> = Vec::with_capacity(self.tables.len().saturating_add(3));
        for write in &self.tables {
            let mut parameters = write.batch.parameters();
            if write.counted {
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
        steps
    }
}

fn table<'a>(
    place: Place,
    keys: &[RowKey],
    image: &'a Image,
    present: &'a HashSet<RowKey>,
    writes: &mut Vec<Write<'a>>,
) {
    let (table, made) = (place.table(), statements(place));
    let (mut inserts, mut updates) = (Batch::rows(&table), Batch::rows(&table));
    let mut deletes = Batch::keys(&table);
    for key in keys {
        match (present.get(key), image.get(key)) {
            (None, Some(row)) => tables::put(row, &mut inserts),
            (Some(_), Some(row)) => tables::put(row, &mut updates),
            (Some(key), None) => tables::put_key(key, &mut deletes),
            // It came and went within the group.
            (None, None) => {}
        }
    }
    let all = [(&made.insert, inserts, false), (&made.update, updates, true), (&made.delete, deletes, true)];
    for (sql, batch, counted) in all {
        if batch.len() > 0 {
            writes.push(Write { sql, rows: batch.len(), batch, counted });
        }
    }
}
