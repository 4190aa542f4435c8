//! Rules for files: short, finished, and named after their content.

use crate::tree::{Source, none, sources};
use std::path::Path;

/// Limit of lines before the tests.
const LINES_MAX: usize = 500;
/// Names without meaning.
const EMPTY_NAMES: [&str; 9] =
    ["util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "v2"];
/// Words of unfinished work, split so that this file may contain them.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ig", "nore")];

fn unfinished(line: &str) -> bool {
    UNFINISHED.iter().any(|word| line.contains(word))
}

fn says_nothing(path: &Path) -> bool {
    let parts = path.components().filter_map(|part| Path::new(part.as_os_str()).file_stem()?.to_str());
    parts.into_iter().any(|part| EMPTY_NAMES.contains(&part))
}

fn rust_files() -> Vec<Source> {
    let all = ["crates", "xtask"].into_iter().flat_map(sources);
    all.filter(|source| source.has_extension("rs")).collect()
}

#[test]
fn no_file_is_long() {
    let long = rust_files().into_iter().filter_map(|source| {
        let lines = source.product_lines().count();
        (lines > LINES_MAX).then(|| format!("{} has {lines} lines before its tests", source.name()))
    });
    none(&long.collect::<Vec<_>>());
}

#[test]
fn no_work_is_left_for_later() {
    let mut complaints = Vec::new();
    for source in sources("") {
        for (index, line) in source.text.lines().enumerate() {
            if unfinished(line) {
                complaints.push(format!("{}:{}: {}", source.name(), index + 1, line.trim()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn file_names_say_something() {
    let empty = rust_files().into_iter().filter(|source| says_nothing(&source.path));
    none(&empty.map(|source| format!("{}: name it after what it holds", source.name())).collect::<Vec<_>>());
}

#[test]
fn bad_files_are_found() {
    assert!(says_nothing(Path::new("crates/api/src/utils.rs")));
    assert!(says_nothing(Path::new("crates/api/src/common/list.rs")));
    assert!(says_nothing(Path::new("crates/api/src/v2/mod.rs")));
    assert!(!says_nothing(Path::new("crates/store-embedded/src/schema/mod.rs")));
    assert!(unfinished(&format!("// {}: later", UNFINISHED[0])));
    assert!(unfinished(&format!("{}]", UNFINISHED[2])));
    assert!(!unfinished("todo = \"warn\""));
}
