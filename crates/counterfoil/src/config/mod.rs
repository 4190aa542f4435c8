//! The configuration of the binary: one table of settings, read from four layers.
//!
//! Owns: the table ([`table`]) and everything drawn from it — the typed [`Settings`], the loader, the
//! defaults and ranges, the reference page and `explain`. Promises: flag over environment over file over
//! default; every bad value in any layer is refused, all of them in one answer; a credential never reaches a
//! message. The names of peers ([`peers`]) are the one thing the table cannot know. Leaves out: opening what a setting names (store, gateway, log filter), which the caller does.

mod agree;
mod choice;
mod declare;
mod environment;
mod file;
mod gather;
mod peers;
mod problem;
mod reference;
mod rule;
mod secret;
mod source;
mod suggest;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use choice::{KeyPolicy, LogFormat, RequestLog, Reuse};
pub(crate) use environment::process_environment;
pub(crate) use gather::Override;
pub(crate) use reference::{explain, reference};
pub(crate) use source::Source;
pub(crate) use table::Settings;
