//! Test support: the real binary as a process, a provider with faults, and a client that shares no
//! code with the server.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

pub mod client;
pub mod database;
pub mod ledger;
pub mod relay;

pub use client::{Answer, Client, exchange, field};

use counterfoil_provider_simulator::{Options, Running};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const BINARY: &str = env!("CARGO_BIN_EXE_counterfoil");

/// Runs a command to its end.
pub fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).env_remove("RUST_LOG").output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A free port below the range of ephemeral ports, so that no client connection is given the port
/// of a killed server.
pub fn free_port() -> u16 {
    let chance = || RandomState::new().build_hasher().finish();
    let mut ports = (0..200).map(|_| 15_000 + u16::try_from(chance() % 15_000).unwrap());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// A provider, a store and the settings to start servers on them.
pub struct Bench {
    pub provider: Running,
    pub directory: TempDir,
    pub api_key: String,
    pub port: u16,
    pub settings: Vec<(&'static str, String)>,
    url: String,
}

impl Bench {
    /// A bench with an embedded store.
    pub fn new(settings: &[(&'static str, &str)]) -> Bench {
        let directory = TempDir::new().unwrap();
        let url = directory.path().join("store").to_str().unwrap().to_owned();
        Bench::on(url, directory, settings)
    }

    /// A bench with a database.
    pub fn at(url: String, settings: &[(&'static str, &str)]) -> Bench {
        Bench::on(url, TempDir::new().unwrap(), settings)
    }

    fn on(url: String, directory: TempDir, settings: &[(&'static str, &str)]) -> Bench {
        let made = run(&["tenant", "create", "acme", "--json", "--store", &url]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let provider = Running::start(Options::default()).unwrap();
        let api_key = field(&text(&made.stdout), "secret");
        Bench { provider, api_key, port: free_port(), directory, settings, url }
    }

    pub fn store(&self) -> PathBuf {
        PathBuf::from(&self.url)
    }

    /// The store URL for the command line.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn serve(&self) -> Server {
        self.serve_on(self.port)
    }

    /// Starts a server on a port and waits until it is ready.
    pub fn serve_on(&self, port: u16) -> Server {
        let gateway = format!("stripe+http://sk_test_CANARYgatewaykey@{}", self.provider.addr());
        let listen = format!("127.0.0.1:{port}");
        let mut command = Command::new(BINARY);
        command
            .args(["serve", "--listen", &listen, "--gateway", &gateway, "--store", &self.url])
            .stdout(Stdio::null())
            .stderr(Stdio::from(self.log()));
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        let server = Server { process: command.spawn().unwrap(), port };
        server.until_ready();
        server
    }

    /// The tenant's client for a server.
    pub fn client(&self, server: &Server) -> Client {
        Client::new(server.port, &self.api_key)
    }

    fn own(&self) -> Client {
        Client::new(self.port, &self.api_key)
    }

    fn log(&self) -> std::fs::File {
        let path = self.directory.path().join("server.log");
        std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap()
    }

    pub fn log_text(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("server.log")).unwrap()
    }

    /// Charges 1250 under `key`.
    pub fn charge(&self, key: &str) -> Answer {
        self.own().charge(key)
    }

    pub fn post(&self, key: &str, body: &str) -> Answer {
        self.try_post(key, body).unwrap()
    }

    pub fn try_post(&self, key: &str, body: &str) -> std::io::Result<Answer> {
        self.own().post("/v1/charges", key, body)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.own().get(path)
    }

    /// The state of a key's record.
    pub fn own_state(&self, key: &str) -> String {
        self.own().key_state(key).unwrap()
    }

    /// Repeats the charge until its answer is final.
    pub fn until_answered(&self, key: &str) -> Answer {
        self.own().until_charged(key)
    }

    pub fn verified(&self) {
        let checked = run(&["verify", "--store", &self.url]);
        assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
    }
}

/// A running server; it is killed when dropped.
pub struct Server {
    pub process: Child,
    pub port: u16,
}

impl Server {
    pub fn until_ready(&self) {
        until("the server is ready", || {
            exchange(self.port, "GET", "/readyz", "", "").is_ok_and(|answer| answer.status == 200)
        });
    }

    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.process.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Sends SIGTERM, waits, and returns the exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal("TERM");
        self.process.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits up to a minute for a condition.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The files in a directory.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    entries.unwrap_or_default()
}
