//! `prove`: the long campaign. Runs every proof for its share of the time, one after the other, as
//! commands that anybody can run alone. Prints a report; any violation fails the campaign.

mod part;
mod read;
mod report;
mod run;

use crate::compile::{self, Profile, root};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use clap::Args;
use part::{PARTS, Part, Program};
use report::Report;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Runs every proof for the given hours and prints one report.
#[derive(Args)]
pub(crate) struct Prove {
    /// Approximate hours in all.
    #[arg(long, default_value_t = 1)]
    hours: u64,
    /// Additional minutes.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Only these parts, by name; each keeps its share.
    #[arg(long, value_delimiter = ';')]
    only: Vec<String>,
    /// Repeats an earlier campaign's choices.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints a JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

impl Prove {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let parts = self.parts()?;
        let mut packages = vec!["counterfoil"];
        for part in &parts {
            if let Program::Package(name) = part.program
                && !packages.contains(&name)
            {
                packages.push(name);
            }
        }
        let built = compile::build(Profile::Release, &packages).await?;
        let logs = root().join("target/prove");
        std::fs::create_dir_all(&logs).map_err(Failure::while_(format!("making {}", logs.display())))?;
        let seed = self
            .seed
            .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
        let (begun, whole) = (Instant::now(), self.hours * 3_600 + self.minutes * 60);
        let seconds = |part: &Part| (whole * part.share / 1_000).max(1);
        let progress = Progress::new(parts.iter().map(|part| seconds(part)).sum());
        let (mut done, mut before) = (Vec::new(), 0);
        for part in parts {
            let part_seconds = seconds(part);
            let found = run::run(part, part_seconds, seed, &built, &logs, &progress, before).await?;
            if !found.end.is_good() {
                eprintln!("xtask: {}: {}; see {}", found.name, found.end.name(), found.log.display());
            }
            before += part_seconds;
            done.push(found);
        }
        drop(progress);
        let report = Report { seed, took: begun.elapsed(), done };
        if self.json {
            println!("{}", report.json());
        } else {
            println!("{}", report.tables());
        }
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn parts(&self) -> Result<Vec<&'static Part>> {
        let known = |name: &String| PARTS.iter().any(|part| part.name == name);
        if let Some(unknown) = self.only.iter().find(|name| !known(name)) {
            let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            return Err(Failure::new(format!(
                "there is no part `{unknown}`; name one of {}",
                names.join("; ")
            )));
        }
        let wanted = |part: &&Part| self.only.is_empty() || self.only.iter().any(|name| name == part.name);
        Ok(PARTS.iter().filter(wanted).collect())
    }
}
