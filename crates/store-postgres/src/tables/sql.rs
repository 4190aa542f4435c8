//! The statements of every table, made once from its columns, and those that write several tables at once.

use super::{Column, Kind, Place, Table};
use std::fmt::Write;
use std::sync::LazyLock;

/// The statements of one table. Parameters are one array per column; what writes takes the number of rows meant behind
/// them and fails if it hits fewer.
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

/// What is done to rows. `Update` and `Delete` take one more array: the transactions that must have written the rows
/// last, where that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Update,
    Delete,
    Insert,
}

/// A part of a statement: what is done to rows of one table.
pub(crate) type Part = (Verb, Place);

/// When a part has its turn. New claims come first: of what is inserted, only they may have to wait for who changes a row that is there, so
/// they are inserted while nothing is held that others could wait for. Then rows that are there, table by table in the order in which all
/// processes lock; then what else is new.
pub(crate) fn turn((verb, place): Part) -> (u8, Place) {
    let phase = match (verb, place) {
        (Verb::Insert, Place::Claim) => 0,
        (Verb::Update | Verb::Delete, _) => 1,
        (Verb::Insert, _) => 2,
    };
    (phase, place)
}

/// Parts that one statement does, because they mostly come together: to open charges, to settle them, both, and to keep
/// what is decided at once. A statement costs the server as much as several rows. In the order of [`turn`]; those with most
/// parts first.
pub(crate) const TOGETHER: [&[Part]; 4] = [
    &[
        (Verb::Insert, Place::Claim),
        (Verb::Update, Place::Claim),
        (Verb::Update, Place::Charge),
        (Verb::Delete, Place::Outbox),
        (Verb::Insert, Place::Charge),
        (Verb::Insert, Place::Outbox),
        (Verb::Insert, Place::Audit),
    ],
    &[
        (Verb::Update, Place::Claim),
        (Verb::Update, Place::Charge),
        (Verb::Delete, Place::Outbox),
        (Verb::Insert, Place::Audit),
    ],
    &[
        (Verb::Insert, Place::Claim),
        (Verb::Insert, Place::Charge),
        (Verb::Insert, Place::Outbox),
        (Verb::Insert, Place::Audit),
    ],
    &[(Verb::Insert, Place::Claim), (Verb::Insert, Place::Audit)],
];

/// Columns that mostly are empty in all rows of such a part: where they are, the statement says so itself instead of being sent a
/// list of nothing for each.
pub(crate) const fn mostly_empty((verb, place): Part) -> &'static [&'static str] {
    match (verb, place) {
        (Verb::Insert, Place::Claim) => {
            &["not_before", "replay_until", "tombstone_until", "status", "media", "location", "body"]
        }
        (Verb::Update, Place::Claim) => &["holder", "lease_until", "lease_ceiling", "not_before"],
        (Verb::Insert, Place::Charge) => {
            &["wallet_account", "wallet_amount", "working", "provider_reference", "failure", "decline_code"]
        }
        (Verb::Update, Place::Charge) => &["working", "failure", "decline_code"],
        (Verb::Insert, Place::Outbox) => &["payout", "hold", "parked"],
        _ => &[],
    }
}

static ALL: LazyLock<Vec<Statements>> = LazyLock::new(|| Place::ALL.map(make).into());

/// The statements of a table.
pub(crate) fn statements(place: Place) -> &'static Statements {
    // One entry per place, in their order.
    let index = Place::ALL.iter().position(|other| *other == place).unwrap_or(0);
    &ALL[index]
}

/// The statement that does one part.
pub(crate) fn alone((verb, place): Part) -> &'static str {
    let made = statements(place);
    match verb {
        Verb::Update => &made.update,
        Verb::Delete => &made.delete,
        Verb::Insert => &made.insert,
    }
}

/// The most of these parts that one statement does, if there is one; the others come before it. They must be of rows that are
/// locked already, or new and known to nobody else: else they would be out of order.
pub(crate) fn most_of(parts: &[Part]) -> Option<&'static [Part]> {
    let fits = |whole: &[Part]| {
        let mut left_over = parts.iter().filter(|part| !whole.contains(part));
        let in_order = |(verb, place): &Part| match verb {
            Verb::Insert => place.is_minted(),
            Verb::Update | Verb::Delete => *place > Place::Outbox,
        };
        whole.iter().all(|part| parts.contains(part)) && left_over.all(in_order)
    };
    TOGETHER.into_iter().find(|whole| fits(whole))
}

fn make(place: Place) -> Statements {
    let table = place.table();
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
        insert: write((Verb::Insert, place)),
        update: write((Verb::Update, place)),
        delete: write((Verb::Delete, place)),
    }
}

fn write(part: Part) -> String {
    let (done, meant, _) = parts(&[part], false);
    format!("WITH {done} SELECT {meant}")
}

/// The parts in their order, as the beginning of a statement; the condition that all rows meant were hit; and the number of
/// the first parameter behind theirs. The rows of one part after the other are counted, so whatever depends on the condition
/// comes after all of them. `thin`: what is mostly empty is, everywhere.
pub(super) fn parts(parts: &[Part], thin: bool) -> (String, String, usize) {
    let (mut done, mut counts, mut first) = (Vec::new(), Vec::new(), 1_usize);
    for (number, &one) in parts.iter().enumerate() {
        let (verb, place) = one;
        let table = place.table();
        let empty = if thin { mostly_empty(one) } else { &[] };
        let columns = written(&table, verb, empty);
        done.push(format!("p{number} AS ({} RETURNING 1)", part(&table, verb, &columns, empty, first)));
        counts.push(format!("SELECT 1 FROM p{number}"));
        first = first.saturating_add(columns.len());
    }
    let meant =
        format!("all_of((SELECT count(*) FROM ({}) AS hit), ${first}::bigint)", counts.join(" UNION ALL "));
    (done.join(", "), meant, first.saturating_add(1))
}

/// The columns a part is written from, without those that are empty.
fn written(table: &Table, verb: Verb, empty: &[&str]) -> Vec<Column> {
    let sent = table.columns.iter().enumerate().filter(|(_, column)| !empty.contains(&column.name));
    let of_table = sent.filter(|(index, column)| match verb {
        Verb::Insert => true,
        Verb::Update => *index < table.key || column.moves,
        Verb::Delete => *index < table.key,
    });
    let mut columns: Vec<Column> = of_table.map(|(_, column)| *column).collect();
    if verb != Verb::Insert {
        columns.push(WRITTEN_BY);
    }
    columns
}

/// `first`: the number of its first parameter.
fn part(table: &Table, verb: Verb, columns: &[Column], empty: &[&str], first: usize) -> String {
    let (name, rows) = (table.name, rows(columns.iter(), first));
    let keys: Vec<Column> = table.columns.iter().take(table.key).copied().collect();
    // Only rows that are as they were.
    let which =
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
            let changes = moving.map(|column| format!("{} = {}", column.name, value(column)));
            let changes = join(changes.chain(empty.iter().map(|name| format!("{name} = NULL"))));
            format!("UPDATE {name} AS t SET {changes} FROM {rows} AS u {}", which())
        }
        Verb::Delete => format!("DELETE FROM {name} AS t USING {rows} AS u {}", which()),
    }
}

fn same(keys: &[Column], alias: &str) -> String {
    let pairs = keys.iter().map(|key| format!("t.{0} = {alias}.{0}", key.name));
    pairs.collect::<Vec<_>>().join(" AND ")
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

/// Numbered parameters, one array per column, as rows. Unnested in a list of results and not as tables: rows are then
/// handed on one by one, and no column is stored by itself first.
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

/// Inserts rows of a table; `first` is the number of its first parameter.
pub(super) fn insert(place: Place, first: usize) -> String {
    let table = place.table();
    part(&table, Verb::Insert, table.columns, &[], first)
}

pub(super) fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_statement_stand_in_the_order_of_locks_and_most_come_first() {
        for parts in TOGETHER {
            assert!(parts.iter().copied().map(turn).is_sorted(), "{parts:?}");
        }
        assert!(TOGETHER.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
    }

    #[test]
    fn what_is_mostly_empty_is_a_column_that_the_part_writes() {
        for part in TOGETHER.concat() {
            let (verb, place) = part;
            let all = written(&place.table(), verb, &[]).len();
            let thin = written(&place.table(), verb, mostly_empty(part)).len();
            assert_eq!(thin + mostly_empty(part).len(), all, "{part:?}");
        }
    }

    #[test]
    fn a_change_that_would_be_made_out_of_order_keeps_parts_apart() {
        let settling = TOGETHER[1];
        assert_eq!(most_of(settling), Some(settling));
        let with = |part: Part| most_of(&[settling, &[part]].concat());
        for apart in [
            (Verb::Update, Place::Operation),
            (Verb::Update, Place::Outbox),
            (Verb::Insert, Place::Claim),
            (Verb::Insert, Place::Name),
        ] {
            assert_eq!(with(apart), None, "{apart:?}");
        }
        for beside in [(Verb::Update, Place::Balance), (Verb::Insert, Place::Hold)] {
            assert_eq!(with(beside), Some(settling), "{beside:?}");
        }
        assert_eq!(most_of(&[(Verb::Insert, Place::Audit)]), None);
    }
}
