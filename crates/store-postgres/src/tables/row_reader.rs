//! Decodes a row column by column into the core's types. An unreadable value is an error, never a
//! default.

use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// A stored value that this build cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

/// A cursor over the columns of a row.
#[derive(Debug)]
pub(crate) struct RowReader<'r> {
    row: &'r Row,
    table: &'static str,
    next: usize,
}

impl<'r> RowReader<'r> {
    pub(crate) fn new(row: &'r Row, table: &'static str) -> RowReader<'r> {
        RowReader { row, table, next: 0 }
    }

    /// Reads the next column without conversion.
    pub(crate) fn raw<T: FromSql<'r>>(&mut self) -> Result<T, Damage> {
        let at = self.next;
        self.next = at.saturating_add(1);
        self.row.try_get(at).map_err(|error| self.damage(&error.to_string()))
    }

    /// Reads the provider that a payment is bound to, from two columns.
    pub(crate) fn provider(&mut self) -> Result<ProviderBinding, Damage> {
        Ok(ProviderBinding { profile: self.raw::<&str>()?.into(), endpoint: self.raw::<&str>()?.into() })
    }

    pub(crate) fn int(&mut self) -> Result<i64, Damage> {
        self.raw()
    }

    /// Reads a number of a narrower or unsigned type.
    pub(crate) fn number<T: TryFrom<i64>>(&mut self) -> Result<T, Damage> {
        let value = self.int()?;
        T::try_from(value).map_err(|_| self.damage("it is out of range"))
    }

    pub(crate) fn time(&mut self) -> Result<Time, Damage> {
        self.int().map(Time::from_ms)
    }

    pub(crate) fn time_if(&mut self) -> Result<Option<Time>, Damage> {
        Ok(self.raw::<Option<i64>>()?.map(Time::from_ms))
    }

    pub(crate) fn digest(&mut self) -> Result<Digest, Damage> {
        self.array().map(Digest::from_bytes)
    }

    pub(crate) fn ulid(&mut self) -> Result<Ulid, Damage> {
        self.array().map(Ulid::from_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let bytes: &[u8] = self.raw()?;
        bytes.try_into().map_err(|_| self.damage("the length is wrong"))
    }

    pub(crate) fn asset(&mut self) -> Result<Asset, Damage> {
        self.word(|code| Asset::parse(code).ok())
    }

    /// Reads a sum of 128 bits.
    pub(crate) fn sum(&mut self) -> Result<i128, Damage> {
        self.word(|digits| digits.parse().ok())
    }

    /// Reads a text that `parse` must know.
    pub(crate) fn word<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Damage> {
        let text: &str = self.raw()?;
        parse(text).ok_or_else(|| self.damage("the stored value is unknown"))
    }

    /// Reads a text that `parse` must know, or NULL.
    pub(crate) fn word_if<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Damage> {
        match self.raw::<Option<&str>>()? {
            None => Ok(None),
            Some(text) => parse(text).map(Some).ok_or_else(|| self.damage("the stored value is unknown")),
        }
    }

    /// An error about the column that was read last.
    pub(crate) fn damage(&self, what: &str) -> Damage {
        let column = self.row.columns().get(self.next.saturating_sub(1)).map_or("?", |column| column.name());
        Damage(format!("{}.{column} is damaged: {what}", self.table))
    }
}
