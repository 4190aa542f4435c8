//! The rules of this repository, as tests: dependencies, file sizes, names, prose.

#![expect(clippy::expect_used, reason = "a rule that cannot read the repository has to fail")]

#[path = "rules/core.rs"]
mod core;
#[path = "rules/features.rs"]
mod features;
#[path = "rules/files.rs"]
mod files;
#[path = "rules/prose.rs"]
mod prose;
#[path = "rules/readme.rs"]
mod readme;
#[path = "rules/rings.rs"]
mod rings;
#[path = "rules/tree.rs"]
mod tree;
