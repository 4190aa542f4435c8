//! The write-ahead log: a group of commits is durable here before its sets are answered.
//!
//! A group's statements and values are collected in a [`LogEntry`], framed by a [`Record`] head,
//! appended to a ring of segment files and synced: one write and one sync per group. SQLite gets
//! the rows later, without a sync of its own; an opening replays the entries that it lacks.
//!
//! Promises: recovery finds every appended entry whole and in order, until a checkpoint has made
//! its rows durable. Torn entries and entries of earlier openings are never replayed.

mod entry;
mod record;
mod recover;
mod segments;
mod storage;

pub(crate) use entry::{LogEntry, replay};
pub(crate) use record::Record;
pub(crate) use recover::{has_unreplayed_entries, recover};
pub(crate) use segments::{AppendError, WriteAheadLog};
pub use storage::{DiskFiles, LogFile, LogStorage};

/// Names the opening that wrote a record. A database from a backup has another lineage than the log
/// beside it, so the log is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lineage(pub(crate) i64);
