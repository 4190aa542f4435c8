//! The public forms: how requests are read and how answers, errors and lists are written.
//!
//! Promises: what is read here is valid or every problem is named with its place; what is written here is pinned
//! by golden texts. Leaves out: HTTP itself (methods, headers, routes), which belongs to `api`.

pub mod charge;
pub mod form;
pub mod json;
pub mod key;
pub mod list;
pub mod names;
pub mod pointer;
pub mod problem;
pub mod time;
pub mod timeline;
