//! The SQL statements of every table, built once from its columns, and combinations that write
//! several tables at once.

use super::{Column, Kind, Table, TableId};
use std::fmt::Write;
use std::sync::LazyLock;

/// The statements of one table. Parameters are one array per column. Writing statements take the
/// expected number of rows as the last parameter and fail on a smaller number.
#[derive(Debug)]
pub(crate) struct Statements {
    /// Reads rows by key.
    pub(crate) find: String,
    /// Reads rows by key and locks them for the transaction.
    pub(crate) lock: String,
    pub(crate) insert: String,
    pub(crate) update: String,
    pub(crate) delete: String,
}

/// The kind of a write. `Update` and `Delete` take a further array with the expected last writer of
/// every row, or NULL for locked rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Update,
    Delete,
    Insert,
}

/// One part of a statement: the verb and its table.
pub(crate) type Part = (Verb, TableId);

/// The rank of a part in the order of writes.
///
/// New claims come first. No other insertion may have to wait for a concurrent transaction, so the
/// wait happens before this transaction holds locks. Changes of existing rows follow, table by
/// table in the lock order of all processes. All other new rows come last.
pub(crate) fn write_order((verb, table): Part) -> (u8, TableId) {
    let phase = match (verb, table) {
        (Verb::Insert, TableId::Claim) => 0,
        (Verb::Update | Verb::Delete, _) => 1,
        (Verb::Insert, _) => 2,
    };
    (phase, table)
}

/// Combinations of parts that are frequent enough to have one statement: charges opened and settled
/// in one group, settled, opened, and decisions kept at once. A statement costs the server as much
/// as several rows. Each combination is in [`write_order`]; larger combinations come first.
pub(crate) const COMBINED: [&[Part]; 4] = [
    &[
        (Verb::Insert, TableId::Claim),
        (Verb::Update, TableId::Claim),
        (Verb::Update, TableId::Charge),
        (Verb::Delete, TableId::Outbox),
        (Verb::Insert, TableId::Charge),
        (Verb::Insert, TableId::Outbox),
        (Verb::Insert, TableId::Audit),
    ],
    &[
        (Verb::Update, TableId::Claim),
        (Verb::Update, TableId::Charge),
        (Verb::Delete, TableId::Outbox),
        (Verb::Insert, TableId::Audit),
    ],
    &[
        (Verb::Insert, TableId::Claim),
        (Verb::Insert, TableId::Charge),
        (Verb::Insert, TableId::Outbox),
        (Verb::Insert, TableId::Audit),
    ],
    &[(Verb::Insert, TableId::Claim), (Verb::Insert, TableId::Audit)],
];

static ALL: LazyLock<Vec<Statements>> = LazyLock::new(|| TableId::ALL.map(build).into());

/// The statements of a table.
pub(crate) fn statements(table: TableId) -> &'static Statements {
    // `ALL` has one entry per table, in the order of `TableId::ALL`.
    let index = TableId::ALL.iter().position(|other| *other == table).unwrap_or(0);
    &ALL[index]
}

/// The statement of a single part.
pub(crate) fn single((verb, table): Part) -> &'static str {
    let statements = statements(table);
    match verb {
        Verb::Update => &statements.update,
        Verb::Delete => &statements.delete,
        Verb::Insert => &statements.insert,
    }
}

/// The largest combination contained in these parts. The remaining parts are written earlier and
/// must keep the lock order: only locked rows and minted ids, which are unknown to other processes,
/// qualify.
pub(crate) fn largest_combination(parts: &[Part]) -> Option<&'static [Part]> {
    let fits = |combination: &[Part]| {
        let mut remaining = parts.iter().filter(|part| !combination.contains(part));
        let keeps_order = |(verb, table): &Part| match verb {
            Verb::Insert => table.is_minted(),
            Verb::Update | Verb::Delete => *table > TableId::Outbox,
        };
        combination.iter().all(|part| parts.contains(part)) && remaining.all(keeps_order)
    };
    COMBINED.into_iter().find(|combination| fits(combination))
}

fn build(id: TableId) -> Statements {
    let table = id.table();
    let keys: Vec<Column> = table.columns.iter().take(table.key).copied().collect();
    let by_key = format!(
        "SELECT {} FROM {} AS k JOIN {} AS t ON {} ORDER BY {}",
        list(&table),
        rows(keys.iter(), 1),
        table.name,
        same(&keys, "k"),
        join(keys.iter().map(|key| format!("t.{}", key.name))),
    );
    Statements {
        lock: format!("{by_key} FOR UPDATE OF t"),
        find: by_key,
        insert: write((Verb::Insert, id)),
        update: write((Verb::Update, id)),
        delete: write((Verb::Delete, id)),
    }
}

fn write(part: Part) -> String {
    let Combination { ctes, all_written, .. } = combine(&[part]);
    format!("WITH {ctes} SELECT {all_written}")
}

/// Parts as the beginning of a statement.
pub(super) struct Combination {
    /// The parts as common table expressions, in order.
    pub(super) ctes: String,
    /// The condition that all expected rows were written. PostgreSQL evaluates it after all parts.
    pub(super) all_written: String,
    /// The number of the first parameter after those of the parts.
    pub(super) next_parameter: usize,
}

pub(super) fn combine(parts: &[Part]) -> Combination {
    let (mut ctes, mut counts, mut first) = (Vec::new(), Vec::new(), 1_usize);
    for (number, &(verb, id)) in parts.iter().enumerate() {
        let table = id.table();
        let columns = sent(&table, verb);
        ctes.push(format!("p{number} AS ({} RETURNING 1)", part(&table, verb, &columns, first)));
        counts.push(format!("SELECT 1 FROM p{number}"));
        first = first.saturating_add(columns.len());
    }
    let all_written = format!(
        "require_row_count((SELECT count(*) FROM ({}) AS written), ${first}::bigint)",
        counts.join(" UNION ALL ")
    );
    Combination { ctes: ctes.join(", "), all_written, next_parameter: first.saturating_add(1) }
}

/// The columns that a part takes as parameters.
fn sent(table: &Table, verb: Verb) -> Vec<Column> {
    let sent = table.columns.iter().enumerate().filter(|(index, column)| match verb {
        Verb::Insert => true,
        Verb::Update => *index < table.key || column.moves,
        Verb::Delete => *index < table.key,
    });
    let mut columns: Vec<Column> = sent.map(|(_, column)| *column).collect();
    if verb != Verb::Insert {
        columns.push(WRITTEN_BY);
    }
    columns
}

/// `first` is the number of the part's first parameter.
fn part(table: &Table, verb: Verb, columns: &[Column], first: usize) -> String {
    let (name, rows) = (table.name, rows(columns.iter(), first));
    let keys: Vec<Column> = table.columns.iter().take(table.key).copied().collect();
    // A row whose last writer differs is not written, and the row count then fails the statement.
    let unchanged =
        || format!("WHERE {} AND (u.written_by IS NULL OR t.xmin = u.written_by::xid)", same(&keys, "u"));
    match verb {
        Verb::Insert => {
            let names = join(columns.iter().map(|column| column.name.to_owned()));
            format!(
                "INSERT INTO {name} ({names}) SELECT {} FROM {rows} AS u",
                join(columns.iter().map(value))
            )
        }
        Verb::Update => {
            let moving = columns.iter().filter(|column| column.moves);
            let changes = join(moving.map(|column| format!("{} = {}", column.name, value(column))));
            format!("UPDATE {name} AS t SET {changes} FROM {rows} AS u {}", unchanged())
        }
        Verb::Delete => format!("DELETE FROM {name} AS t USING {rows} AS u {}", unchanged()),
    }
}

fn same(keys: &[Column], alias: &str) -> String {
    let pairs = keys.iter().map(|key| format!("t.{0} = {alias}.{0}", key.name));
    pairs.collect::<Vec<_>>().join(" AND ")
}

/// The columns that a read selects from `t`.
pub(super) fn list(table: &Table) -> String {
    let mut list = join(table.columns.iter().map(|column| match column.kind {
        Kind::Json | Kind::Sum => format!("t.{0}::text AS {0}", column.name),
        Kind::Int | Kind::Bool | Kind::Text | Kind::Bytes => format!("t.{}", column.name),
    }));
    if !table.more.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(list, ", {}", table.more);
    }
    list
}

/// A read of a range; `rest` is everything after `FROM table AS t`.
pub(super) fn range(id: TableId, rest: &str) -> String {
    let table = id.table();
    format!("SELECT {} FROM {} AS t {rest}", list(&table), table.name)
}

fn value(column: &Column) -> String {
    match column.kind {
        Kind::Json => format!("u.{}::jsonb", column.name),
        Kind::Sum => format!("u.{}::numeric", column.name),
        Kind::Int | Kind::Bool | Kind::Text | Kind::Bytes => format!("u.{}", column.name),
    }
}

/// The transactions that must have written rows last.
const WRITTEN_BY: Column = Column { name: "written_by", kind: Kind::Text, moves: false };

/// Numbered parameters, one array per column, as rows. `unnest` stands in the select list and not
/// in FROM: PostgreSQL then streams rows instead of materialising whole columns first.
pub(super) fn rows<'c>(columns: impl Iterator<Item = &'c Column>, first: usize) -> String {
    let arrays = columns.zip(first..).map(|(column, number)| {
        let kind = match column.kind {
            Kind::Int => "bigint",
            Kind::Bool => "boolean",
            Kind::Text | Kind::Json | Kind::Sum => "text",
            Kind::Bytes => "bytea",
        };
        format!("unnest(${number}::{kind}[]) AS {}", column.name)
    });
    format!("(SELECT {})", join(arrays))
}

/// An insertion of all columns of a table; `first` is the number of its first parameter.
pub(super) fn insert(id: TableId, first: usize) -> String {
    let table = id.table();
    part(&table, Verb::Insert, table.columns, first)
}

pub(super) fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combined_parts_are_in_lock_order_and_larger_combinations_come_first() {
        for parts in COMBINED {
            assert!(parts.iter().copied().map(write_order).is_sorted(), "{parts:?}");
        }
        assert!(COMBINED.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
    }

    #[test]
    fn a_part_that_would_break_the_lock_order_prevents_the_combination() {
        let settling = COMBINED[1];
        assert_eq!(largest_combination(settling), Some(settling));
        let with = |part: Part| largest_combination(&[settling, &[part]].concat());
        for apart in [
            (Verb::Update, TableId::Operation),
            (Verb::Update, TableId::Outbox),
            (Verb::Insert, TableId::Claim),
            (Verb::Insert, TableId::Name),
        ] {
            assert_eq!(with(apart), None, "{apart:?}");
        }
        for beside in [(Verb::Update, TableId::Balance), (Verb::Insert, TableId::Hold)] {
            assert_eq!(with(beside), Some(settling), "{beside:?}");
        }
        assert_eq!(largest_combination(&[(Verb::Insert, TableId::Audit)]), None);
    }
}
