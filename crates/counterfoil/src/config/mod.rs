//! The configuration: one table of settings, read from four layers.
//!
//! The [`table`] produces the typed [`Settings`], the loader, defaults and ranges, the reference
//! page and `explain`. Flags win over the environment, the environment over the file, the file over
//! defaults. All bad values of all layers are refused together, and no credential ever reaches a
//! message. Only the names of [`peers`] are not in the table. The caller opens the things that
//! settings name: store, gateway, log filter.

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
