//! Rows turned into columns: one array per column, as statements take them.

use super::{Kind, Looks, Table};
use std::borrow::Cow;
use tokio_postgres::types::ToSql;

/// The values of one column.
#[derive(Debug)]
enum Values<'a> {
    Int(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<Cow<'a, str>>>),
    Bytes(Vec<Option<Cow<'a, [u8]>>>),
    /// A statement that takes no such column.
    Unsent,
}

/// Rows on their way to a statement. Values come in the order of the columns, row after row.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    columns: Vec<Values<'a>>,
    next: usize,
    rows: i64,
    room: usize,
    unfit: bool,
    looks: Looks,
}

impl<'a> Batch<'a> {
    /// Over all columns of a table.
    pub(crate) fn rows(table: &Table) -> Batch<'a> {
        Batch::over(table.columns.iter().map(|column| column.kind))
    }

    /// With room for that many rows, taken with the first.
    pub(crate) fn with_room(self, room: usize) -> Batch<'a> {
        Batch { room, ..self }
    }

    /// Of tables whose claims are looked at like this.
    pub(crate) fn with_looks(self, looks: Looks) -> Batch<'a> {
        Batch { looks, ..self }
    }

    pub(crate) fn looks(&self) -> Looks {
        self.looks
    }

    /// Over all columns of a table, of which those that never change are not sent, except the key.
    pub(crate) fn changes(table: &Table) -> Batch<'a> {
        let mut batch = Batch::rows(table);
        let columns = table.columns.iter().zip(&mut batch.columns).skip(table.key);
        for (_, values) in columns.filter(|(column, _)| !column.moves) {
            *values = Values::Unsent;
        }
        batch
    }

    /// Over the key columns of a table.
    pub(crate) fn keys(table: &Table) -> Batch<'a> {
        Batch::over(table.columns.iter().take(table.key).map(|column| column.kind))
    }

    /// Over columns of these kinds.
    pub(crate) fn over(kinds: impl Iterator<Item = Kind>) -> Batch<'a> {
        let columns = kinds.map(|kind| match kind {
            Kind::Int => Values::Int(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
            Kind::Text | Kind::Json | Kind::Sum => Values::Text(Vec::new()),
            Kind::Bytes => Values::Bytes(Vec::new()),
        });
        Batch {
            columns: columns.collect(),
            next: 0,
            rows: 0,
            room: 0,
            unfit: false,
            looks: Looks::OnceSettled,
        }
    }

    pub(crate) fn int(&mut self, value: impl Into<Option<i64>>) {
        let value = value.into();
        let room = self.room;
        match self.turn() {
            Some(Values::Int(values)) => add(values, value, room),
            Some(Values::Unsent) => {}
            Some(Values::Bool(_) | Values::Text(_) | Values::Bytes(_)) | None => self.unfit = true,
        }
    }

    /// A number PostgreSQL has no unsigned type for. One that does not fit spoils the batch.
    pub(crate) fn number(&mut self, value: u64) {
        let fitting = i64::try_from(value).ok();
        self.unfit |= fitting.is_none();
        self.int(fitting);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        let room = self.room;
        match self.turn() {
            Some(Values::Bool(values)) => add(values, Some(value), room),
            Some(Values::Unsent) => {}
            Some(Values::Int(_) | Values::Text(_) | Values::Bytes(_)) | None => self.unfit = true,
        }
    }

    pub(crate) fn text(&mut self, value: impl Into<Cow<'a, str>>) {
        self.text_if(Some(value.into()));
    }

    pub(crate) fn text_if(&mut self, value: Option<impl Into<Cow<'a, str>>>) {
        let value = value.map(Into::into);
        let room = self.room;
        match self.turn() {
            Some(Values::Text(values)) => add(values, value, room),
            Some(Values::Unsent) => {}
            Some(Values::Int(_) | Values::Bool(_) | Values::Bytes(_)) | None => self.unfit = true,
        }
    }

    pub(crate) fn bytes(&mut self, value: impl Into<Cow<'a, [u8]>>) {
        self.bytes_if(Some(value.into()));
    }

    pub(crate) fn bytes_if(&mut self, value: Option<impl Into<Cow<'a, [u8]>>>) {
        let value = value.map(Into::into);
        let room = self.room;
        match self.turn() {
            Some(Values::Bytes(values)) => add(values, value, room),
            Some(Values::Unsent) => {}
            Some(Values::Int(_) | Values::Bool(_) | Values::Text(_)) | None => self.unfit = true,
        }
    }

    /// How many rows are in it.
    pub(crate) fn len(&self) -> i64 {
        self.rows
    }

    /// Whether a value is in it that the database cannot hold; then it must not be sent.
    pub(crate) fn is_unfit(&self) -> bool {
        self.unfit
    }

    /// Whether a column has no value in any row.
    pub(crate) fn is_empty_at(&self, column: usize) -> bool {
        match self.columns.get(column) {
            Some(Values::Int(values)) => values.iter().all(Option::is_none),
            Some(Values::Bool(values)) => values.iter().all(Option::is_none),
            Some(Values::Text(values)) => values.iter().all(Option::is_none),
            Some(Values::Bytes(values)) => values.iter().all(Option::is_none),
            Some(Values::Unsent) | None => true,
        }
    }

    /// A column that is empty need not be sent.
    pub(crate) fn leave_out(&mut self, column: usize) {
        if let Some(values) = self.columns.get_mut(column) {
            *values = Values::Unsent;
        }
    }

    /// The arrays, as parameters.
    pub(crate) fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.columns
            .iter()
            .filter_map(|values| match values {
                Values::Int(values) => Some(values as &(dyn ToSql + Sync)),
                Values::Bool(values) => Some(values),
                Values::Text(values) => Some(values),
                Values::Bytes(values) => Some(values),
                Values::Unsent => None,
            })
            .collect()
    }

    fn turn(&mut self) -> Option<&mut Values<'a>> {
        let at = self.next;
        if at == 0 {
            self.rows = self.rows.saturating_add(1);
        }
        self.next = if at.saturating_add(1) == self.columns.len() { 0 } else { at.saturating_add(1) };
        self.columns.get_mut(at)
    }
}

/// Lists grow by doubling; what is known to become long need not.
fn add<T>(values: &mut Vec<T>, value: T, room: usize) {
    if values.is_empty() {
        values.reserve(room);
    }
    values.push(value);
}
