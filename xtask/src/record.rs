//! `record`: runs a build that counts what it executes under the loads that matter, and keeps the counts for release builds
//! to be guided by.

use crate::compile::{self, Profile, cargo, plain, root};
use crate::failure::{Failure, Result};
use crate::process::captured;
use crate::servers::install;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::process::Command;

/// What release builds are guided by; `.cargo/rustc-guided` looks for it there.
const RECORDING: &str = ".cargo/release.profdata";
/// The Debian package with a tool that understands what this compiler's programs count.
const PACKAGE: &str = "llvm-19";
const TOOL: &str = "llvm-profdata";
/// The loads, each a command of xtask: what is fast in them gets fast, what none of them does is compiled to be small.
const LOADS: [&[&str]; 4] = [
    &["crash", "--profile", "release", "--kills", "20"],
    &["bench", "--connections", "64", "--seconds", "3", "--rounds", "1", "--stored", "1000"],
    &["bench", "--store", "postgres", "--connections", "64", "--seconds", "2", "--rounds", "1"],
    &["bench", "--ledger", "--connections", "64", "--seconds", "1", "--rounds", "1"],
];

/// Records a release build at work, for release builds to be guided by.
#[derive(Args)]
pub(crate) struct Record {}

impl Record {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let tool = tool().await?;
        let built = compile::build(Profile::Recorded, &["counterfoil", "xtask"]).await?;
        let counts = Profile::recorded_directory().join("counts");
        // Counts of another build do not fit.
        let _ = std::fs::remove_dir_all(&counts);
        for load in LOADS {
            eprintln!("\n$ xtask {}", load.join(" "));
            let mut command = Command::new(built.path("xtask")?);
            plain(command.as_std_mut());
            // In the same environment the load finds everything built.
            command.args(load).envs(Profile::Recorded.environment());
            command.env("LLVM_PROFILE_FILE", counts.join("%c%p.profraw"));
            run(&mut command, &format!("xtask {}", load.join(" "))).await?;
        }
        let recording = root().join(RECORDING);
        let mut merge = Command::new(&tool);
        merge.args(["merge", "--sparse", "--output"]).arg(&recording).arg(&counts);
        run(&mut merge, &format!("{} merge", tool.display())).await.map_err(|failure| {
            Failure::new(format!(
                "{failure}; the tool may be older than the compiler: rustup component add llvm-tools"
            ))
        })?;
        let _ = std::fs::remove_dir_all(&counts);
        // Cargo does not know that the compiler reads it.
        let mut clean = Command::new(cargo());
        plain(clean.as_std_mut());
        run(clean.args(["clean", "--release"]).current_dir(root()), "cargo clean --release").await?;
        println!("{RECORDING} is new: build with --release, measure, and commit it if it is better");
        Ok(ExitCode::SUCCESS)
    }
}

async fn run(command: &mut Command, what: &str) -> Result<()> {
    let output = captured(command).await.map_err(Failure::while_(what))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{what} ended with {}; see above", output.status)))
}

/// The compiler's own tool, or Debian's.
async fn tool() -> Result<PathBuf> {
    let mut command = Command::new("rustc");
    let asked = captured(command.args(["--print", "target-libdir"])).await;
    let output = asked.map_err(Failure::while_("asking rustc where its tools are"))?;
    let libraries = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let own = Path::new(&libraries).with_file_name("bin").join(TOOL);
    if own.is_file() {
        return Ok(own);
    }
    let debians = Path::new("/usr/lib").join(PACKAGE).join("bin").join(TOOL);
    if !debians.is_file() {
        install(PACKAGE)?;
    }
    Ok(debians)
}
