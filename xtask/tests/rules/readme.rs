//! The README is short and has the two commands a newcomer needs.

use crate::tree::root;

const LINES_MAX: usize = 120;
/// The first charge, and the tests.
const COMMANDS: [&str; 2] = ["cargo run --release -- dev", "cargo xtask test"];

#[test]
fn the_readme_is_short_and_names_both_commands() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("there is a README.md");
    let lines = text.lines().count();
    assert!(lines <= LINES_MAX, "README.md has {lines} lines; {LINES_MAX} are enough");
    for command in COMMANDS {
        assert!(text.contains(command), "README.md does not name `{command}`");
    }
}
