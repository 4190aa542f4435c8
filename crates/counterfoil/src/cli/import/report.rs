//! The report of an import: one row per line, and totals.

use super::client::Answer;
use super::command::Command;
use super::read::BadLine;
use super::send::{Delivered, Outcome};
use comfy_table::{Cell, Color, Table};
use serde::Serialize;
use std::io::Write;

/// Failed rows shown to a person; `--json` prints every row.
const SHOWN_MAX: usize = 20;

/// The result of one line.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    line: usize,
    key: Option<String>,
    status: Option<u16>,
    error: Option<String>,
    resource: Option<String>,
    replayed: bool,
    /// The earlier line with the same command.
    duplicate_of: Option<usize>,
}

/// The rows and their totals.
#[derive(Debug, Default)]
pub(super) struct Report {
    json: bool,
    done: usize,
    replayed: usize,
    duplicates: usize,
    failed: usize,
    unresolved: usize,
    not_sent: usize,
    bad: usize,
    trouble: Vec<Row>,
}

impl Report {
    pub(super) fn new(json: bool) -> Report {
        Report { json, ..Report::default() }
    }

    /// Whether every line was answered as done.
    pub(super) fn is_clean(&self) -> bool {
        self.failed + self.unresolved + self.not_sent + self.bad == 0
    }

    /// Adds a line that is not a command.
    pub(super) fn bad(&mut self, bad: &BadLine) {
        self.bad += 1;
        self.tell(Row { error: Some(bad.reason.clone()), ..row(bad.line, None) }, true);
    }

    /// Adds a command of a dry run.
    pub(super) fn planned(&mut self, command: &Command, key: &str) {
        self.done += 1;
        self.with_duplicates(command, &row(command.line, Some(key.to_owned())), false);
    }

    /// Adds the result of a command.
    pub(super) fn delivered(&mut self, command: &Command, delivered: Delivered) {
        let row = row(command.line, Some(delivered.key));
        let (row, trouble) = match delivered.outcome {
            Outcome::Answered(Answer { status, error, resource, replayed, .. }) => {
                let done = (200..300).contains(&status);
                self.done += usize::from(done);
                self.failed += usize::from(!done);
                self.replayed += usize::from(done && replayed);
                let error = error.or_else(|| (!done).then(|| format!("status {status}")));
                (Row { status: Some(status), error, resource, replayed, ..row }, !done)
            }
            Outcome::Unresolved(status, why) => {
                self.unresolved += 1;
                (Row { status, error: Some(format!("unresolved: {why}")), ..row }, true)
            }
            Outcome::NotSent => {
                self.not_sent += 1;
                (Row { error: Some("not_sent".into()), ..row }, true)
            }
        };
        self.with_duplicates(command, &row, trouble);
    }

    fn with_duplicates(&mut self, command: &Command, row: &Row, trouble: bool) {
        self.tell(row.clone(), trouble);
        for line in &command.repeated_on {
            self.duplicates += 1;
            self.tell(Row { line: *line, duplicate_of: Some(command.line), ..row.clone() }, false);
        }
    }

    fn tell(&mut self, row: Row, trouble: bool) {
        if self.json {
            // Ignore write errors: a closed pipe must not end an import half-way.
            let _ = writeln!(std::io::stdout(), "{}", serde_json::to_string(&row).unwrap_or_default());
        } else if trouble {
            self.trouble.push(row);
        }
    }

    /// Prints totals and the first failed rows. `done` describes the successful rows.
    pub(super) fn finish(mut self, done: &str) {
        if self.json {
            return;
        }
        let mut sums = table();
        sums.set_header([done, "replayed", "duplicates", "failed", "unresolved", "not sent", "bad lines"]);
        let [plain, good, bad] = [Color::Reset, Color::Green, Color::Red];
        let sum = |count: usize, colour| Cell::new(count).fg(if count == 0 { plain } else { colour });
        sums.add_row([
            sum(self.done, good),
            sum(self.replayed, good),
            sum(self.duplicates, Color::Yellow),
            sum(self.failed, bad),
            sum(self.unresolved, bad),
            sum(self.not_sent, bad),
            sum(self.bad, bad),
        ]);
        let mut text = sums.to_string();
        if !self.trouble.is_empty() {
            self.trouble.sort_by_key(|row| row.line);
            text = format!("{}\n{text}", troubles(&self.trouble));
        }
        let _ = writeln!(std::io::stdout(), "{text}");
    }
}

fn row(line: usize, key: Option<String>) -> Row {
    Row { line, key, status: None, error: None, resource: None, replayed: false, duplicate_of: None }
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table
}

fn troubles(rows: &[Row]) -> String {
    let mut shown = table();
    shown.set_header(["line", "status", "error", "resource", "key"]);
    let text = |text: Option<&String>| text.map_or_else(|| "-".to_owned(), Clone::clone);
    for row in rows.iter().take(SHOWN_MAX) {
        shown.add_row([
            Cell::new(row.line),
            Cell::new(row.status.map_or_else(|| "-".to_owned(), |status| status.to_string())),
            Cell::new(text(row.error.as_ref())).fg(Color::Red),
            Cell::new(text(row.resource.as_ref())),
            Cell::new(text(row.key.as_ref())),
        ]);
    }
    let more = rows.len().saturating_sub(SHOWN_MAX);
    if more == 0 { shown.to_string() } else { format!("{shown}\nand {more} more; --json shows them all") }
}
