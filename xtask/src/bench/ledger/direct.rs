//! Transfers through the engine's interface: a separate process that runs one measurement per line
//! of input.

use super::cell::Cell;
use super::engine::{Done, Order};
use crate::bench::Place;
use crate::bench::neighbours::{Machine, Neighbours};
use crate::bench::sample::{Sample, ms, number};
use crate::failure::{Failure, Result};
use crate::process::{Running, clean};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

/// The child process.
pub(super) struct Direct {
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Killed when dropped.
    _running: Running,
}

impl Direct {
    /// Starts the process on a new store and waits until its accounts are open and funded.
    pub(super) async fn start(place: &Place<'_>) -> Result<Direct> {
        let mut command = Command::new(place.xtask);
        clean(&mut command);
        command.arg("engine").arg("--store").arg(place.directory.join("store-engine"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start("engine", &mut command)?;
        let (Some(orders), Some(answers)) = running.pipes() else {
            return Err(Failure::new("the engine has no pipes"));
        };
        let mut direct = Direct { orders, answers: BufReader::new(answers).lines(), _running: running };
        direct.line().await?;
        Ok(direct)
    }

    pub(super) async fn measure(
        &mut self,
        cell: Cell,
        duration: Duration,
        neighbours: &mut Neighbours,
    ) -> Result<Sample> {
        let order = Order {
            accounts: cell.accounts,
            batch: cell.batch,
            tasks: cell.clients,
            milliseconds: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        };
        let before = Machine::read()?;
        let line = serde_json::to_string(&order).map_err(Failure::while_("telling the engine"))?;
        let sent = self.orders.write_all(format!("{line}\n").as_bytes()).await;
        sent.map_err(Failure::while_("telling the engine"))?;
        let answer = self.line().await?;
        let done: Done = serde_json::from_str(&answer).map_err(Failure::while_("reading from the engine"))?;
        let cpu = Duration::from_micros(done.cpu_us);
        neighbours.add(before, Machine::read()?, cpu);
        Ok(Sample {
            per_second: done.per_second,
            p50_ms: ms(done.p50_us),
            p99_ms: ms(done.p99_us),
            p999_ms: ms(done.p999_us),
            cpu_us: number(done.cpu_us) / number(done.answered.max(1)),
            sets_per_write: number(done.sets) / number(done.writes.max(1)),
            failed: number(done.failed),
        })
    }

    async fn line(&mut self) -> Result<String> {
        let line = self.answers.next_line().await.map_err(Failure::while_("reading from the engine"))?;
        line.ok_or_else(|| Failure::new("the engine has ended; see above"))
    }
}
