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

/// Builds `packages`; compiler messages go to stderr.
pub(crate) async fn build(profile: Profile, packages: &[&str]) -> Result<Executables> {
    let mut command = Command::new(cargo());
    command.args(["build", "--message-format=json-render-diagnostics"]).current_dir(root());
    match profile {
        Profile::Dev => {}
        Profile::Release => {
            command.arg("--release");
        }
    }
    for package in packages {
        command.args(["--package", package]);
    }
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
