//! Rows turned into columns: one array per column, as statements take them.

use super::{Kind, SweepSchedule, Table};
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::types::time::Time;
use std::borrow::Cow;
use tokio_postgres::types::ToSql;

/// The values of one column.
#[derive(Debug)]
enum Values<'a> {
    Int(Vec<Option<i64>>),
    Bool(Vec<Option<bool>>),
    Text(Vec<Option<Cow<'a, str>>>),
    Bytes(Vec<Option<Cow<'a, [u8]>>>),
    /// The statement does not take this column.
    Unsent,
}

/// Rows on their way to a statement. Values are added in the order of the columns, row after row.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    columns: Vec<Values<'a>>,
    next: usize,
    rows: i64,
    capacity: usize,
    unfit: bool,
    /// Set for batches that may contain claims.
    schedule: Option<SweepSchedule>,
}

impl<'a> Batch<'a> {
    /// A batch over all columns of a table.
    pub(crate) fn rows(table: &Table) -> Batch<'a> {
        Batch::over(table.columns.iter().map(|column| column.kind))
    }

    /// Reserves room for that many rows when the first row is added.
    pub(crate) fn with_capacity(self, capacity: usize) -> Batch<'a> {
        Batch { capacity, ..self }
    }

    pub(crate) fn with_schedule(self, schedule: SweepSchedule) -> Batch<'a> {
        Batch { schedule: Some(schedule), ..self }
    }

    /// A batch of updates: over all columns of a table, of which only the key and the changeable
    /// ones are sent.
    pub(crate) fn changes(table: &Table) -> Batch<'a> {
        let mut batch = Batch::rows(table);
        let columns = table.columns.iter().zip(&mut batch.columns).skip(table.key);
        for (_, values) in columns.filter(|(column, _)| !column.moves) {
            *values = Values::Unsent;
        }
        batch
    }

    /// A batch over the key columns of a table.
    pub(crate) fn keys(table: &Table) -> Batch<'a> {
        Batch::over(table.columns.iter().take(table.key).map(|column| column.kind))
    }

    pub(crate) fn over(kinds: impl Iterator<Item = Kind>) -> Batch<'a> {
        let columns = kinds.map(|kind| match kind {
            Kind::Int => Values::Int(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
            Kind::Text | Kind::Json | Kind::Sum => Values::Text(Vec::new()),
            Kind::Bytes => Values::Bytes(Vec::new()),
        });
        Batch { columns: columns.collect(), next: 0, rows: 0, capacity: 0, unfit: false, schedule: None }
    }

    /// Adds the sweep time of a claim. A batch without a schedule cannot take claims.
    pub(crate) fn sweep_at(&mut self, claim: &Claim) {
        self.unfit |= self.schedule.is_none();
        let at = self.schedule.and_then(|schedule| schedule.sweep_at(claim));
        self.int(at.map(Time::ms));
    }

    pub(crate) fn int(&mut self, value: impl Into<Option<i64>>) {
        let value = value.into();
        let capacity = self.capacity;
        match self.next_column() {
            Some(Values::Int(values)) => add(values, value, capacity),
            Some(Values::Unsent) => {}
            Some(Values::Bool(_) | Values::Text(_) | Values::Bytes(_)) | None => self.unfit = true,
        }
    }

    /// Adds an unsigned number. PostgreSQL has no unsigned type: a number that does not fit makes
    /// the batch unfit.
    pub(crate) fn number(&mut self, value: u64) {
        let fitting = i64::try_from(value).ok();
        self.unfit |= fitting.is_none();
        self.int(fitting);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        let capacity = self.capacity;
        match self.next_column() {
            Some(Values::Bool(values)) => add(values, Some(value), capacity),
            Some(Values::Unsent) => {}
            Some(Values::Int(_) | Values::Text(_) | Values::Bytes(_)) | None => self.unfit = true,
        }
    }

    pub(crate) fn text(&mut self, value: impl Into<Cow<'a, str>>) {
        self.text_if(Some(value.into()));
    }

    pub(crate) fn text_if(&mut self, value: Option<impl Into<Cow<'a, str>>>) {
        let value = value.map(Into::into);
        let capacity = self.capacity;
        match self.next_column() {
            Some(Values::Text(values)) => add(values, value, capacity),
            Some(Values::Unsent) => {}
            Some(Values::Int(_) | Values::Bool(_) | Values::Bytes(_)) | None => self.unfit = true,
        }
    }

    pub(crate) fn bytes(&mut self, value: impl Into<Cow<'a, [u8]>>) {
        self.bytes_if(Some(value.into()));
    }

    pub(crate) fn bytes_if(&mut self, value: Option<impl Into<Cow<'a, [u8]>>>) {
        let value = value.map(Into::into);
        let capacity = self.capacity;
        match self.next_column() {
            Some(Values::Bytes(values)) => add(values, value, capacity),
            Some(Values::Unsent) => {}
            Some(Values::Int(_) | Values::Bool(_) | Values::Text(_)) | None => self.unfit = true,
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> i64 {
        self.rows
    }

    /// Whether the batch contains a value that the database cannot hold. Such a batch must not be
    /// sent.
    pub(crate) fn is_unfit(&self) -> bool {
        self.unfit
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

    fn next_column(&mut self) -> Option<&mut Values<'a>> {
        let at = self.next;
        if at == 0 {
            self.rows = self.rows.saturating_add(1);
        }
        self.next = if at.saturating_add(1) == self.columns.len() { 0 } else { at.saturating_add(1) };
        self.columns.get_mut(at)
    }
}

/// Reserves the expected capacity with the first value instead of growing by doubling.
fn add<T>(values: &mut Vec<T>, value: T, capacity: usize) {
    if values.is_empty() {
        values.reserve(capacity);
    }
    values.push(value);
}
