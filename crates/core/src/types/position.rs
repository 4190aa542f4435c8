//! A place in the order of commits.

/// A place in the order of commits; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Before everything.
    pub const START: Position = Position(0);
}
