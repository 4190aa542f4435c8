//! The rings: a dependency must point to a lower ring, never to a neighbour.

use crate::tree::{none, root};
use serde_json::Value;
use std::process::Command;

/// Development tools may depend on everything, and no crate may depend on them.
const DEV: u8 = u8::MAX;
/// Shared by the tests of several crates and by the tools; the product never depends on it.
const TESTKIT: u8 = DEV - 1;
/// Every crate has a ring; add a new crate here first.
const RINGS: [(&str, u8); 23] = [
    ("counterfoil-core", 0),
    ("counterfoil-store", 1),
    ("counterfoil-gateway", 1),
    ("counterfoil-transport", 1),
    ("counterfoil-engine", 2),
    ("counterfoil-store-embedded", 3),
    ("counterfoil-store-postgres", 3),
    ("counterfoil-gateway-stripe", 3),
    ("counterfoil-gateway-peer", 3),
    ("counterfoil-redis", 3),
    ("counterfoil-wire", 3),
    // Above the engine, which gets its randomness as an argument.
    ("counterfoil-prng", 3),
    ("counterfoil-api", 4),
    ("counterfoil-provider-simulator", 4),
    ("counterfoil-load", 4),
    ("counterfoil", 5),
    ("counterfoil-testkit", TESTKIT),
    ("counterfoil-fuzz", DEV),
    ("counterfoil-model", DEV),
    ("counterfoil-ordinary", DEV),
    ("counterfoil-powerloss", DEV),
    ("counterfoil-dst", DEV),
    ("xtask", DEV),
];

fn ring(name: &str) -> Option<u8> {
    RINGS.iter().find(|(known, _)| *known == name).map(|(_, ring)| *ring)
}

/// Violations in the packages of `cargo metadata`. Test dependencies may point anywhere.
fn complaints(metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    let packages = metadata["packages"].as_array().expect("cargo lists packages");
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(own) = ring(name) else {
            complaints.push(format!("{name} has no ring; place it in this test and in ARCHITECTURE.md"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().expect("cargo lists dependencies");
        for dependency in dependencies.iter().filter(|it| it["kind"] != "dev") {
            let other = dependency["name"].as_str().unwrap_or_default();
            match ring(other) {
                Some(ring) if ring >= own => {
                    complaints.push(format!("{name} must not depend on {other}: it is no lower ring"));
                }
                Some(_) | None => {}
            }
        }
    }
    complaints
}

#[test]
fn dependencies_point_inwards() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    assert_eq!(metadata["packages"].as_array().map(Vec::len), Some(RINGS.len()));
    none(&complaints(&metadata));
}

#[test]
fn wrong_directions_are_found() {
    let package = |name: &str, kind: Value, dependency: &str| {
        let dependencies = [serde_json::json!({ "name": dependency, "kind": kind })];
        serde_json::json!({ "packages": [{ "name": name, "dependencies": dependencies }] })
    };
    for (name, dependency) in [
        ("counterfoil-core", "counterfoil-store"),
        ("counterfoil-store", "counterfoil-gateway"),
        ("counterfoil-api", "counterfoil-provider-simulator"),
        ("counterfoil", "xtask"),
        ("counterfoil-new", "counterfoil-core"),
    ] {
        assert_eq!(complaints(&package(name, Value::Null, dependency)).len(), 1, "{name} to {dependency}");
    }
    assert!(complaints(&package("counterfoil-engine", Value::Null, "counterfoil-store")).is_empty());
    assert!(complaints(&package("counterfoil-store", "dev".into(), "counterfoil-engine")).is_empty());
    assert_eq!(complaints(&package("counterfoil-store", "build".into(), "counterfoil-engine")).len(), 1);
}
