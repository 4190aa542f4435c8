//! Faults of a recorded disk.

/// A kind of file in the store's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Database,
    /// SQLite's WAL.
    SqliteWal,
    /// A segment of the store's write-ahead log.
    Log,
    /// Any other file of SQLite: the rollback journal of the very first write.
    Journal,
}

/// The faults of a disk; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Syncs that the disk confirms and does not execute.
    pub lie: Option<Lie>,
    /// A sync that fails once.
    pub sync: Option<Nth>,
    /// Writes that find no space; the first of them is partly written.
    pub full: Option<Full>,
    /// The number of the checkpoint sync by the store itself that fails.
    pub own_sync: Option<u32>,
}

/// The nth call for a kind of file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nth {
    pub of: FileKind,
    pub nth: u32,
}

/// A disk that is full for some writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The first write that fails.
    pub from: Nth,
    /// The number of writes that fail.
    pub writes: u32,
}

/// A planted defect: syncs are confirmed and not executed. The checks must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    LogSyncs,
    SqliteWalSyncs,
    DatabaseSyncs,
    DirectorySyncs,
    /// All syncs, as with `synchronous = OFF`.
    AllSyncs,
}

impl Lie {
    /// Every planted defect.
    pub const ALL: [Lie; 5] =
        [Lie::LogSyncs, Lie::SqliteWalSyncs, Lie::DatabaseSyncs, Lie::DirectorySyncs, Lie::AllSyncs];

    /// Whether syncs of this kind of file are swallowed.
    pub fn hides_sync_of(self, kind: FileKind) -> bool {
        match self {
            Lie::AllSyncs => true,
            Lie::LogSyncs => kind == FileKind::Log,
            Lie::SqliteWalSyncs => kind == FileKind::SqliteWal,
            Lie::DatabaseSyncs => kind == FileKind::Database,
            Lie::DirectorySyncs => false,
        }
    }

    /// Whether syncs of the directory are swallowed.
    pub fn hides_sync_of_directory(self) -> bool {
        matches!(self, Lie::AllSyncs | Lie::DirectorySyncs)
    }
}
