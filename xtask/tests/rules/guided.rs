//! Release builds are guided by the recording, and only they.

use crate::tree::root;
use std::path::Path;
use std::process::Command;

/// What `.cargo/rustc-guided` gives the compiler for these arguments; `echo` stands in for the compiler.
fn given(arguments: &[&str], record: bool) -> String {
    let mut command = Command::new(root().join(".cargo/rustc-guided"));
    command.arg("echo").args(arguments).env_remove("COUNTERFOIL_RECORD");
    if record {
        command.env("COUNTERFOIL_RECORD", "1");
    }
    let output = command.output().expect("the wrapper runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

fn compiled<'a>(level: &'a str, directory: &'a str) -> [&'a str; 9] {
    ["--crate-name", "some", "-C", level, "-C", "metadata=1", "--out-dir", directory, "--cap-lints=allow"]
}

#[test]
fn a_release_build_is_guided_by_the_recording() {
    let given = given(&compiled("opt-level=3", "/t/release/deps"), false);
    let (_, rest) = given.split_once("-Cprofile-use=").expect("guided");
    let recording = Path::new(rest.split(" -C").next().expect("a path"));
    let bytes = std::fs::read(recording).expect("the recording is there");
    assert_eq!(bytes.get(..8), Some(b"\xfflprofi\x81".as_slice()), "counts as the compiler reads them");
}

#[test]
fn nothing_else_is_guided() {
    for (level, directory) in [
        ("opt-level=1", "/t/debug/deps"),
        ("opt-level=2", "/t/debug/deps"),
        ("opt-level=0", "/t/release/deps"),
        // What the product is compared with.
        ("opt-level=3", "/t/ordinary/deps"),
    ] {
        let arguments = compiled(level, directory);
        for record in [false, true] {
            assert_eq!(given(&arguments, record), arguments.join(" "));
        }
    }
    assert_eq!(given(&["-vV"], false), "-vV");
}

#[test]
fn a_recorded_build_counts() {
    let given = given(&compiled("opt-level=3", "/t/release/deps"), true);
    assert!(given.contains("-Cprofile-generate"), "{given}");
    assert!(!given.contains("-Cprofile-use"), "{given}");
}

/// The features that the product's crates have in a build of these packages.
fn features(packages: &[&str]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--no-dedupe"]);
    command.args(["--format", "{p} [{f}]"]).current_dir(root());
    for package in packages {
        command.args(["--package", package]);
    }
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// A crate with other features has other names for its functions, and so has everything above it.
#[test]
fn the_recording_fits_the_product_built_alone() {
    let beside = features(&["counterfoil", "xtask"]);
    let alone = features(&["counterfoil"]);
    assert!(alone.len() > 100, "{alone:?}");
    let other: Vec<&String> = alone.iter().filter(|line| !beside.contains(line)).collect();
    assert!(other.is_empty(), "other features beside xtask, where it is recorded: {other:#?}");
}
