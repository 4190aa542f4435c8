//! A server process with its own directory. Tests can kill it and restart it on its files.

use super::binaries::{Binaries, find};
use crate::failure::{Failure, Result};
use crate::supervisor::{Supervisor, free_port, is_alive, log, pid_in, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const READY_WITHIN: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Owner of the databases. Connections over loopback need no password.
const USER: &str = "counterfoil";

/// Settings of every server; none makes a commit less durable. Durability settings keep
/// PostgreSQL's defaults, because a setting given here could not be changed while the server runs.
const SETTINGS: [(&str, &str); 5] = [
    ("max_connections", "400"),
    ("shared_buffers", "128MB"),
    // One call after a crash instead of one per file.
    ("recovery_init_sync_method", "syncfs"),
    ("logging_collector", "off"),
    ("log_min_messages", "fatal"),
];

/// A server of this process.
#[derive(Debug)]
pub struct Server {
    binaries: Binaries,
    dir: TempDir,
    port: u16,
    settings: Vec<(String, String)>,
    supervisor: Option<Supervisor>,
}

impl Server {
    /// Creates a database cluster and starts a server on it, with additional settings.
    pub fn start(settings: &[(&str, &str)]) -> Result<Server> {
        let mut server = Server::prepare(settings)?;
        let data = server.data();
        let mut initdb = server.program("initdb");
        initdb.arg("--pgdata").arg(&data).args([
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        run(initdb.args(["--username", USER]), "initdb")?;
        server.restart()?;
        Ok(server)
    }

    /// Starts a standby of `primary`. The primary may wait for it by its name.
    pub fn standby_of(primary: &Server, name: &str) -> Result<Server> {
        let mut server = Server::prepare(&[])?;
        let data = server.data();
        let source = format!("host=127.0.0.1 port={} user={USER} application_name={name}", primary.port);
        let mut copy = server.program("pg_basebackup");
        copy.arg("--pgdata").arg(&data).args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        run(copy.args(["--dbname", &source]), "pg_basebackup")?;
        server.restart()?;
        Ok(server)
    }

    fn prepare(settings: &[(&str, &str)]) -> Result<Server> {
        let binaries = find()?;
        // The system's temporary directory: the server's user must be able to reach it, and sockets
        // need short paths.
        let dir = tempfile::Builder::new()
            .prefix("counterfoil-postgres-")
            .tempdir()
            .map_err(Failure::while_("making a directory for PostgreSQL"))?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))
            .map_err(Failure::while_("opening the directory for PostgreSQL"))?;
        let inner = dir.path().join("own");
        fs::create_dir(&inner).map_err(Failure::while_("making a directory for PostgreSQL"))?;
        if let Some((uid, gid)) = unprivileged()? {
            chown(&inner, Some(uid), Some(gid))
                .map_err(Failure::while_("giving PostgreSQL its directory"))?;
        }
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Ok(Server { binaries, dir, port: free_port()?, settings, supervisor: None })
    }

    /// `postgres://USER@HOST:PORT`, to which a test adds its database.
    pub fn address(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}", self.port)
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The cluster's directory.
    pub fn data(&self) -> PathBuf {
        self.own().join("data")
    }

    fn own(&self) -> PathBuf {
        self.dir.path().join("own")
    }

    /// Starts the server on its files. A running server is stopped first, without a checkpoint.
    pub fn restart(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.stop();
            self.supervisor = Some(self.spawn()?);
            if self.comes_up()? {
                return Ok(());
            }
            // Processes of a killed server hold its shared memory for a moment; a new server cannot
            // start until then.
            if begun.elapsed() > READY_WITHIN {
                return Err(Failure::new(format!("PostgreSQL does not start: {}", log(self.dir.path()))));
            }
            sleep(PAUSE);
        }
    }

    /// Kills with `kill -9` and waits until the process is gone.
    pub fn kill(&mut self) -> Result<()> {
        let pid = self.running().ok_or_else(|| Failure::new("PostgreSQL does not run"))?;
        kill_process(pid, Signal::KILL).map_err(Failure::while_("killing PostgreSQL"))?;
        if until(READY_WITHIN, || !is_alive(pid)) {
            return Ok(());
        }
        Err(Failure::new("PostgreSQL survived SIGKILL"))
    }

    fn spawn(&self) -> Result<Supervisor> {
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
        server.arg("-c").arg("listen_addresses=127.0.0.1");
        server.arg("-c").arg(format!("unix_socket_directories={}", self.own().display()));
        for (name, value) in SETTINGS {
            server.arg("-c").arg(format!("{name}={value}"));
        }
        for (name, value) in &self.settings {
            server.arg("-c").arg(format!("{name}={value}"));
        }
        Supervisor::start(&server, "QUIT", self.dir.path())
    }

    /// Waits until the server answers; returns false if it ended instead.
    fn comes_up(&self) -> Result<bool> {
        let begun = Instant::now();
        while begun.elapsed() < READY_WITHIN {
            let mut ask = Command::new(self.binaries.path("pg_isready"));
            ask.args(["-q", "-h", "127.0.0.1", "-d", "postgres", "-p"]).arg(self.port.to_string());
            if ask.status().map_err(Failure::while_("asking PostgreSQL whether it is ready"))?.success() {
                return Ok(true);
            }
            // Connections during the start are logged as fatal, too.
            let early = |line: &str| line.contains("the database system");
            let fatal = |line: &str| line.contains("FATAL") || line.contains("PANIC");
            if log(self.dir.path()).lines().any(|line| fatal(line) && !early(line)) {
                return Ok(false);
            }
            sleep(PAUSE);
        }
        Ok(false)
    }

    /// The process id of the postmaster.
    pub fn pid(&self) -> Result<u32> {
        let pid = self.running().and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok());
        pid.ok_or_else(|| Failure::new("PostgreSQL does not run"))
    }

    fn running(&self) -> Option<Pid> {
        pid_in(&self.data().join("postmaster.pid"))
    }

    /// Stops the supervisor and with it the server, but keeps the directory.
    fn stop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.stop();
        }
    }

    /// A command of PostgreSQL, run as an unprivileged user: PostgreSQL refuses to run as root.
    fn program(&self, name: &str) -> Command {
        let path = self.binaries.path(name);
        let mut command = match unprivileged() {
            Ok(Some((uid, gid))) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).arg("--clear-groups");
                command.arg(path);
                command
            }
            Ok(None) | Err(_) => Command::new(path),
        };
        command.current_dir(self.own());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// User and group to run the server as, if this process is root: the package's user, or nobody.
fn unprivileged() -> Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(Failure::while_("reading /etc/passwd"))?;
    let user = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2);
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    let found = user("postgres").or_else(|| user("nobody"));
    found
        .map(Some)
        .ok_or_else(|| Failure::new("there is neither a user `postgres` nor `nobody` to run PostgreSQL as"))
}

fn run(command: &mut Command, name: &str) -> Result<()> {
    let output =
        command.stdin(Stdio::null()).output().map_err(Failure::while_(format!("starting {name}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Gives PostgreSQL a file that it must own, such as a TLS key.
pub(super) fn give_to_postgres(path: &Path) -> Result<()> {
    if let Some((uid, gid)) = unprivileged()? {
        chown(path, Some(uid), Some(gid)).map_err(Failure::while_("giving PostgreSQL a file"))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .map_err(Failure::while_("closing a file of PostgreSQL"))
}

impl Server {
    /// Writes a file next to the cluster that only the server can read; returns its path.
    pub fn keep(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.own().join(name);
        fs::write(&path, text).map_err(Failure::while_("writing a file for PostgreSQL"))?;
        give_to_postgres(&path)?;
        Ok(path)
    }

    /// Changes a setting from the next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }
}
