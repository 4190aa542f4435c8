//! Results of a run, compared with the explained survivors.
//!
//! Names are those of cargo-mutants without line and column, so that an explanation outlives edits
//! elsewhere in its file. Two changes of one function may share a name; each needs its own
//! explanation.

use crate::failure::{Failure, Result};
use std::fmt;
use std::path::Path;

/// The only document that explains survivors.
pub(crate) const EXPLAINED: &str = "docs/mutants.md";

/// Results of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) caught: usize,
    pub(crate) timeout: usize,
    pub(crate) unviable: usize,
    /// Number of explained survivors.
    pub(crate) explained: usize,
    /// Names of unexplained survivors.
    pub(crate) unexplained: Vec<String>,
    /// Names explained but not among the survivors.
    pub(crate) gone: Vec<String>,
}

impl Run {
    /// Reads the last run, even an incomplete one.
    pub(crate) fn read(root: &Path) -> Result<Run> {
        let text = std::fs::read_to_string(root.join(EXPLAINED));
        let text = text.map_err(Failure::while_(format!("reading {EXPLAINED}")))?;
        let lines = |name: &str| {
            let file = root.join("target/mutants.out").join(name).with_extension("txt");
            std::fs::read_to_string(file).unwrap_or_default()
        };
        let count = |name| lines(name).lines().count();
        Ok(Run {
            caught: count("caught"),
            timeout: count("timeout"),
            unviable: count("unviable"),
            ..compared(&lines("missed"), &text)
        })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { caught, timeout, unviable, explained, unexplained, .. } = self;
        let missed = unexplained.len();
        write!(
            f,
            "caught {caught}, timeout {timeout}, unviable {unviable}, explained {explained}, missed {missed}"
        )
    }
}

fn compared(missed: &str, text: &str) -> Run {
    let mut gone = explained(text);
    let (mut known, mut unexplained) = (0, Vec::new());
    for line in missed.lines() {
        if let Some(place) = gone.iter().position(|name| *name == without_place(line)) {
            gone.swap_remove(place);
            known += 1;
        } else {
            unexplained.push(line.to_owned());
        }
    }
    Run { caught: 0, timeout: 0, unviable: 0, explained: known, unexplained, gone }
}

/// The names at the start of list items: "- `name`: reason".
fn explained(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- `crates/"));
    lines.filter_map(|line| line.split_once('`')).map(|(name, _)| format!("crates/{name}")).collect()
}

/// Shortens `file:line:column: change` to `file: change`.
fn without_place(line: &str) -> String {
    match line.splitn(4, ':').collect::<Vec<_>>().as_slice() {
        [file, _, _, change] => format!("{file}:{change}"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Mutants\n\n- `crates/a.rs: replace < with <= in one`: nothing is added.\n- other\n";

    #[test]
    fn a_survivor_is_explained_wherever_it_stands_in_its_file() {
        let run = compared("crates/a.rs:7:12: replace < with <= in one\n", LIST);
        assert_eq!((run.explained, run.unexplained, run.gone), (1, vec![], vec![]));
    }

    #[test]
    fn an_explanation_is_good_for_one_survivor() {
        let missed =
            "crates/a.rs:7:12: replace < with <= in one\ncrates/a.rs:9:1: replace < with <= in one\n";
        let run = compared(missed, LIST);
        assert_eq!(run.explained, 1);
        assert_eq!(run.unexplained, ["crates/a.rs:9:1: replace < with <= in one"]);
    }

    #[test]
    fn an_explanation_is_good_for_its_own_file_and_change_only() {
        for missed in
            ["crates/b.rs:7:12: replace < with <= in one", "crates/a.rs:7:12: replace < with > in one"]
        {
            let run = compared(missed, LIST);
            assert_eq!(run.unexplained, [missed]);
            assert_eq!(run.gone, ["crates/a.rs: replace < with <= in one"]);
        }
    }

    #[test]
    fn a_change_may_have_colons_of_its_own() {
        let line = "crates/a.rs:7:12: replace Time::now -> Time with Time::MAX";
        assert_eq!(without_place(line), "crates/a.rs: replace Time::now -> Time with Time::MAX");
    }

    #[test]
    fn every_explanation_gives_a_reason() {
        let text = std::fs::read_to_string(crate::compile::root().join(EXPLAINED)).unwrap();
        for line in text.lines().filter(|line| line.starts_with("- `crates/")) {
            let reason = line.rsplit_once("`: ").map_or("", |(_, reason)| reason);
            assert!(reason.len() > 10, "{line}");
        }
    }
}
