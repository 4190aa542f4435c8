//! Real processes: started, signalled, measured, and never left behind.

mod port;
mod product;

pub(crate) use port::free_address;
pub(crate) use product::{Product, clean};

use crate::failure::{Failure, Result};
use counterfoil_load::cpu;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// CPU time of a process so far.
pub(crate) fn cpu_of(pid: u32) -> Result<Duration> {
    cpu::cpu_of(pid).map_err(Failure::while_("counting CPU time"))
}

/// CPU time of this process so far.
pub(crate) fn cpu_of_self() -> Result<Duration> {
    cpu::cpu_of_self().map_err(Failure::while_("counting CPU time"))
}

/// CPU time of a process and all its children so far.
pub(crate) fn cpu_of_family(pid: u32) -> Result<Duration> {
    cpu::cpu_of_family(pid).map_err(Failure::while_("counting CPU time"))
}

/// Runs a short-lived process to its end. Captures stdout and inherits stderr.
pub(crate) async fn captured(command: &mut Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    // `output()` would capture stderr as well and hide the reason of a failure.
    command.spawn()?.wait_with_output().await
}

/// A child process, killed when dropped.
pub(crate) struct Running {
    name: &'static str,
    child: Child,
    pid: u32,
}

impl Running {
    pub(crate) fn start(name: &'static str, command: &mut Command) -> Result<Running> {
        let child =
            command.kill_on_drop(true).spawn().map_err(Failure::while_(format!("starting the {name}")))?;
        let pid = child.id().ok_or_else(|| Failure::new(format!("the {name} ended at once")))?;
        Ok(Running { name, child, pid })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The process's stdin and stdout, if they are pipes and not yet taken.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>) {
        (self.child.stdin.take(), self.child.stdout.take())
    }

    /// Kills with `kill -9` and waits until the kernel has released its port and locks.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.map_err(Failure::while_(format!("killing the {}", self.name)))
    }

    /// Sends SIGTERM and waits.
    pub(crate) async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let ended = timeout(limit, self.child.wait()).await;
        let slow = |_| Failure::new(format!("the {} did not end within {limit:?} of SIGTERM", self.name));
        ended.map_err(slow)?.map_err(Failure::while_(format!("waiting for the {}", self.name)))
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::new(format!("the {} has no process id", self.name)))?;
        kill_process(pid, signal).map_err(Failure::while_(format!("signalling the {}", self.name)))
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Running {
    /// Kills and reaps the process; otherwise it would stay in the process table.
    fn drop(&mut self) {
        const LOOKS_MAX: u32 = 200;
        const PAUSE: Duration = Duration::from_millis(5);
        // An error means that the process has ended already.
        let _ = self.child.start_kill();
        for _ in 0..LOOKS_MAX {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(PAUSE),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Running {
        Running::start("sleeper", Command::new("sleep").arg("600")).unwrap()
    }

    #[tokio::test]
    async fn a_dropped_process_is_killed() {
        let sleeper = sleeper();
        let stat = format!("/proc/{}/stat", sleeper.pid());
        assert!(std::fs::exists(&stat).unwrap());
        drop(sleeper);
        assert!(!std::fs::exists(&stat).unwrap(), "still there");
    }

    #[tokio::test]
    async fn processes_end_on_request() {
        let mut asked = sleeper();
        assert!(asked.ended().is_none());
        assert!(!asked.terminate(Duration::from_secs(10)).await.unwrap().success());
        let mut killed = sleeper();
        killed.kill().await.unwrap();
        assert!(killed.ended().is_some());
    }
}
