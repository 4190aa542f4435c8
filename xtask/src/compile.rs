//! Builds packages of this workspace and says where their executables are.

use crate::failure::{Failure, Result};
use crate::process::captured;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// How to build.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Profile {
    /// Built fast.
    Dev,
    /// Runs fast.
    Release,
    /// As cargo builds what nobody has tuned.
    #[value(skip)]
    Ordinary,
    /// Counts what it executes, for release builds to be guided by.
    #[value(skip)]
    Recorded,
}

impl Profile {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Profile::Dev => &[],
            Profile::Release | Profile::Recorded => &["--release"],
            Profile::Ordinary => &["--profile", "ordinary"],
        }
    }

    /// What cargo is told besides. With `COUNTERFOIL_RECORD`, `.cargo/rustc-guided` has release builds count.
    pub(crate) fn environment(self) -> Vec<(&'static str, OsString)> {
        match self {
            Profile::Dev | Profile::Release | Profile::Ordinary => Vec::new(),
            Profile::Recorded => vec![
                ("COUNTERFOIL_RECORD", "1".into()),
                ("CARGO_TARGET_DIR", Profile::recorded_directory().into()),
            ],
        }
    }

    /// Of its own: cargo does not know what the environment tells the compiler.
    pub(crate) fn recorded_directory() -> PathBuf {
        root().join("target/recorded")
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

/// The workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// The cargo that runs us, or the one on the path.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// What cargo tells a program it runs about the program's own package. Build scripts of dependencies read the same names,
/// so that a cargo started with them builds everything anew that another one has just built without.
const OF_THE_PACKAGE: [&str; 5] =
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"];

/// Takes away what the cargo that runs us has told us.
pub(crate) fn plain(command: &mut std::process::Command) {
    for (name, _) in std::env::vars_os() {
        if OF_THE_PACKAGE.iter().any(|known| name.to_string_lossy().starts_with(known)) {
            command.env_remove(name);
        }
    }
}

/// Builds `packages`; compiler messages go to stderr.
pub(crate) async fn build(profile: Profile, packages: &[&str]) -> Result<Executables> {
    let mut command = Command::new(cargo());
    command.args(["build", "--message-format=json-render-diagnostics"]).current_dir(root());
    command.args(profile.arguments()).envs(profile.environment());
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

/// Reads cargo's messages, one JSON object a line.
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
    fn finds_executables_among_cargos_messages() {
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
