//! `hostile`: bad input over the whole HTTP surface. First the corpus, thousands of bad requests
//! with their exact answers. Then Schemathesis, which generates requests from the served
//! description and checks the answers against it.

mod schemathesis;

use crate::compile::{self, Profile, cargo, plain, root};
use crate::failure::{Failure, Result};
use clap::Args;
use std::process::ExitCode;
use tokio::process::Command;

/// Bad input over the whole HTTP surface: the corpus, then requests generated from the served
/// description.
#[derive(Args)]
pub(crate) struct Hostile {
    /// Generated requests per operation and phase.
    #[arg(long, default_value_t = 25)]
    examples: u32,
    /// Seed of the generated requests.
    #[arg(long, default_value_t = 1)]
    seed: u32,
}

impl Hostile {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let corpus = corpus().await?;
        let built = compile::build(Profile::Dev, &["counterfoil"]).await?;
        let described = schemathesis::run(built.path("counterfoil")?, self.examples, self.seed).await?;
        for (name, passed) in [("corpus", corpus), ("description", described)] {
            println!("{name}: {}", if passed { "holds" } else { "FAILED" });
        }
        Ok(if corpus && described { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Runs the corpus and prints its totals. Returns whether every answer was the expected one.
async fn corpus() -> Result<bool> {
    // Each test starts a server, and one of them measures the server's memory, so they run one
    // after the other.
    let arguments = "test --package counterfoil --test hostile -- --nocapture --test-threads=1";
    let mut command = Command::new(cargo());
    plain(command.as_std_mut());
    command.args(arguments.split(' ')).current_dir(root()).kill_on_drop(true);
    let status = command.status().await.map_err(Failure::while_("starting cargo"))?;
    Ok(status.success())
}
