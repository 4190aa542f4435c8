//! The rules of this repository, as tests: what points where, how large a file may be, what it may be called.

#![expect(clippy::expect_used, reason = "a rule that cannot look has to fail")]

#[path = "rules/core.rs"]
mod core;
#[path = "rules/features.rs"]
mod features;
#[path = "rules/files.rs"]
mod files;
#[path = "rules/guided.rs"]
mod guided;
#[path = "rules/readme.rs"]
mod readme;
#[path = "rules/rings.rs"]
mod rings;
#[path = "rules/tree.rs"]
mod tree;
