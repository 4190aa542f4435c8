//! The write-ahead log: a group of commits is durable here before its sets are answered.
//!
//! A group's statements and values are collected in a [`LogEntry`], framed by a [`Record`] head,
//! appended to a ring of segment files and synced: one write and one sync per group. SQLite gets
//! the rows later, without a sync of its own; an opening replays the entries that it lacks.
//!
//! Promises: an appended entry is found again, whole and in order, until the database has it
//! safely. A torn entry, or one of an earlier opening, is never replayed.

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

/// Names the opening that wrote a record. A database restored from a backup has another lineage
/// than the log beside it, so its log is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lineage(pub(crate) i64);
