//! A part as a process: start, watch, stop, read.

use super::part::{Ends, Part, Program};
use crate::compile::{Executables, root};
use crate::failure::{Failure, Result};
use crate::process::Running;
use crate::progress::Progress;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::time::sleep;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Extra time for parts that end by themselves: build, start, and last answers.
const GRACE: Duration = Duration::from_mins(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Everything holds.
    Holds,
    /// The time was over; all checks until then hold.
    Stopped,
    /// At least one check failed.
    Violated,
    /// The part could not run.
    Failed,
}

impl End {
    pub(super) fn is_good(self) -> bool {
        matches!(self, End::Holds | End::Stopped)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            End::Holds => "holds",
            End::Stopped => "holds so far",
            End::Violated => "VIOLATED",
            End::Failed => "FAILED",
        }
    }
}

/// Result of a part.
pub(super) struct Done {
    pub(super) name: &'static str,
    pub(super) took: Duration,
    pub(super) end: End,
    pub(super) figures: Vec<(&'static str, u64)>,
    pub(super) log: PathBuf,
}

/// Runs a part for the given number of seconds.
pub(super) async fn run(
    part: &Part,
    seconds: u64,
    seed: u64,
    built: &Executables,
    logs: &Path,
    progress: &Progress,
    before: u64,
) -> Result<Done> {
    let begun = Instant::now();
    let log = logs.join(format!("{}.log", part.name.replace([' ', ','], "-")));
    let opened = || File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) = opened().map_err(Failure::while_(format!("opening {}", log.display())))?;
    let words = (part.words)(seconds, seed);
    let mut command = command(part.program, built)?;
    command.args(words.split(' ')).current_dir(root());
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut running = Running::start("part", &mut command)?;
    let share = Duration::from_secs(seconds);
    let ended = loop {
        if let Some(status) = running.ended() {
            break Some(status);
        }
        let limit = match part.ends {
            Ends::ByItself => share + share + GRACE,
            Ends::WithItsTime => share,
        };
        if begun.elapsed() > limit {
            break None;
        }
        progress.show(before + begun.elapsed().as_secs().min(seconds), part.name);
        sleep(LOOK_EVERY).await;
    };
    if ended.is_none() {
        // SIGTERM lets the part stop its own processes.
        let _ = running.terminate(Duration::from_secs(30)).await;
    }
    let text = std::fs::read(&log).map_err(Failure::while_(format!("reading {}", log.display())))?;
    let figures = (part.read)(&String::from_utf8_lossy(&text));
    let broken = figures.iter().any(|(name, figure)| matches!(*name, "broken" | "differing") && *figure > 0);
    let end = match (ended.map(|status| status.code()), part.ends) {
        (Some(Some(0)), _) if !broken => End::Holds,
        (None, Ends::WithItsTime) if !broken => End::Stopped,
        (Some(Some(0 | 1)) | None, _) => End::Violated,
        (Some(Some(_) | None), _) => End::Failed,
    };
    Ok(Done { name: part.name, took: begun.elapsed(), end, figures, log })
}

fn command(program: Program, built: &Executables) -> Result<Command> {
    let own = || std::env::current_exe().map_err(Failure::while_("finding this program"));
    Ok(match program {
        Program::Package(name) => Command::new(built.path(name)?),
        Program::Own => Command::new(own()?),
        Program::Crash => {
            let mut command = Command::new(own()?);
            command.arg("crash").arg("--binary").arg(built.path("counterfoil")?);
            command
        }
    })
}
