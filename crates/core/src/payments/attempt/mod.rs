//! One attempt at one step: choose the call, judge its outcome, and take over from a lost holder.

pub mod hint;
pub mod judge;
pub mod next;
pub mod resume;
