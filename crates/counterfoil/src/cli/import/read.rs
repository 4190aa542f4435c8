//! Reads a file into objects: one JSON object per line, or CSV with a header.

use super::csv;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::json::{Json, Object};
use counterfoil_wire::layout::{Layout, Shape};

/// A command as read from the file.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    /// The first line of the record.
    pub(super) line: usize,
    pub(super) object: Object,
}

/// A line that is not a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine {
    pub(super) line: usize,
    /// The problem and the remedy.
    pub(super) reason: String,
}

impl BadLine {
    pub(super) fn new(line: usize, reason: impl Into<String>) -> BadLine {
        BadLine { line, reason: reason.into() }
    }
}

/// Reads a file. A file that begins with `{` is JSON; any other file is CSV.
pub(super) fn read(input: &[u8], layout: &Layout) -> (Vec<Record>, Vec<BadLine>) {
    // Skip the byte order mark that spreadsheets write.
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    if input.trim_ascii_start().first() == Some(&b'{') {
        return json(input);
    }
    match std::str::from_utf8(input) {
        Ok(text) => table(text, layout),
        Err(error) => {
            let before = input.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.split(|byte| *byte == b'\n').count();
            (Vec::new(), vec![BadLine::new(line, "it is not UTF-8; save the file as UTF-8")])
        }
    }
}

fn json(input: &[u8]) -> (Vec<Record>, Vec<BadLine>) {
    let (mut records, mut bad) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(input.split(|byte| *byte == b'\n')) {
        if text.trim_ascii().is_empty() {
            continue;
        }
        match Json::parse(text) {
            Ok(Json::Object(object)) => records.push(Record { line, object }),
            Ok(_) => bad.push(BadLine::new(line, "it is not an object; write one JSON object per line")),
            Err(error) => bad.push(BadLine::new(line, format!("it is not JSON: {error}"))),
        }
    }
    (records, bad)
}

fn table(text: &str, layout: &Layout) -> (Vec<Record>, Vec<BadLine>) {
    let (mut records, mut bad) = (Vec::new(), Vec::new());
    let mut rows = csv::rows(text).into_iter();
    let names = match rows.next() {
        None => return (records, bad),
        Some((line, header)) => match header.map_err(str::to_owned).and_then(check_header) {
            Ok(names) => names,
            // No line can be read without a header.
            Err(reason) => return (records, vec![BadLine::new(line, format!("the header: {reason}"))]),
        },
    };
    for (line, row) in rows {
        match row.map_err(str::to_owned).and_then(|cells| object(&names, cells, layout)) {
            Ok(object) => records.push(Record { line, object }),
            Err(reason) => bad.push(BadLine::new(line, reason)),
        }
    }
    (records, bad)
}

fn check_header(names: Vec<String>) -> Result<Vec<String>, String> {
    for (index, name) in names.iter().enumerate() {
        if name.trim() != name || name.split('.').any(str::is_empty) {
            return Err(format!("column {} has no proper name; write the field's name", index + 1));
        }
        if names.iter().skip(index + 1).any(|other| other == name) {
            return Err(format!("`{name}` appears twice; name each column once"));
        }
        if names
            .iter()
            .any(|other| other.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.')))
        {
            return Err(format!("`{name}` is a column and has columns below it; keep one of the two"));
        }
    }
    Ok(names)
}

/// The object of a row. An empty cell is an absent field.
fn object(names: &[String], cells: Vec<String>, layout: &Layout) -> Result<Object, String> {
    if cells.len() != names.len() {
        return Err(format!("it has {} cells and the header {}; make them equal", cells.len(), names.len()));
    }
    let (mut flat, mut nested) = (Object::new(), Vec::<(&str, Object)>::new());
    for (name, cell) in names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
        let twice = |error: counterfoil_core::types::json::DuplicateKey| error.to_string();
        let Some((outer, inner)) = name.split_once('.') else {
            flat.insert(name.clone(), value(cell, layout.shape(name))).map_err(twice)?;
            continue;
        };
        let shape = match layout.shape(outer) {
            Shape::Object(below) => below.shape(inner),
            Shape::Text | Shape::Number | Shape::Truth | Shape::List(_) => Shape::Text,
        };
        if nested.iter().all(|(known, _)| *known != outer) {
            nested.push((outer, Object::new()));
        }
        if let Some((_, members)) = nested.iter_mut().find(|(known, _)| *known == outer) {
            members.insert(inner.to_owned(), value(cell, shape)).map_err(twice)?;
        }
    }
    for (name, members) in nested {
        flat.insert(name.to_owned(), Json::Object(members)).map_err(|error| error.to_string())?;
    }
    Ok(flat)
}

/// Converts a cell to the field's type. A cell that does not fit stays text, which the field's
/// reader refuses by name.
fn value(cell: String, shape: Shape) -> Json {
    match (shape, cell.as_str()) {
        (Shape::Number, text) => Decimal::parse(text).map_or(Json::String(cell), Json::Number),
        (Shape::Truth, "true") => Json::Bool(true),
        (Shape::Truth, "false") => Json::Bool(false),
        (Shape::Truth | Shape::Text | Shape::List(_) | Shape::Object(_), _) => Json::String(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_wire::charge::LAYOUT;

    fn bad(text: &[u8]) -> Vec<(usize, String)> {
        read(text, &LAYOUT).1.into_iter().map(|bad| (bad.line, bad.reason)).collect()
    }

    #[track_caller]
    fn refused(text: &[u8], expected: &[(usize, &str)]) {
        let found = bad(text);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((line, reason), (expected_line, word)) in found.iter().zip(expected) {
            assert!(line == expected_line && reason.contains(word), "{line}: {reason}");
        }
    }

    #[test]
    fn bad_lines_are_named_with_their_number_and_reason() {
        refused(
            b"{\"a\":1}\n\n{\n[1]\n{\"a\":1,\"a\":2}\n",
            &[(3, "not JSON"), (4, "not an object"), (5, "twice")],
        );
        refused(b"order_id,amount\n1,2,3\n1\n", &[(2, "3 cells"), (3, "1 cells")]);
        refused(b"a,\n1,2", &[(1, "column 2")]);
        refused(b"a,b,a\n1,2,3", &[(1, "`a` appears twice")]);
        refused(b"metadata,metadata.x\n1,2", &[(1, "`metadata` is a column")]);
        refused(b"a\n\xff\n", &[(2, "UTF-8")]);
    }

    #[test]
    fn a_csv_file_reads_like_the_same_file_in_json() {
        let table = "\u{feff}order_id,amount,capture,metadata.shop,metadata.a.b,wallet.amount,description\n\
                     7,1250,false,\"x, y\",z,5,\n8,12.x,perhaps,,,,\n";
        let lines = concat!(
            r#"{"order_id":"7","amount":1250,"capture":false,"metadata":{"shop":"x, y","a.b":"z"},"wallet":{"amount":5}}"#,
            "\n",
            r#"{"order_id":"8","amount":"12.x","capture":"perhaps"}"#
        );
        let objects = |(records, bad): (Vec<Record>, Vec<BadLine>)| {
            assert_eq!(bad, []);
            records.into_iter().map(|record| record.object).collect::<Vec<_>>()
        };
        let [table, lines] = [table, lines].map(|text| objects(read(text.as_bytes(), &LAYOUT)));
        assert_eq!(table, lines);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn an_empty_file_holds_nothing() {
        for empty in ["", "\n\n", "a,b\n"] {
            assert_eq!(read(empty.as_bytes(), &LAYOUT), (vec![], vec![]));
        }
    }
}
