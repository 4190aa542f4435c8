//! What goes wrong with a disk while it is recorded.

/// Which of the store's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The database.
    Database,
    /// The write-ahead log.
    Log,
    /// The redo log.
    Redo,
    /// Anything else SQLite writes: the rollback journal of the first write of all.
    Journal,
}

/// What a disk does besides its work. By default, nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What it says and does not do.
    pub lie: Option<Lie>,
    /// A sync that fails, once.
    pub sync: Option<Nth>,
    /// Writes that find no space; the first of them is cut short.
    pub full: Option<Full>,
    /// A sync of the store's own after a step of a checkpoint fails, the so-manieth.
    pub own_sync: Option<u32>,
}

/// The so-manieth call for such a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nth {
    /// For which file.
    pub of: Kind,
    /// Which call.
    pub nth: u32,
}

/// A disk without space, from one write on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The first write that fails.
    pub from: Nth,
    /// How many fail.
    pub writes: u32,
}

/// A planted defect: the disk, or a store that does not ask it, confirms what is not safe. Checks must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Syncs of the redo log do nothing.
    RedoSyncs,
    /// Syncs of the write-ahead log do nothing.
    LogSyncs,
    /// Syncs of the database do nothing.
    DatabaseSyncs,
    /// Syncs of the directory do nothing.
    DirectorySyncs,
    /// No sync does anything, as with `synchronous = OFF`.
    AllSyncs,
}

impl Lie {
    /// Every planted defect.
    pub const ALL: [Lie; 5] =
        [Lie::RedoSyncs, Lie::LogSyncs, Lie::DatabaseSyncs, Lie::DirectorySyncs, Lie::AllSyncs];

    /// Whether a sync of such a file is one.
    pub fn hides_sync_of(self, kind: Kind) -> bool {
        match self {
            Lie::AllSyncs => true,
            Lie::RedoSyncs => kind == Kind::Redo,
            Lie::LogSyncs => kind == Kind::Log,
            Lie::DatabaseSyncs => kind == Kind::Database,
            Lie::DirectorySyncs => false,
        }
    }

    /// Whether a sync of the directory is one.
    pub fn hides_sync_of_directory(self) -> bool {
        matches!(self, Lie::AllSyncs | Lie::DirectorySyncs)
    }
}
