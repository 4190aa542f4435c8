//! Common parts of the servers: a supervisor that ends the server with this process, a free port,
//! and liveness checks.

use crate::failure::{Failure, Result};
use rustix::process::Pid;
use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Below Linux's ephemeral range: a client that connects to a dead server must not be given its
/// port.
const PORTS: std::ops::Range<u16> = 15_000..30_000;
const PAUSE: Duration = Duration::from_millis(20);

/// Supervises the server while stdin is open, that is, while the process that started it lives.
/// When that process ends, however it does, the server ends too. Its directory is deleted unless a
/// line on stdin says that it is still needed.
const SCRIPT: &str = r#"signal=$1; dir=$2; shift 2; "$@" & pid=$!; echo $pid > "$dir/pid"
if read -r word; then kill -$signal $pid; wait $pid; else kill -$signal $pid; wait $pid; rm -rf "$dir"; fi"#;

/// The supervisor process of a server.
#[derive(Debug)]
pub(crate) struct Supervisor(Child);

impl Supervisor {
    /// Starts `server`, which stops at once on `signal`, with its output in `log` in the directory.
    pub(crate) fn start(server: &Command, signal: &str, dir: &Path) -> Result<Supervisor> {
        let log = File::create(dir.join("log")).map_err(Failure::while_("making a server's log"))?;
        let errors = log.try_clone().map_err(Failure::while_("making a server's log"))?;
        let mut supervisor = Command::new("sh");
        supervisor.args(["-c", SCRIPT, "keeper", signal]).arg(dir);
        supervisor.arg(server.get_program()).args(server.get_args());
        if let Some(folder) = server.get_current_dir() {
            supervisor.current_dir(folder);
        }
        // A separate process group: Ctrl-C on the tests must not reach the server before the
        // supervisor.
        supervisor.process_group(0).stdin(Stdio::piped()).stdout(log).stderr(errors);
        supervisor.spawn().map(Supervisor).map_err(Failure::while_("starting a server"))
    }

    /// Stops the server and keeps its directory.
    pub(crate) fn stop(mut self) {
        if let Some(mut word) = self.0.stdin.take() {
            // The supervisor may have ended already, and the server with it.
            let _ = word.write_all(b"keep\n");
        }
        let _ = self.0.wait();
    }
}

/// The output of the server in `dir`.
pub(crate) fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// Polls until `done` returns true or the time is over. Returns whether it did.
pub(crate) fn until(within: Duration, mut done: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < within {
        if done() {
            return true;
        }
        sleep(PAUSE);
    }
    false
}

/// The process id in the first line of a file.
pub(crate) fn pid_in(path: &Path) -> Option<Pid> {
    let text = fs::read_to_string(path).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    // A zombie is dead: it holds nothing and only waits for its parent.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

pub(crate) fn free_port() -> Result<u16> {
    let mut seed = RandomState::new().build_hasher().finish();
    for _ in 0..200 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let span = u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from((seed >> 33) % span).unwrap_or(0);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Failure::new("no free port was found for a server"))
}
