//! The writes of a group: for every row the difference between the states before and after the
//! group, without intermediate states.

use super::Job;
use crate::session::{Session, Step};
use crate::shared::Shared;
use crate::tables::seal::Sealing;
use crate::tables::{
    self, Batch, Part, SweepSchedule, TableId, Verb, journal, largest_combination, single, write_order,
};
use crate::wake;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, KeyMap, Row, RowKey};
use std::sync::Arc;
use tokio_postgres::types::ToSql;

/// Rows that existed before the group. The value is the transaction that must have written the row
/// last, or `None` if the row was read and locked.
pub(super) type Present = KeyMap<Option<Arc<str>>>;

/// All writes between the judge and the commit. Borrows from the sets and the image they left.
pub(super) struct Writes<'a> {
    statements: Vec<Statement<'a>>,
    /// The parts that the sealing statement writes.
    combined: Combined<'a>,
    ids: Vec<i64>,
    /// The encoded keys of every set.
    touched: Vec<&'a [u8]>,
    sets: i64,
    now: i64,
    transactions: Batch<'a>,
    entries: Batch<'a>,
    /// Notification keys of claims that another process may wait for.
    settled: Vec<i64>,
}

/// One statement and the number of rows it must write.
struct Statement<'a> {
    write: Write<'a>,
    rows: i64,
}

/// The parts of the sealing statement and the number of rows they must write.
#[derive(Default)]
struct Combined<'a> {
    parts: &'static [Part],
    writes: Vec<Write<'a>>,
    rows: i64,
}

/// The rows of one part.
struct Write<'a> {
    part: Part,
    batch: Batch<'a>,
    /// For existing rows: the expected last writer, or `None` for locked rows.
    written_by: Option<Vec<Option<&'a str>>>,
}

impl<'a> Writes<'a> {
    pub(super) fn of(
        admitted: &[&'a Job],
        image: &'a Image,
        present: &'a Present,
        shared: &Shared,
    ) -> Writes<'a> {
        let mut keys: Vec<RowKey> =
            admitted.iter().flat_map(|job| job.set.changes()).map(Change::key).collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut changes, mut inserts) = (Vec::new(), Vec::new());
        for of_table in keys.chunk_by(|one, other| TableId::of(one) == TableId::of(other)) {
            if let Some(first) = of_table.first() {
                let table = TableId::of(first);
                add_table(table, of_table, image, present, shared.schedule, &mut changes, &mut inserts);
            }
        }
        // The sealing statement inserts transactions together with entries.
        let opened = inserts.iter().position(|write| write.part.1 == TableId::Transaction);
        let transactions = opened.map(|at| inserts.remove(at).batch);
        let opening = transactions.as_ref().map_or(0, Batch::len);
        let capacity = usize::try_from(opening).unwrap_or(0).saturating_mul(2);
        let mut entries =
            Batch::over(journal::ENTRY.iter().map(|column| column.kind)).with_capacity(capacity);
        for (turn, job) in (1_i64..).zip(admitted) {
            for change in job.set.changes() {
                if let Change::Insert(row) = change
                    && let Row::Transaction(transaction) = &**row
                {
                    journal::put_entries(transaction, turn, &mut entries);
                }
            }
        }
        let (statements, combined) = arrange(changes, inserts);
        Writes {
            statements,
            combined,
            ids: admitted.iter().map(|job| job.set.id().to_i64()).collect(),
            touched: admitted.iter().map(|job| job.touched.as_slice()).collect(),
            sets: i64::try_from(admitted.len()).unwrap_or(i64::MAX),
            now: shared.clock.now().ms(),
            transactions: transactions.unwrap_or_else(|| Batch::rows(&TableId::Transaction.table())),
            entries,
            settled: admitted
                .iter()
                .flat_map(|job| job.set.changes())
                .filter_map(wake::settled_key)
                .collect(),
        }
    }

    /// Whether a value does not fit the database.
    pub(super) fn are_unfit(&self) -> bool {
        let mut writes =
            self.statements.iter().map(|statement| &statement.write).chain(&self.combined.writes);
        self.transactions.is_unfit() || self.entries.is_unfit() || writes.any(|write| write.batch.is_unfit())
    }

    pub(super) fn statements(&self) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = self.statements.iter().map(Statement::sql).collect();
        all.push(self.sealing().sql());
        all
    }

    /// The statements in write order. The sealing statement is last, because every other group
    /// waits for `head`.
    pub(super) fn steps<'b>(&'b self, session: &'b Session) -> Vec<Step<'b>> {
        let mut steps: Vec<Step<'b>> = Vec::with_capacity(self.statements.len().saturating_add(3));
        for statement in &self.statements {
            let mut parameters = Vec::new();
            statement.write.add_parameters(&mut parameters);
            parameters.push(&statement.rows);
            steps.push(session.query(statement.sql(), parameters));
        }
        let sealing = self.sealing();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = Vec::new();
        if !sealing.parts.is_empty() {
            for write in &self.combined.writes {
                write.add_parameters(&mut parameters);
            }
            parameters.push(&self.combined.rows);
        }
        let always: [&(dyn ToSql + Sync); 4] = [&self.ids, &self.touched, &self.sets, &self.now];
        parameters.extend(always);
        if sealing.posts {
            parameters.extend(self.transactions.parameters());
            parameters.extend(self.entries.parameters());
        }
        if sealing.notifies {
            parameters.push(&self.settled);
        }
        steps.push(session.query(sealing.sql(), parameters));
        steps
    }

    fn sealing(&self) -> Sealing {
        let (posts, notifies) = (self.transactions.len() > 0, !self.settled.is_empty());
        Sealing { parts: self.combined.parts, posts, notifies }
    }
}

impl<'a> Write<'a> {
    fn add_parameters<'b>(&'b self, parameters: &mut Vec<&'b (dyn ToSql + Sync)>) {
        parameters.extend(self.batch.parameters());
        if let Some(written_by) = &self.written_by {
            parameters.push(written_by);
        }
    }

    fn into_statement(self) -> Statement<'a> {
        Statement { rows: self.batch.len(), write: self }
    }
}

impl Statement<'_> {
    fn sql(&self) -> &'static str {
        single(self.write.part)
    }
}

/// Splits the writes into few statements in a deadlock-free order: writes outside the sealing
/// statement only touch locked rows and rows unknown to other processes.
fn arrange<'a>(changes: Vec<Write<'a>>, inserts: Vec<Write<'a>>) -> (Vec<Statement<'a>>, Combined<'a>) {
    let mut all = changes;
    all.extend(inserts);
    all.sort_by_key(|write| write_order(write.part));
    let parts: Vec<Part> = all.iter().map(|write| write.part).collect();
    let combined = largest_combination(&parts).unwrap_or_default();
    let (writes, others): (Vec<Write<'a>>, Vec<Write<'a>>) =
        all.into_iter().partition(|write| combined.contains(&write.part));
    let rows = writes.iter().map(|write| write.batch.len()).fold(0, i64::saturating_add);
    let statements = others.into_iter().map(Write::into_statement).collect();
    (statements, Combined { parts: combined, writes, rows })
}

fn add_table<'a>(
    id: TableId,
    keys: &[RowKey],
    image: &'a Image,
    present: &'a Present,
    schedule: SweepSchedule,
    changes: &mut Vec<Write<'a>>,
    inserts: &mut Vec<Write<'a>>,
) {
    let table = id.table();
    let capacity = keys.len();
    let mut inserted = Batch::rows(&table).with_capacity(capacity).with_schedule(schedule);
    let mut updated = Batch::changes(&table).with_capacity(capacity).with_schedule(schedule);
    let mut deleted = Batch::keys(&table).with_capacity(capacity);
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
            // The row was inserted and removed within the group.
            (None, None) => {}
        }
    }
    for (verb, batch, from) in [(Verb::Update, updated, updated_from), (Verb::Delete, deleted, deleted_from)]
    {
        if batch.len() > 0 {
            changes.push(Write { part: (verb, id), batch, written_by: Some(from) });
        }
    }
    if inserted.len() > 0 {
        inserts.push(Write { part: (Verb::Insert, id), batch: inserted, written_by: None });
    }
}
