//! The five statements of every table, made once from its columns.

use super::{Column, Kind, Place, Table};
use std::fmt::Write;
use std::sync::LazyLock;

/// The statements of one table. Parameters are one array per column. `update` and `delete` take two more: an array of
/// the transactions that must have written the rows last, where that matters; and the number of rows meant. They fail
/// if they hit fewer.
#[derive(Debug)]
pub(crate) struct Statements {
    /// Rows by key.
    pub(crate) find: String,
    /// Rows by key, locked for the transaction.
    pub(crate) lock: String,
    pub(crate) insert: String,
    pub(crate) update: String,
    pub(crate) delete: String,
}

static ALL: LazyLock<Vec<Statements>> = LazyLock::new(|| Place::ALL.map(|place| make(&place.table())).into());

/// The statements of a table.
pub(crate) fn statements(place: Place) -> &'static Statements {
    // One entry per place, in their order.
    let index = Place::ALL.iter().position(|other| *other == place).unwrap_or(0);
    &ALL[index]
}

fn make(table: &Table) -> Statements {
    let name = table.name;
    let keys: Vec<Column> = table.columns.iter().take(table.key).copied().collect();
    let names = |columns: &[Column]| join(columns.iter().map(|column| column.name.to_owned()));
    let same = |alias: &str| {
        let pairs = keys.iter().map(|key| format!("t.{0} = {alias}.{0}", key.name));
        pairs.collect::<Vec<_>>().join(" AND ")
    };
    let by_key = format!(
        "SELECT {} FROM {} AS k JOIN {name} AS t ON {} ORDER BY {}",
        list(table),
        rows(&keys, None),
        same("k"),
        join(keys.iter().map(|key| format!("t.{}", key.name))),
    );
    let values = join(table.columns.iter().map(value));
    let changes = join(
        table
            .columns
            .iter()
            .filter(|column| column.moves)
            .map(|column| format!("{} = {}", column.name, value(column))),
    );
    // Rows of the arrays `u` over these columns, and only if they are as they were.
    let checked = |verb: String, from: &str, columns: &[Column]| {
        let meant = columns.len().saturating_add(2);
        format!(
            "WITH done AS ({verb} {from} {} AS u WHERE {} \
             AND (u.written_by IS NULL OR t.xmin = u.written_by::xid) RETURNING 1) \
             SELECT all_of(count(*), ${meant}::bigint) FROM done",
            rows(columns, Some(WRITTEN_BY)),
            same("u")
        )
    };
    Statements {
        lock: format!("{by_key} FOR UPDATE OF t"),
        find: by_key,
        insert: format!(
            "INSERT INTO {name} ({}) SELECT {values} FROM {} AS u",
            names(table.columns),
            rows(table.columns, None)
        ),
        update: checked(format!("UPDATE {name} AS t SET {changes}"), "FROM", table.columns),
        delete: checked(format!("DELETE FROM {name} AS t"), "USING", &keys),
    }
}

/// What a read selects of `t`.
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

/// A range of a table: everything behind `FROM table AS t`.
pub(super) fn range(place: Place, rest: &str) -> String {
    let table = place.table();
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

/// Numbered parameters, one array per column, as rows. Unnested in a list of results and not as tables: there the
/// server hands rows on one by one, here it would first store each column by itself.
pub(super) fn rows(columns: &[Column], one_more: Option<Column>) -> String {
    let arrays = columns.iter().chain(&one_more).zip(1..).map(|(column, number)| {
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

pub(super) fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
