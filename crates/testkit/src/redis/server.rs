//! A server process that keeps nothing on disk. Tests can kill, pause and restart it, or make it a
//! replica and promote it.

use crate::failure::{Failure, Result};
use crate::supervisor::{Supervisor, free_port, is_alive, log, pid_in, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const READY_WITHIN: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Loopback only, and nothing on disk: a killed server forgets everything.
const SETTINGS: [(&str, &str); 5] = [
    ("bind", "127.0.0.1"),
    ("save", ""),
    ("appendonly", "no"),
    // Start replication at once instead of waiting for further replicas.
    ("repl-diskless-sync-delay", "0"),
    ("daemonize", "no"),
];

/// Finds the server's program.
pub fn find() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = ["redis-server", "valkey-server"];
    let mut candidates =
        std::env::split_paths(&path).flat_map(|folder| programs.map(|name| folder.join(name)));
    candidates.find(|program| program.is_file()).ok_or_else(|| {
        Failure::new("no Redis server is installed: install the package `redis-server` (or `valkey-server`)")
    })
}

/// A server of this process.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    dir: TempDir,
    port: u16,
    tls_port: Option<u16>,
    settings: Vec<(String, String)>,
    supervisor: Option<Supervisor>,
}

impl Server {
    /// Starts a server, with additional settings.
    pub fn start(settings: &[(&str, &str)]) -> Result<Server> {
        let mut server = Server::prepare(settings)?;
        server.restart()?;
        Ok(server)
    }

    /// Starts a server that also speaks TLS, on a second port, with this certificate and key.
    pub fn start_with_tls(certificate: &str, key: &str) -> Result<Server> {
        let mut server = Server::prepare(&[("tls-auth-clients", "no")])?;
        for (name, pem) in [("tls-cert-file", certificate), ("tls-key-file", key)] {
            let path = server.dir.path().join(name);
            fs::write(&path, pem).map_err(Failure::while_("writing a file for Redis"))?;
            server.settings.push((name.to_owned(), path.display().to_string()));
        }
        let port = free_port()?;
        server.settings.push(("tls-port".to_owned(), port.to_string()));
        server.tls_port = Some(port);
        server.restart()?;
        Ok(server)
    }

    fn prepare(settings: &[(&str, &str)]) -> Result<Server> {
        let dir = tempfile::Builder::new()
            .prefix("counterfoil-redis-")
            .tempdir()
            .map_err(Failure::while_("making a directory for Redis"))?;
        let settings = SETTINGS.iter().chain(settings);
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (program, port) = (find()?, free_port()?);
        Ok(Server { program, dir, port, tls_port: None, settings, supervisor: None })
    }

    /// Starts a replica of `primary` and waits until it has caught up.
    pub fn replica_of(primary: &Server) -> Result<Server> {
        let server = Server::start(&[])?;
        server.say(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()])?;
        let is_up =
            || server.say(&["INFO", "replication"]).is_ok_and(|info| info.contains("master_link_status:up"));
        if until(READY_WITHIN, is_up) {
            return Ok(server);
        }
        Err(Failure::new(format!("the replica does not follow: {}", log(server.dir.path()))))
    }

    /// Makes a replica a primary.
    pub fn promote(&self) -> Result<()> {
        self.say(&["REPLICAOF", "NO", "ONE"]).map(|_| ())
    }

    /// The server's URL: `redis://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for TLS, if any.
    pub fn tls_port(&self) -> Option<u16> {
        self.tls_port
    }

    /// Starts the server again, empty. A running server is killed first.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        let mut server = Command::new(&self.program);
        server.arg("--port").arg(self.port.to_string()).arg("--dir").arg(self.dir.path());
        for (name, value) in &self.settings {
            server.arg(format!("--{name}")).arg(value);
        }
        self.supervisor = Some(Supervisor::start(&server, "KILL", self.dir.path())?);
        // A server with a password refuses, which proves that it is up.
        if until(READY_WITHIN, || {
            self.say(&["PING"]).is_ok_and(|word| word == "PONG" || word.starts_with("NOAUTH"))
        }) {
            return Ok(());
        }
        Err(Failure::new(format!("Redis does not start: {}", log(self.dir.path()))))
    }

    /// Kills with `kill -9` and waits until the process is gone.
    pub fn kill(&self) -> Result<()> {
        let pid = self.send(Signal::KILL)?;
        if until(READY_WITHIN, || !is_alive(pid)) {
            return Ok(());
        }
        Err(Failure::new("Redis survived SIGKILL"))
    }

    /// Stops the process with SIGSTOP: connections stay open, nothing is answered.
    pub fn pause(&self) -> Result<()> {
        self.send(Signal::STOP).map(|_| ())
    }

    /// Resumes the process.
    pub fn resume(&self) -> Result<()> {
        self.send(Signal::CONT).map(|_| ())
    }

    fn send(&self, signal: Signal) -> Result<Pid> {
        let pid = pid_in(&self.dir.path().join("pid")).ok_or_else(|| Failure::new("Redis does not run"))?;
        kill_process(pid, signal).map_err(Failure::while_("sending Redis a signal"))?;
        Ok(pid)
    }

    /// Sends a command on a new connection and returns the answer as text.
    pub fn say(&self, words: &[&str]) -> Result<String> {
        let doing = "talking to Redis";
        let mut stream =
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map_err(Failure::while_(doing))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(Failure::while_(doing))?;
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            write!(request, "${}\r\n{word}\r\n", word.len()).map_err(Failure::while_(doing))?;
        }
        stream.write_all(&request).map_err(Failure::while_(doing))?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).map_err(Failure::while_(doing))?;
        let (kind, rest) = line.trim_end().split_at_checked(1).unwrap_or_default();
        match (kind, rest.parse::<usize>()) {
            ("$", Ok(length)) => {
                let mut bytes = vec![0; length];
                stream.read_exact(&mut bytes).map_err(Failure::while_(doing))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            ("", _) => Err(Failure::new("Redis closed the connection")),
            _ => Ok(rest.to_owned()),
        }
    }

    fn stop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.stop();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
