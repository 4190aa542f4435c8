//! `mutants`: changes the money modules one place at a time and counts the changes that no test notices. What is changed,
//! and how it is built, is in `.cargo/mutants.toml`; survivors that change nothing are listed in `docs/mutants.md`.

use crate::compile::{cargo, plain, root};
use crate::failure::{Failure, Result};
use clap::Args;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The release whose list of changes `docs/mutants.md` speaks of.
const VERSION: &str = "27.1.0";

/// Changes the money modules one place at a time.
#[derive(Args)]
pub(crate) struct Mutants {
    /// Handed to cargo-mutants, for example `--re judge` or `--shard 1/4`.
    #[arg(last = true)]
    tool: Vec<String>,
}

impl Mutants {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let there = Command::new(cargo()).args(["mutants", "--version"]).stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            run(&["install", "cargo-mutants", "--version", VERSION, "--locked"], &[])?;
        }
        let packages = ["--package", "counterfoil-core", "--package", "counterfoil-store"];
        let whole = run(
            &["mutants", "--jobs", "1", "--output", "target"],
            &[&packages[..], &words(&self.tool)].concat(),
        )?;
        let found = root().join("target/mutants.out");
        let [caught, missed, unviable, timeout] =
            ["caught", "missed", "unviable", "timeout"].map(|name| count(&found, name));
        eprintln!("\ncaught {caught}, missed {missed}, unviable {unviable}, timeout {timeout}");
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn run(arguments: &[&str], more: &[&str]) -> Result<bool> {
    let mut command = Command::new(cargo());
    plain(&mut command);
    command.args(arguments).args(more).current_dir(root());
    Ok(command.status().map_err(Failure::while_("starting cargo"))?.success())
}

/// One line for each change.
fn count(found: &Path, name: &str) -> usize {
    std::fs::read_to_string(found.join(name).with_extension("txt")).map_or(0, |lines| lines.lines().count())
}
