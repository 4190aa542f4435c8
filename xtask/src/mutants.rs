//! `mutants`: changes the core and the store's judge one place at a time and counts the changes
//! that no test notices. `.cargo/mutants.toml` selects the changes and how to build them. Only
//! `docs/mutants.md` explains survivors that change no behaviour; any other survivor fails the
//! command.

pub(crate) mod survivors;

use crate::compile::{cargo, plain, root};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use clap::Args;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use survivors::Run;

/// The version whose mutant names `docs/mutants.md` uses.
const VERSION: &str = "27.1.0";

/// Exit codes of cargo-mutants after a complete run: nothing missed, something missed, something
/// timed out.
const DONE: [i32; 3] = [0, 2, 3];

/// Changes the core and the store's judge one place at a time.
#[derive(Args)]
pub(crate) struct Mutants {
    /// Handed to cargo-mutants, for example `--re judge`, `--shard 1/4` or `--list`.
    #[arg(last = true)]
    tool: Vec<String>,
}

impl Mutants {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        install()?;
        let mut command = tool();
        command.args(["mutants", "--jobs", "1", "--output", "target", "--colors", "never"]);
        command.args(["--caught", "--unviable"]);
        command.args(["--package", "counterfoil-core", "--package", "counterfoil-store"]).args(&self.tool);
        if self.tool.iter().any(|word| word == "--list") {
            return ended(command.status().map_err(Failure::while_("starting cargo-mutants"))?.code());
        }
        ended(followed(&mut command)?)?;
        let run = Run::read(&root())?;
        for survivor in &run.unexplained {
            eprintln!("unexplained: {survivor}");
        }
        let gone = if self.tool.is_empty() { run.gone.as_slice() } else { &[] };
        for name in gone {
            eprintln!("explained in {}, but caught or removed: {name}", survivors::EXPLAINED);
        }
        eprintln!("{run}");
        let good = run.unexplained.is_empty() && gone.is_empty();
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// A cargo command without the variables of the cargo that started this program.
fn tool() -> Command {
    let mut command = Command::new(cargo());
    plain(&mut command);
    command.current_dir(root());
    command
}

fn install() -> Result<()> {
    let there = tool().args(["mutants", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let installed = tool().args(["install", "cargo-mutants", "--version", VERSION, "--locked"]).status();
    if installed.map_err(Failure::while_("starting cargo"))?.success() {
        return Ok(());
    }
    Err(Failure::new("cargo-mutants cannot be installed; see above"))
}

fn ended(code: Option<i32>) -> Result<ExitCode> {
    match code {
        Some(code) if DONE.contains(&code) => Ok(ExitCode::SUCCESS),
        _ => Err(Failure::new(
            "cargo-mutants could not test anything: the tests fail without a change, or its words are wrong; see above",
        )),
    }
}

/// Runs cargo-mutants with a progress display, and prints survivors as they are found.
fn followed(command: &mut Command) -> Result<Option<i32>> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(Failure::while_("starting cargo-mutants"))?;
    let (mut progress, mut tested, mut survived) = (Progress::new(0), 0, 0);
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let line = line.map_err(Failure::while_("reading the output of cargo-mutants"))?;
        match line.split_whitespace().next() {
            Some("Found") => progress = Progress::new(found(&line)),
            Some("caught" | "unviable" | "TIMEOUT") => tested += 1,
            Some("MISSED") => {
                (tested, survived) = (tested + 1, survived + 1);
                eprintln!("{line}");
            }
            _ => eprintln!("{line}"),
        }
        progress.show(tested, &format!("survived {survived}"));
    }
    Ok(child.wait().map_err(Failure::while_("waiting for cargo-mutants"))?.code())
}

/// The number in `Found 64 mutants to test`.
fn found(line: &str) -> u64 {
    line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).unwrap_or(0)
}
