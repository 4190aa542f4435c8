//! Comma-separated values by RFC 4180: cells may be quoted, and a quoted cell may hold commas, line
//! breaks and doubled quotes.

use std::iter::Peekable;
use std::str::Chars;

/// A record: the first line, and the cells or an error.
pub(super) type Row = (usize, Result<Vec<String>, &'static str>);

const OPEN: &str = "a quoted cell does not end; close it with a double quote";
const AFTER: &str = "something follows the end of a quoted cell; double the quotes inside it";
const INSIDE: &str =
    "a cell without quotes has one inside; put the cell in double quotes and double those inside it";

/// Parses all records and skips empty lines.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let mut rows = Vec::new();
    while let Some(first) = reader.rest.peek() {
        if matches!(first, '\n' | '\r') {
            reader.next();
            continue;
        }
        let line = reader.line;
        let row = reader.row();
        if row.is_err() {
            while reader.next().is_some_and(|c| c != '\n') {}
        }
        rows.push((line, row));
    }
    rows
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// Parses a record, without the final line break.
    fn row(&mut self) -> Result<Vec<String>, &'static str> {
        let mut cells = Vec::new();
        loop {
            cells.push(if self.rest.peek() == Some(&'"') { self.quoted()? } else { self.plain()? });
            if self.rest.next_if_eq(&',').is_none() {
                return Ok(cells);
            }
        }
    }

    fn plain(&mut self) -> Result<String, &'static str> {
        let mut cell = String::new();
        while let Some(c) = self.rest.next_if(|c| !matches!(c, ',' | '\n' | '\r')) {
            if c == '"' {
                return Err(INSIDE);
            }
            cell.push(c);
        }
        Ok(cell)
    }

    fn quoted(&mut self) -> Result<String, &'static str> {
        self.next();
        let mut cell = String::new();
        loop {
            match self.next().ok_or(OPEN)? {
                '"' if self.rest.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' => break,
                other => cell.push(other),
            }
        }
        match self.rest.peek() {
            None | Some(',' | '\n' | '\r') => Ok(cell),
            Some(_) => Err(AFTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_records_are_named_and_the_next_one_is_read() {
        let read = rows("a\n\"b\"x,1\nc\"d,2\ne\n\"f");
        let expected: [Row; 5] = [
            (1, Ok(vec!["a".into()])),
            (2, Err(AFTER)),
            (3, Err(INSIDE)),
            (4, Ok(vec!["e".into()])),
            (5, Err(OPEN)),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn cells_may_hold_quotes_commas_and_line_breaks() {
        let read = rows("id,note\r\n1,\"a, \"\"b\"\"\r\nc\"\r\n\r\n2,\r\n");
        let cells = |row: &[&str]| Ok(row.iter().map(|cell| (*cell).to_owned()).collect());
        assert_eq!(
            read,
            [(1, cells(&["id", "note"])), (2, cells(&["1", "a, \"b\"\r\nc"])), (5, cells(&["2", ""]))]
        );
    }
}
