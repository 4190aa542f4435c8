//! Moved wall clocks: up to thirty hours forward and back, under a running server and between
//! restarts. Idempotency windows, leases and ordering must not change.
//!
//! A small C library, loaded with LD_PRELOAD, moves the clock. The C compiler that builds SQLite
//! builds it, so nothing has to be installed. Unlike `libfaketime` it leaves the monotonic clock
//! alone, as setting a system clock does.

use super::kill::{FaultCounts, Plan};
use super::scene::Scene;
use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::sleep;

const SOURCE: &str = include_str!("moved.c");
/// Longer than the replay window and its tombstone.
const HOURS: u64 = 30;
/// Clock moves between two kills.
const MOVES: u64 = 4;

/// Moves the wall clock of processes that run with its settings.
pub(super) struct Clock {
    place: TempDir,
}

impl Clock {
    /// Compiles the library.
    pub(super) fn build() -> Result<Clock> {
        let place = tempfile::tempdir().map_err(Failure::while_("making a place for the clock"))?;
        let clock = Clock { place };
        let source = clock.file("moved.c");
        std::fs::write(&source, SOURCE).map_err(Failure::while_("writing the clock library"))?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(clock.file("moved.so")).arg(source);
        let built =
            compiler.status().map_err(Failure::while_("moving the clock needs a C compiler, `cc`"))?;
        if !built.success() {
            return Err(Failure::new("the clock library cannot be built; see above"));
        }
        clock.set(0)?;
        Ok(clock)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Environment variables that put a process under this clock.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        let path = |name| self.file(name).to_string_lossy().into_owned();
        vec![
            ("LD_PRELOAD", path("moved.so")),
            ("MOVED_CLOCK", path("offset")),
            // The log has the time of every request, which proves that the clock really moved.
            ("COUNTERFOIL_SERVER__REQUEST_LOG", "all".to_owned()),
        ]
    }

    fn set(&self, seconds: i64) -> Result<()> {
        // Write in place: processes have the file mapped.
        let mut options = std::fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).open(self.file("offset"));
        let written =
            opened.and_then(|mut file| std::io::Write::write_all(&mut file, &seconds.to_ne_bytes()));
        written.map_err(Failure::while_("moving the clock"))
    }

    fn shift(&self, prng: &mut Prng) -> Result<()> {
        let seconds = i64::try_from(prng.below(HOURS * 3_600)).unwrap_or(0);
        self.set(if prng.once_in(2) { seconds } else { -seconds })
    }
}

/// Moves the clock and kills servers alternately.
pub(super) async fn move_repeatedly(
    scene: &mut Scene,
    clock: &Clock,
    plan: &Plan,
    prng: &mut Prng,
    progress: impl Fn(u64),
) -> Result<FaultCounts> {
    let mut counts = FaultCounts::default();
    let pause_ms = u64::try_from(plan.within.as_millis()).unwrap_or(u64::MAX) / MOVES;
    while counts.kills < plan.kills {
        for _ in 0..MOVES {
            sleep(Duration::from_millis(prng.below(pause_ms))).await;
            clock.shift(prng)?;
            counts.moves += 1;
        }
        let once = Plan { kills: 1, within: Duration::from_millis(1), ..*plan };
        let Scene { launcher, servers, database, .. } = scene;
        let killed = launcher.kill_repeatedly(servers, database.as_mut(), &once, prng, |_| {}).await?;
        counts.kills += killed.kills;
        counts.database_kills += killed.database_kills;
        counts.readiness.extend(killed.readiness);
        progress(counts.kills);
    }
    // The real clock alone gives a short campaign at most two different hours.
    if hours(&scene.launcher.product.read_log("server")?) < 3 {
        return Err(Failure::new("the server's own log is from one hour only: its clock was not moved"));
    }
    Ok(counts)
}

/// Number of different hours in the lines of a log.
fn hours(log: &str) -> usize {
    let of_line = |line: &str| Some(line.split_once(r#""timestamp":""#)?.1.get(..13)?.to_owned());
    log.lines().filter_map(of_line).collect::<std::collections::HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wall_clock_of_a_process_is_moved() {
        let clock = Clock::build().unwrap();
        let date_at = |seconds| {
            clock.set(seconds).unwrap();
            let output = Command::new("date").arg("+%s").envs(clock.settings()).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        let day = 86_400;
        let (now, later, earlier) = (date_at(0), date_at(day), date_at(-day));
        assert!((day..day + 60).contains(&(later - now)), "{later} after {now}");
        assert!((day - 60..=day).contains(&(now - earlier)), "{earlier} before {now}");
    }

    #[test]
    fn hours_are_counted() {
        let line = |hour| format!(r#"{{"timestamp":"2026-11-15T{hour}:13:29.768546Z","level":"INFO"}}"#);
        assert_eq!(hours(&[line(14), line(15), line(14), "noise".to_owned()].join("\n")), 2);
        assert_eq!(hours(""), 0);
    }
}
