//! What a group writes: for each row what it was and what it became, whatever happened to it in between.

use super::Job;
use crate::session::{Session, Step};
use crate::shared::Shared;
use crate::tables::commits::{Log, Sealing, words};
use crate::tables::{self, Batch, Looks, Part, Place, Verb, alone, journal, most_of, mostly_empty, turn};
use crate::wake;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, KeyMap, Row, RowKey};
use std::sync::Arc;
use tokio_postgres::types::ToSql;

/// Rows that were there before the group; where they are only remembered, with the transaction that must have written
/// them last.
pub(super) type Present = KeyMap<Option<Arc<str>>>;

/// Everything between the judge and the commit. Borrowed from the sets and the image they left.
pub(super) struct Writes<'a> {
    statements: Vec<Statement<'a>>,
    /// What the statement that seals the group writes besides.
    sealed: Sealed<'a>,
    ids: Vec<i64>,
    touched: Touched<'a>,
    sets: i64,
    now: i64,
    transactions: Batch<'a>,
    entries: Batch<'a>,
    /// Keys of the claims that somebody may wait for.
    settled: Vec<i64>,
}

/// What each set touches, as the log of commits keeps it.
enum Touched<'a> {
    Words(Vec<String>),
    Bytes(Vec<&'a [u8]>),
}

impl<'a> Touched<'a> {
    fn of(admitted: &[&'a Job], log: Log) -> Touched<'a> {
        match log {
            Log::BySet => {
                Touched::Words(admitted.iter().map(|job| words::encode(job.set.changes())).collect())
            }
            Log::ByGroup => Touched::Bytes(admitted.iter().map(|job| job.touched.as_slice()).collect()),
        }
    }

    fn log(&self) -> Log {
        match self {
            Touched::Words(_) => Log::BySet,
            Touched::Bytes(_) => Log::ByGroup,
        }
    }

    fn parameter(&self) -> &(dyn ToSql + Sync) {
        match self {
            Touched::Words(words) => words,
            Touched::Bytes(bytes) => bytes,
        }
    }
}

/// One statement, and how many rows it is meant to write.
struct Statement<'a> {
    write: Write<'a>,
    rows: i64,
}

/// Parts that go with the seal, and how many rows they are meant to write.
#[derive(Default)]
struct Sealed<'a> {
    parts: &'static [Part],
    /// What is mostly empty in them is, and is left out.
    thin: bool,
    writes: Vec<Write<'a>>,
    rows: i64,
}

/// What is done to rows of one table.
struct Write<'a> {
    part: Part,
    batch: Batch<'a>,
    /// For rows that were there: who must have written each last, if that matters.
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
        for of_table in keys.chunk_by(|one, other| Place::of(one) == Place::of(other)) {
            if let Some(first) = of_table.first() {
                table(Place::of(first), of_table, image, present, shared.looks, &mut changes, &mut inserts);
            }
        }
        // Transactions go with their entries.
        let opened = inserts.iter().position(|write| write.part.1 == Place::Transaction);
        let transactions = opened.map(|at| inserts.remove(at).batch);
        let opening = transactions.as_ref().map_or(0, Batch::len);
        let room = usize::try_from(opening).unwrap_or(0).saturating_mul(2);
        let mut entries = Batch::over(journal::ENTRY.iter().map(|column| column.kind)).with_room(room);
        for (turn, job) in (1_i64..).zip(admitted) {
            for change in job.set.changes() {
                if let Change::Insert(row) = change
                    && let Row::Transaction(transaction) = &**row
                {
                    journal::put_entries(transaction, turn, &mut entries);
                }
            }
        }
        let (statements, sealed) = arranged(changes, inserts);
        Writes {
            statements,
            sealed,
            ids: admitted.iter().map(|job| job.set.id().to_i64()).collect(),
            touched: Touched::of(admitted, shared.log()),
            sets: i64::try_from(admitted.len()).unwrap_or(i64::MAX),
            now: shared.clock.now().ms(),
            transactions: transactions.unwrap_or_else(|| Batch::rows(&Place::Transaction.table())),
            entries,
            settled: admitted.iter().flat_map(|job| job.set.changes()).filter_map(wake::settled).collect(),
        }
    }

    /// Whether something is in it that the database cannot hold.
    pub(super) fn are_unfit(&self) -> bool {
        let mut writes = self.statements.iter().map(|statement| &statement.write).chain(&self.sealed.writes);
        self.transactions.is_unfit() || self.entries.is_unfit() || writes.any(|write| write.batch.is_unfit())
    }

    pub(super) fn statements(&self) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = self.statements.iter().map(Statement::sql).collect();
        all.push(self.sealing().sql());
        all
    }

    /// New claims, then rows that were there, table after table: this may be what locks them. Then other new rows; then the
    /// head, which everybody waits for, and what needs its positions.
    pub(super) fn steps<'b>(&'b self, session: &'b Session) -> Vec<Step<'b>> {
        let mut steps: Vec<Step<'b>> = Vec::with_capacity(self.statements.len().saturating_add(3));
        for statement in &self.statements {
            let mut parameters = Vec::new();
            statement.write.give(&mut parameters);
            parameters.push(&statement.rows);
            steps.push(session.query(statement.sql(), parameters));
        }
        let sealing = self.sealing();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = Vec::new();
        if !sealing.parts.is_empty() {
            for write in &self.sealed.writes {
                write.give(&mut parameters);
            }
            parameters.push(&self.sealed.rows);
        }
        let always: [&(dyn ToSql + Sync); 4] = [&self.ids, self.touched.parameter(), &self.sets, &self.now];
        parameters.extend(always);
        if sealing.posts {
            parameters.extend(self.transactions.parameters());
            parameters.extend(self.entries.parameters());
        }
        if sealing.tells {
            parameters.push(&self.settled);
        }
        steps.push(session.query(sealing.sql(), parameters));
        steps
    }

    fn sealing(&self) -> Sealing {
        let (posts, tells) = (self.transactions.len() > 0, !self.settled.is_empty());
        Sealing { log: self.touched.log(), parts: self.sealed.parts, thin: self.sealed.thin, posts, tells }
    }
}

impl<'a> Write<'a> {
    /// Whether all is empty that mostly is.
    fn is_thin(&self) -> bool {
        self.spare().all(|column| self.batch.is_empty_at(column))
    }

    fn leave_out(&mut self) {
        let spare: Vec<usize> = self.spare().collect();
        for column in spare {
            self.batch.leave_out(column);
        }
    }

    /// Columns that are mostly empty.
    fn spare(&self) -> impl Iterator<Item = usize> {
        let (part, columns) = (self.part, self.part.1.table().columns);
        let found = columns.iter().enumerate();
        found.filter(move |(_, column)| mostly_empty(part).contains(&column.name)).map(|(index, _)| index)
    }

    fn give<'b>(&'b self, parameters: &mut Vec<&'b (dyn ToSql + Sync)>) {
        parameters.extend(self.batch.parameters());
        if let Some(written_by) = &self.written_by {
            parameters.push(written_by);
        }
    }

    fn by_itself(self) -> Statement<'a> {
        Statement { rows: self.batch.len(), write: self }
    }
}

impl Statement<'_> {
    fn sql(&self) -> &'static str {
        alone(self.write.part)
    }
}

/// Few statements, in an order in which nobody waits in a circle: what does not go with the seal is of rows that are locked
/// already, or that nobody else can know of.
fn arranged<'a>(changes: Vec<Write<'a>>, inserts: Vec<Write<'a>>) -> (Vec<Statement<'a>>, Sealed<'a>) {
    let mut all = changes;
    all.extend(inserts);
    all.sort_by_key(|write| turn(write.part));
    let parts: Vec<Part> = all.iter().map(|write| write.part).collect();
    let together = most_of(&parts).unwrap_or_default();
    let (mut writes, others): (Vec<Write<'a>>, Vec<Write<'a>>) =
        all.into_iter().partition(|write| together.contains(&write.part));
    let rows = writes.iter().map(|write| write.batch.len()).fold(0, i64::saturating_add);
    let thin = !writes.is_empty() && writes.iter().all(Write::is_thin);
    if thin {
        writes.iter_mut().for_each(Write::leave_out);
    }
    (others.into_iter().map(Write::by_itself).collect(), Sealed { parts: together, thin, writes, rows })
}

fn table<'a>(
    place: Place,
    keys: &[RowKey],
    image: &'a Image,
    present: &'a Present,
    looks: Looks,
    changes: &mut Vec<Write<'a>>,
    inserts: &mut Vec<Write<'a>>,
) {
    let table = place.table();
    let room = keys.len();
    let mut inserted = Batch::rows(&table).with_room(room).with_looks(looks);
    let mut updated = Batch::changes(&table).with_room(room).with_looks(looks);
    let mut deleted = Batch::keys(&table).with_room(room);
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
    for (verb, batch, from) in [(Verb::Update, updated, updated_from), (Verb::Delete, deleted, deleted_from)]
    {
        if batch.len() > 0 {
            changes.push(Write { part: (verb, place), batch, written_by: Some(from) });
        }
    }
    if inserted.len() > 0 {
        inserts.push(Write { part: (Verb::Insert, place), batch: inserted, written_by: None });
    }
}
