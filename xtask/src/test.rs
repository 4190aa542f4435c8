//! `test`: everything that must hold before a commit. All steps run, so that one mistake does not hide another.

use crate::compile::{cargo, plain, root};
use crate::failure::{Failure, Result};
use crate::servers::Servers;
use clap::Args;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Everything that must hold before a commit.
#[derive(Args)]
pub(crate) struct Test {
    /// Handed to the test runner, for example a part of a test's name.
    #[arg(last = true)]
    runner: Vec<String>,
}

/// One step: its name in the summary, and the cargo command that it is.
struct Step {
    name: &'static str,
    arguments: Vec<String>,
    needs_servers: bool,
}

impl Step {
    fn new(name: &'static str, arguments: &str) -> Step {
        let arguments = arguments.split(' ').map(str::to_owned).collect();
        Step { name, arguments, needs_servers: false }
    }

    /// With the servers that tests talk to beside it.
    fn served(self) -> Step {
        Step { needs_servers: true, ..self }
    }

    fn with(mut self, more: &[String]) -> Step {
        self.arguments.extend_from_slice(more);
        self
    }

    fn run(&self) -> Result<bool> {
        // What the tests talk to lives as long as the step.
        let servers = if self.needs_servers { Some(Servers::start()?) } else { None };
        eprintln!("\n$ cargo {}", self.arguments.join(" "));
        let mut command = Command::new(cargo());
        plain(&mut command);
        command.args(&self.arguments).envs(servers.iter().flat_map(Servers::variables)).current_dir(root());
        let status = command.status().map_err(Failure::while_("starting cargo"))?;
        Ok(status.success())
    }
}

impl Test {
    pub(crate) fn run(self) -> ExitCode {
        let begun = Instant::now();
        let steps = steps(has_nextest(), &self.runner);
        let mut failed = Vec::new();
        for step in &steps {
            let passed = step.run().unwrap_or_else(|failure| {
                eprintln!("xtask: {failure}");
                false
            });
            if !passed {
                failed.push(step.name);
            }
        }
        let seconds = begun.elapsed().as_secs();
        let (code, line) = summary(&steps, &failed, seconds);
        eprintln!("\n{line}");
        code
    }
}

/// The steps, in order of how soon they answer.
fn steps(nextest: bool, runner: &[String]) -> Vec<Step> {
    let tests = if nextest {
        Step::new("tests", "nextest run --workspace").with(runner)
    } else {
        let all = Step::new("tests", "test --workspace --lib --bins --tests --examples");
        if runner.is_empty() { all } else { all.with(&["--".to_owned()]).with(runner) }
    };
    vec![
        Step::new("format", "fmt --all --check"),
        Step::new("lints", "clippy --workspace --all-targets -- -D warnings"),
        Step::new("documentation tests", "test --workspace --doc --quiet"),
        tests.served(),
    ]
}

fn summary(steps: &[Step], failed: &[&str], seconds: u64) -> (ExitCode, String) {
    if failed.is_empty() {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        (ExitCode::SUCCESS, format!("passed: {} ({seconds} s)", names.join(", ")))
    } else {
        (ExitCode::FAILURE, format!("FAILED: {} ({seconds} s)", failed.join(", ")))
    }
}

fn has_nextest() -> bool {
    let asked = Command::new(cargo())
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(nextest: bool, runner: &[&str]) -> Vec<String> {
        let runner: Vec<String> = runner.iter().map(|&word| word.to_owned()).collect();
        steps(nextest, &runner).iter().map(|step| step.arguments.join(" ")).collect()
    }

    #[test]
    fn every_kind_of_check_runs_with_either_runner() {
        assert_eq!(lines(true, &["judge"])[3], "nextest run --workspace judge");
        assert_eq!(lines(false, &["judge"])[3], "test --workspace --lib --bins --tests --examples -- judge");
        for nextest in [true, false] {
            let lines = lines(nextest, &[]);
            assert_eq!(lines[0], "fmt --all --check");
            assert_eq!(lines[1], "clippy --workspace --all-targets -- -D warnings");
            assert_eq!(lines[2], "test --workspace --doc --quiet");
        }
    }

    #[test]
    fn one_failed_step_fails_the_whole() {
        let steps = steps(true, &[]);
        let (code, line) = summary(&steps, &[], 7);
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(line, "passed: format, lints, documentation tests, tests (7 s)");
        let (code, line) = summary(&steps, &["lints"], 7);
        assert_eq!(code, ExitCode::FAILURE);
        assert_eq!(line, "FAILED: lints (7 s)");
    }
}
