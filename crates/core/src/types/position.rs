//! A position in the order of commits.

/// A position in the order of commits; the first commit has 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Before the first commit.
    pub const START: Position = Position(0);
}
