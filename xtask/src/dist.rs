//! `dist`: builds the server for packaging, optimised with counters from a run of the loads that
//! matter (PGO).

use crate::compile::{self, Profile, plain};
use crate::failure::{Failure, Result};
use crate::pgo;
use crate::process::captured;
use clap::Args;
use std::path::Path;
use std::process::ExitCode;
use tokio::process::Command;

/// Both builds select the same packages: other features would give functions other names, and no
/// counter would fit.
const PACKAGES: [&str; 2] = ["counterfoil", "xtask"];
/// Builds the server for packaging, with profile-guided optimisation (PGO).
#[derive(Args)]
pub(crate) struct Dist {
    /// Builds once, without PGO: the same fat LTO, no loads, no profile.
    #[arg(long)]
    no_profile: bool,
}

impl Dist {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let (built, how) = if self.no_profile {
            (compile::build(Profile::Dist, &["counterfoil"]).await?, "without PGO")
        } else {
            // Look for the tool before the long build, not after.
            let tool = pgo::merge_tool()?;
            record().await?;
            merge(&tool).await?;
            (compile::build(Profile::Guided, &PACKAGES).await?, "with PGO")
        };
        println!("built {how}: {}", built.path("counterfoil")?.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// The loads, each a command of `xtask`. Code that none of them runs is optimised for size. `crash`
/// would build the server alone, with other features, so it is given the binary.
fn loads(server: &str) -> [Vec<&str>; 4] {
    let words = |line: &'static str| line.split(' ');
    [
        words("crash --kills 20 --binary").chain([server]).collect(),
        words("bench --connections 64 --seconds 3 --rounds 1 --stored 1000").collect(),
        words("bench --store postgres --connections 64 --seconds 2 --rounds 1").collect(),
        words("bench --ledger --connections 64 --seconds 1 --rounds 1").collect(),
    ]
}

/// Builds with counters and runs the loads.
async fn record() -> Result<()> {
    let built = compile::build(Profile::Counting, &PACKAGES).await?;
    // Counters of an earlier build do not fit this one.
    remove(&pgo::counters())?;
    let (environment, server) = (pgo::counting()?, built.path("counterfoil")?.display().to_string());
    for load in loads(&server) {
        eprintln!("\n$ xtask {}", load.join(" "));
        let mut command = Command::new(built.path("xtask")?);
        plain(command.as_std_mut());
        // With the build's environment the load's own call of cargo finds everything built.
        command.args(&load).envs(environment.clone());
        command.env("LLVM_PROFILE_FILE", pgo::counters().join("%c%p.profraw"));
        run(&mut command, &format!("xtask {}", load.join(" "))).await?;
    }
    Ok(())
}

async fn merge(tool: &Path) -> Result<()> {
    let mut command = Command::new(tool);
    command.args(["merge", "--sparse", "--output"]).arg(pgo::profile()).arg(pgo::counters());
    run(&mut command, &format!("{} merge", tool.display())).await.map_err(|failure| {
        Failure::new(format!(
            "{failure}; the tool may be older than the compiler: rustup component add llvm-tools"
        ))
    })?;
    remove(&pgo::counters())?;
    remove(&pgo::guided_directory())
}

fn remove(directory: &Path) -> Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::while_(format!("deleting {}", directory.display()))(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

async fn run(command: &mut Command, what: &str) -> Result<()> {
    let output = captured(command).await.map_err(Failure::while_(what))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{what} ended with {}; see above", output.status)))
}
