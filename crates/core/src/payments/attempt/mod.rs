//! One attempt at one step: what to do next, what came of it, and going on where somebody else stopped.

pub mod hint;
pub mod judge;
pub mod next;
pub mod resume;
