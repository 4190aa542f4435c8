//! The redo log: where a group is durable before its sets are answered.
//!
//! Writing rows into their trees dirties a page of each; syncing those for every group is what a commit used to cost. So a
//! group's statements are noted in a [`Script`], which is appended here and synced: one write, one sync. The database
//! gets its rows later, many groups together and without a sync of its own. What it has not kept when the process ends is
//! played from here at the next opening.
//!
//! Promises: what was appended is found again, whole and in order, until the database has it safely; what was torn, or
//! belongs to an earlier opening, is never played.

mod media;
mod record;
mod recover;
mod script;
mod segments;

pub use media::{Files, Media, Tape};
pub(crate) use record::Record;
pub(crate) use recover::{is_left_over, recover};
pub(crate) use script::{Script, play};
pub(crate) use segments::{Failed, Redo};

/// Names the opening a record was written in, so that a database put back from a backup does not meet the records of
/// another life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lineage(pub(crate) i64);
