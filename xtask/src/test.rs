//! `test`: everything that must hold before a commit, or with `--quick` the daily part of it. All
//! steps run, so that one failure does not hide another.

use crate::compile::{cargo, plain, root};
use crate::failure::{Failure, Result};
use crate::servers::Servers;
use clap::Args;
use std::collections::BTreeSet;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Everything that must hold before a commit.
#[derive(Args)]
pub(crate) struct Test {
    /// Leaves out the long campaigns and the documentation tests: minutes instead of an hour.
    #[arg(long)]
    quick: bool,
    /// Handed to the test runner, for example a part of a test's name.
    #[arg(last = true)]
    runner: Vec<String>,
}

/// An integration test that runs for minutes; `--quick` leaves it out.
struct Campaign {
    package: &'static str,
    target: &'static str,
    proves: &'static str,
}

const CAMPAIGNS: [Campaign; 8] = [
    Campaign { package: "counterfoil-dst", target: "seeds", proves: "a million simulated charges" },
    Campaign { package: "counterfoil-dst", target: "bank", proves: "every planted bug is found" },
    Campaign { package: "counterfoil-model", target: "protocol", proves: "the protocol's state space" },
    Campaign { package: "counterfoil-powerloss", target: "power", proves: "power loss at every write" },
    Campaign { package: "counterfoil-fuzz", target: "short", proves: "mutated bytes on every parser" },
    Campaign { package: "counterfoil", target: "hostile", proves: "26,000 bad requests" },
    Campaign { package: "counterfoil-store-postgres", target: "failover", proves: "failover of PostgreSQL" },
    Campaign { package: "xtask", target: "crash", proves: "kills of real servers under load" },
];

/// A cargo command with its name in the summary.
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

    fn with_servers(self) -> Step {
        Step { needs_servers: true, ..self }
    }

    fn with(mut self, more: impl IntoIterator<Item = String>) -> Step {
        self.arguments.extend(more);
        self
    }

    fn run(&self) -> Result<bool> {
        // The servers live as long as the step.
        let servers = if self.needs_servers { Some(Servers::start()?) } else { None };
        eprintln!("\n$ cargo {}", self.arguments.join(" "));
        let mut command = Command::new(cargo());
        plain(&mut command);
        command.args(&self.arguments).envs(servers.iter().flat_map(Servers::variables)).current_dir(root());
        let status = command.status().map_err(Failure::while_("starting cargo"))?;
        Ok(status.success())
    }
}

/// The program that runs the tests.
enum Runner {
    Nextest,
    /// Plain `cargo test`, with the integration tests of the workspace.
    Cargo(BTreeSet<String>),
}

impl Runner {
    fn find() -> Result<Runner> {
        let asked = Command::new(cargo())
            .args(["nextest", "--version"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if asked.is_ok_and(|status| status.success()) {
            return Ok(Runner::Nextest);
        }
        Ok(Runner::Cargo(integration_tests()?.into_iter().map(|(_, target)| target).collect()))
    }
}

impl Test {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let begun = Instant::now();
        if self.quick {
            eprintln!("{}", left_out());
        }
        let steps = self.steps(&Runner::find()?);
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
        if self.quick {
            eprintln!("{}", left_out());
        }
        Ok(code)
    }

    /// The steps, fastest first.
    fn steps(&self, runner: &Runner) -> Vec<Step> {
        let mut steps = vec![
            Step::new("format", "fmt --all --check"),
            Step::new("lints", "clippy --workspace --all-targets -- -D warnings"),
        ];
        if !self.quick {
            steps.push(Step::new("documentation tests", "test --workspace --doc --quiet"));
        }
        steps.push(self.tests(runner).with_servers());
        steps
    }

    fn tests(&self, runner: &Runner) -> Step {
        match runner {
            Runner::Nextest => {
                let filter = self.quick.then(|| ["-E".to_owned(), without_campaigns()]);
                Step::new("tests", "nextest run --workspace")
                    .with(filter.into_iter().flatten())
                    .with(self.runner.clone())
            }
            Runner::Cargo(targets) => {
                let campaign = |target: &str| CAMPAIGNS.iter().any(|campaign| campaign.target == target);
                let wanted = targets.iter().filter(|target| !(self.quick && campaign(target)));
                let wanted = wanted.flat_map(|target| ["--test".to_owned(), target.clone()]);
                let words = (!self.runner.is_empty()).then(|| "--".to_owned());
                Step::new("tests", "test --workspace --lib --bins --examples")
                    .with(wanted)
                    .with(words)
                    .with(self.runner.clone())
            }
        }
    }
}

/// The filter of nextest that leaves the campaigns out. Nextest refuses a name that no test has.
fn without_campaigns() -> String {
    let names = CAMPAIGNS.map(|campaign| format!("binary_id({}::{})", campaign.package, campaign.target));
    format!("not ({})", names.join(" | "))
}

fn left_out() -> String {
    let lines = CAMPAIGNS.map(|campaign| {
        let name = format!("{}::{}", campaign.package, campaign.target);
        format!("  {name:<38} {}", campaign.proves)
    });
    format!("--quick leaves out the documentation tests and the campaigns:\n{}", lines.join("\n"))
}

/// The integration tests of the workspace: package and target.
fn integration_tests() -> Result<BTreeSet<(String, String)>> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .map_err(Failure::while_("starting cargo metadata"))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(Failure::while_("reading cargo metadata"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| {
        let targets = package["targets"].as_array().into_iter().flatten();
        let tests = targets.filter(|target| target["kind"][0] == "test");
        tests.map(|target| (text(&package["name"]), text(&target["name"])))
    });
    Ok(targets.collect())
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn summary(steps: &[Step], failed: &[&str], seconds: u64) -> (ExitCode, String) {
    if failed.is_empty() {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        (ExitCode::SUCCESS, format!("passed: {} ({seconds} s)", names.join(", ")))
    } else {
        (ExitCode::FAILURE, format!("FAILED: {} ({seconds} s)", failed.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(quick: bool, runner: &[&str]) -> Test {
        Test { quick, runner: runner.iter().map(|&word| word.to_owned()).collect() }
    }

    fn lines(test: &Test, runner: &Runner) -> Vec<String> {
        test.steps(runner).iter().map(|step| step.arguments.join(" ")).collect()
    }

    fn plain_cargo() -> Runner {
        Runner::Cargo(["crash", "rules"].map(str::to_owned).into())
    }

    #[test]
    fn every_kind_of_check_runs_with_either_runner() {
        let whole = test(false, &["judge"]);
        assert_eq!(lines(&whole, &Runner::Nextest)[3], "nextest run --workspace judge");
        assert_eq!(
            lines(&whole, &plain_cargo())[3],
            "test --workspace --lib --bins --examples --test crash --test rules -- judge"
        );
        for runner in [Runner::Nextest, plain_cargo()] {
            let lines = lines(&test(false, &[]), &runner);
            assert_eq!(lines[0], "fmt --all --check");
            assert_eq!(lines[1], "clippy --workspace --all-targets -- -D warnings");
            assert_eq!(lines[2], "test --workspace --doc --quiet");
        }
    }

    #[test]
    fn quick_leaves_out_campaigns_and_documentation_tests() {
        let quick = test(true, &[]);
        let with_nextest = lines(&quick, &Runner::Nextest);
        assert_eq!(with_nextest.len(), 3);
        assert!(with_nextest[2].contains("binary_id(xtask::crash)"), "{with_nextest:?}");
        assert_eq!(lines(&quick, &plain_cargo())[2], "test --workspace --lib --bins --examples --test rules");
        assert!(left_out().contains("xtask::crash"));
    }

    #[test]
    fn campaigns_are_tests_of_the_workspace() {
        let known = integration_tests().unwrap();
        for campaign in CAMPAIGNS {
            let name = (campaign.package.to_owned(), campaign.target.to_owned());
            assert!(known.contains(&name), "{name:?}");
        }
    }

    #[test]
    fn one_failed_step_fails_the_whole() {
        let steps = test(false, &[]).steps(&Runner::Nextest);
        let (code, line) = summary(&steps, &[], 7);
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(line, "passed: format, lints, documentation tests, tests (7 s)");
        let (code, line) = summary(&steps, &["lints"], 7);
        assert_eq!(code, ExitCode::FAILURE);
        assert_eq!(line, "FAILED: lints (7 s)");
    }
}
