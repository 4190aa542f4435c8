//! Builds packages of this workspace and finds their executables.

use crate::failure::{Failure, Result};
use crate::pgo;
use crate::process::captured;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// A cargo profile, and compiler flags on top of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Builds fast.
    Dev,
    /// The build of `cargo build --release`.
    Release,
    /// The build for packaging, without PGO.
    Dist,
    /// Cargo's defaults for release builds.
    #[value(skip)]
    Ordinary,
    /// `dist` with a counter at every branch.
    #[value(skip)]
    Counting,
    /// `dist`, optimised with the counters that `cargo xtask dist` merged.
    #[value(skip)]
    Guided,
}

impl Profile {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Profile::Dev => &[],
            Profile::Release => &["--release"],
            Profile::Dist | Profile::Counting | Profile::Guided => &["--profile", "dist"],
            Profile::Ordinary => &["--profile", "ordinary"],
        }
    }

    /// Changes the environment of a cargo command so that it builds this profile.
    fn apply(self, command: &mut std::process::Command) -> Result<()> {
        match self {
            Profile::Dev | Profile::Release | Profile::Dist => {}
            // A run under counters must not count the program that it compares with.
            Profile::Ordinary => drop(command.env_remove(pgo::FLAGS)),
            Profile::Counting => drop(command.envs(pgo::counting()?)),
            Profile::Guided => drop(command.envs(pgo::guided()?)),
        }
        Ok(())
    }
}

/// Executables by name.
pub(crate) struct Executables(BTreeMap<String, PathBuf>);

impl Executables {
    pub(crate) fn path(&self, name: &str) -> Result<&Path> {
        let path = self.0.get(name).map(PathBuf::as_path);
        path.ok_or_else(|| Failure::new(format!("cargo built no executable `{name}`")))
    }
}

/// The workspace's directory.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// The cargo that started this program, or the one on the path.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Cargo's build directory.
pub(crate) fn target_directory() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Variables with which `cargo run` describes the package of the program it runs. Build scripts of
/// dependencies read the same names, so a nested cargo that sees them rebuilds everything.
const PACKAGE_VARIABLES: [&str; 5] =
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"];

/// Removes the variables with which cargo describes this package.
pub(crate) fn plain(command: &mut std::process::Command) {
    for (name, _) in std::env::vars_os() {
        if PACKAGE_VARIABLES.iter().any(|known| name.to_string_lossy().starts_with(known)) {
            command.env_remove(name);
        }
    }
}

/// Builds `packages`; compiler messages go to stderr.
pub(crate) async fn build(profile: Profile, packages: &[&str]) -> Result<Executables> {
    let mut command = Command::new(cargo());
    command.args(["build", "--message-format=json-render-diagnostics"]).current_dir(root());
    command.args(profile.arguments());
    profile.apply(command.as_std_mut())?;
    for package in packages {
        command.args(["--package", package]);
    }
    plain(command.as_std_mut());
    let output = captured(&mut command).await.map_err(Failure::while_("starting cargo"))?;
    if !output.status.success() {
        return Err(Failure::new(format!("{} cannot be built; see above", packages.join(", "))));
    }
    Ok(Executables(executables(&output.stdout)))
}

/// Reads cargo's messages: one JSON object per line.
fn executables(messages: &[u8]) -> BTreeMap<String, PathBuf> {
    let lines = messages.split(|&byte| byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    messages
        .filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, PathBuf::from(message["executable"].as_str()?)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_among_cargos_messages() {
        let messages =
            br#"{"reason":"compiler-artifact","target":{"name":"counterfoil_core"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"counterfoil"},"executable":"/t/release/counterfoil"}
{"reason":"build-finished","success":true}
"#;
        let found = Executables(executables(messages));
        assert_eq!(found.path("counterfoil").unwrap(), Path::new("/t/release/counterfoil"));
        assert!(found.path("counterfoil_core").is_err());
    }
}
