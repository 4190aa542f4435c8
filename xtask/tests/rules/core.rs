//! Rules for the core: its modules do not depend on each other, and the core does no I/O.

use crate::tree::{Source, none, sources};
use std::path::Path;

/// Modules that only `payments` combines.
const ROOMS: [&str; 6] = ["idempotency", "ledger", "outbox", "saga", "audit", "tenancy"];
/// Exceptions: one module may use the name of a thing in another, never its rules.
const ALLOWED: [(&str, &str); 2] =
    [("outbox", "crate::idempotency::claim::ClaimId"), ("outbox", "crate::saga::progress::SagaProgress")];
/// Tasks, wire forms, clocks, disks, networks: none may appear in the core.
const WORLD: [&str; 10] = [
    "tokio",
    "serde",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::env",
    "rand",
];

/// The module of a file: the first part of its path below `src`.
fn room(path: &Path) -> Option<String> {
    let below = path.strip_prefix("crates/core/src").ok()?;
    let first = below.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

/// Other modules that a line of `room` names.
fn neighbours(room: &str, line: &str) -> Vec<&'static str> {
    let knows = |other: &str| {
        ["crate::", "super::super::", "super::"].iter().any(|from| names(line, &format!("{from}{other}")))
    };
    let allowed = ALLOWED.iter().any(|(own, what)| *own == room && names(line, what));
    // An import list would hide the module's name from this check.
    let hidden = line.trim_start().starts_with("use crate::{");
    let others = ROOMS.iter().copied().chain(["payments"]).filter(|other| *other != room);
    let mut found: Vec<&str> = others.filter(|other| !allowed && knows(other)).collect();
    if hidden {
        found.push("a list of rooms");
    }
    found
}

/// Whether `line` names `path` as a whole word.
fn names(line: &str, path: &str) -> bool {
    let word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        !before.is_some_and(|it| word(it) || it == ':') && !after.is_some_and(word)
    })
}

/// Forbidden paths in a line; understands `use std::time::{Duration, Instant}`.
fn world(line: &str) -> Vec<&'static str> {
    let listed = |path: &str| {
        let Some((module, item)) = path.rsplit_once("::") else { return false };
        let list = format!("{module}::{{");
        line.split_once(&list).is_some_and(|(_, items)| names(items, item))
    };
    WORLD.iter().copied().filter(|path| names(line, path) || listed(path)).collect()
}

fn core_files() -> Vec<Source> {
    sources("crates/core/src").into_iter().filter(|source| source.has_extension("rs")).collect()
}

#[test]
fn core_modules_do_not_depend_on_each_other() {
    let mut complaints = Vec::new();
    for source in core_files() {
        let Some(room) = room(&source.path) else { continue };
        if !ROOMS.contains(&room.as_str()) && room != "types" {
            continue;
        }
        for (number, line) in source.code_lines() {
            for other in neighbours(&room, line) {
                complaints.push(format!("{}:{number}: {room} knows {other}: {}", source.name(), line.trim()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn the_core_uses_no_clock_no_io_and_no_tasks() {
    let mut complaints = Vec::new();
    for source in core_files() {
        for (number, line) in source.code_lines() {
            for what in world(line) {
                complaints.push(format!("{}:{number}: the core knows {what}", source.name()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn forbidden_imports_are_found() {
    let bad = [
        ("saga", "use crate::outbox::Outbox;"),
        ("audit", "    crate::payments::charge::next(x)"),
        ("types", "use crate::saga::backoff::Backoff;"),
        ("tenancy", "use super::audit::AuditRecord;"),
        ("ledger", "use crate::idempotency::claim::Claim;"),
        ("outbox", "use crate::ledger::balance::Balance;"),
        ("outbox", "use crate::idempotency::claim::Claim;"),
        ("outbox", "use crate::{audit, types};"),
    ];
    for (room, line) in bad {
        assert!(!neighbours(room, line).is_empty(), "{room}: {line}");
    }
    let good = [
        ("outbox", "use crate::idempotency::claim::ClaimId;"),
        ("saga", "use crate::types::time::Span;"),
        ("ledger", "use crate::types::asset::Asset;"),
        ("idempotency", "use crate::idempotency::claim::Claim;"),
        ("audit", "let saga = outbox_row;"),
    ];
    for (room, line) in good {
        assert!(neighbours(room, line).is_empty(), "{room}: {line}");
    }
    for line in [
        "use tokio::sync::Mutex;",
        "use std::time::{Duration, Instant};",
        "std::fs::read(path)",
        "#[derive(serde::Serialize)]",
    ] {
        assert!(!world(line).is_empty(), "{line}");
    }
    for line in ["use std::time::Duration;", "let operand = 1;", "fn std_fs() {}"] {
        assert!(world(line).is_empty(), "{line}");
    }
    assert_eq!(room(Path::new("crates/core/src/outbox.rs")).as_deref(), Some("outbox"));
    assert_eq!(room(Path::new("crates/core/src/saga/backoff.rs")).as_deref(), Some("saga"));
}
