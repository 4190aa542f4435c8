//! A log entry: the statements of one group with their values, in order.
//!
//! ```text
//! texts 2 | for each: length 2, SQL | for each statement: text 1, values 1, for each value: kind 1, content
//! kinds: 0 null | 1 integer 8 | 2 text, length 4 | 3 blob, length 4
//! ```
//!
//! An entry contains the SQL of its statements, so that a later release can replay entries of an
//! earlier release.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Result, ToSql};

/// An entry that is being written.
#[derive(Debug, Default)]
pub(crate) struct LogEntry {
    texts: Vec<&'static str>,
    body: Vec<u8>,
}

impl LogEntry {
    /// Removes all statements and keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.texts.clear();
        self.body.clear();
    }

    /// Appends a statement that changes one row.
    pub(crate) fn push(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> Result<()> {
        let text = self.number_of(sql)?;
        self.body.push(text);
        self.body
            .push(u8::try_from(values.len()).map_err(|_| unsupported("a statement has too many values"))?);
        for value in values {
            match value.to_sql()? {
                ToSqlOutput::Borrowed(value) => self.put(value)?,
                ToSqlOutput::Owned(value) => self.put((&value).into())?,
                _ => return Err(unsupported("a value of a kind that the log does not hold")),
            }
        }
        Ok(())
    }

    fn number_of(&mut self, sql: &'static str) -> Result<u8> {
        // Texts are compared by address. The same text at two addresses is written twice.
        let known = self.texts.iter().position(|text| std::ptr::eq(*text, sql));
        let number = known.unwrap_or(self.texts.len());
        if known.is_none() {
            self.texts.push(sql);
        }
        u8::try_from(number).map_err(|_| unsupported("a group has too many statements of different kinds"))
    }

    fn put(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Null => self.body.push(0),
            ValueRef::Integer(number) => {
                self.body.push(1);
                self.body.extend_from_slice(&number.to_le_bytes());
            }
            ValueRef::Text(bytes) => self.put_long(2, bytes)?,
            ValueRef::Blob(bytes) => self.put_long(3, bytes)?,
            ValueRef::Real(_) => return Err(unsupported("a number with a fraction is never stored")),
        }
        Ok(())
    }

    fn put_long(&mut self, kind: u8, bytes: &[u8]) -> Result<()> {
        let length = u32::try_from(bytes.len()).map_err(|_| unsupported("a value is too long"))?;
        self.body.push(kind);
        self.body.extend_from_slice(&length.to_le_bytes());
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let texts: usize = self.texts.iter().map(|text| text.len().saturating_add(2)).sum();
        let mut out = Vec::with_capacity(texts.saturating_add(self.body.len()).saturating_add(2));
        // The store's own statements never exceed these lengths.
        out.extend_from_slice(&u16::try_from(self.texts.len()).unwrap_or(u16::MAX).to_le_bytes());
        for text in &self.texts {
            out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&self.body);
        out
    }
}

fn unsupported(what: &'static str) -> Error {
    Error::ToSqlConversionFailure(what.into())
}

/// Executes the statements of an entry. Every statement must change exactly one row.
pub(crate) fn replay(db: &Connection, entry: &[u8]) -> Result<()> {
    let mut left = Bytes(entry);
    let mut texts = Vec::new();
    for _ in 0..left.number::<2>()? {
        let length = left.number::<2>()?;
        let text = std::str::from_utf8(left.take(length)?).map_err(|_| unreadable())?;
        texts.push(text);
    }
    while !left.0.is_empty() {
        let text = left.number::<1>()?;
        let mut statement = db.prepare_cached(texts.get(text).ok_or_else(unreadable)?)?;
        for place in 1..=left.number::<1>()? {
            statement.raw_bind_parameter(place, left.value()?)?;
        }
        let changed = statement.raw_execute()?;
        if changed != 1 {
            return Err(Error::StatementChangedRows(changed));
        }
    }
    Ok(())
}

fn unreadable() -> Error {
    Error::ToSqlConversionFailure("the write-ahead log holds an entry that cannot be read".into())
}

/// The bytes that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length).ok_or_else(unreadable)?;
        self.0 = left;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, left) = self.0.split_first_chunk::<N>().ok_or_else(unreadable)?;
        self.0 = left;
        Ok(*taken)
    }

    /// An unsigned number of `N` bytes.
    fn number<const N: usize>(&mut self) -> Result<usize> {
        let digits = self.chunk::<N>()?;
        Ok(digits.iter().rev().fold(0, |number, digit| (number << 8) | usize::from(*digit)))
    }

    fn value(&mut self) -> Result<ToSqlOutput<'a>> {
        Ok(match self.number::<1>()? {
            0 => ToSqlOutput::Owned(Value::Null),
            1 => ToSqlOutput::Owned(Value::Integer(i64::from_le_bytes(self.chunk()?))),
            2 => {
                let length = self.number::<4>()?;
                ToSqlOutput::Borrowed(ValueRef::Text(self.take(length)?))
            }
            3 => {
                let length = self.number::<4>()?;
                ToSqlOutput::Borrowed(ValueRef::Blob(self.take(length)?))
            }
            _ => return Err(unreadable()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::params;

    const INSERT: &str = "INSERT INTO things VALUES (?1, ?2, ?3, ?4)";
    const DELETE: &str = "DELETE FROM things WHERE number = ?1";

    fn things() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE things (number INTEGER PRIMARY KEY, word TEXT, bytes BLOB, none ANY) STRICT",
        )
        .unwrap();
        db
    }

    fn entry() -> Vec<u8> {
        let mut entry = LogEntry::default();
        entry.push(INSERT, params![i64::MIN, "ü", [0_u8, 255], None::<i64>]).unwrap();
        entry.push(INSERT, params![i64::MAX, "", [0_u8; 0], 7]).unwrap();
        entry.push(DELETE, params![i64::MAX]).unwrap();
        entry.encode()
    }

    #[test]
    fn an_entry_cut_anywhere_is_an_error() {
        let whole = entry();
        let statements = whole.len() - body_length();
        for end in 0..whole.len() {
            let db = things();
            let replayed = replay(&db, &whole[..end]);
            // An entry cut between two statements is valid; only the record's length reveals the
            // cut.
            assert!(replayed.is_err() || end >= statements, "{end} of {}", whole.len());
        }
    }

    fn body_length() -> usize {
        let mut body = LogEntry::default();
        body.push(INSERT, params![i64::MIN, "ü", [0_u8, 255], None::<i64>]).unwrap();
        body.push(INSERT, params![i64::MAX, "", [0_u8; 0], 7]).unwrap();
        body.push(DELETE, params![i64::MAX]).unwrap();
        body.body.len()
    }

    #[test]
    fn a_statement_that_changes_no_row_is_an_error() {
        let db = things();
        let mut entry = LogEntry::default();
        entry.push(DELETE, params![5]).unwrap();
        assert_eq!(replay(&db, &entry.encode()), Err(Error::StatementChangedRows(0)));
    }

    #[test]
    fn a_number_with_a_fraction_is_refused() {
        let mut entry = LogEntry::default();
        assert!(entry.push(DELETE, params![1.5]).is_err());
    }

    #[test]
    fn pushed_statements_are_replayed() {
        let db = things();
        replay(&db, &entry()).unwrap();
        let row: (i64, String, Vec<u8>, Option<i64>) = db
            .query_row("SELECT * FROM things", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .unwrap();
        assert_eq!(row, (i64::MIN, "ü".to_owned(), vec![0, 255], None));
    }

    #[test]
    fn the_encoding_is_pinned() {
        let mut entry = LogEntry::default();
        entry.push(DELETE, params![-2]).unwrap();
        let expected =
            [&[1, 0, 36, 0][..], DELETE.as_bytes(), &[0, 1, 1, 254, 255, 255, 255, 255, 255, 255, 255]];
        assert_eq!(entry.encode(), expected.concat());
    }
}
