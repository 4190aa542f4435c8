//! Optional crates: the binary without its default features must not depend on them.

use crate::tree::root;
use std::process::Command;

/// The crates that the binary is built from, one per line, with or without its default features.
fn crates(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", "counterfoil", "-e", "normal", "--prefix", "none", "--offline", "-f", "{lib}"])
        .args(features)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn redis_is_built_only_with_its_feature() {
    let redis = ["counterfoil_redis", "redis"];
    let (with, without) = (crates(&[]), crates(&["--no-default-features"]));
    for name in redis {
        assert!(with.iter().any(|found| found == name), "{name} is part of the default build");
        assert!(without.iter().all(|found| found != name), "{name} is built without the feature `redis`");
    }
}
