//! The real binary as a process, a provider with faults, and a client that shares no code with the server.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on says so"
)]

use counterfoil_simulator::{Options, Running};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
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

/// A port nobody listens on just now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A provider, a store and what is needed to start servers on them.
pub struct Bench {
    pub provider: Running,
    pub directory: TempDir,
    pub api_key: String,
    pub port: u16,
    pub settings: Vec<(&'static str, String)>,
}

impl Bench {
    pub fn new(settings: &[(&'static str, &str)]) -> Bench {
        let directory = TempDir::new().unwrap();
        let store = directory.path().join("store");
        let made = run(&["tenant", "create", "acme", "--json", "--store", store.to_str().unwrap()]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let provider = Running::start(Options::default()).unwrap();
        let api_key = field(&text(&made.stdout), "secret");
        Bench { provider, api_key, port: free_port(), directory, settings }
    }

    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub fn serve(&self) -> Server {
        let gateway = format!("stripe+http://sk_test_CANARYgatewaykey@{}", self.provider.addr());
        let mut command = Command::new(BINARY);
        command
            .args([
                "serve",
                "--listen",
                &format!("127.0.0.1:{}", self.port),
                "--gateway",
                &gateway,
                "--store",
            ])
            .arg(self.store())
            .stdout(Stdio::null())
            .stderr(Stdio::from(self.log()));
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        let server = Server { process: command.spawn().unwrap(), port: self.port };
        server.until_ready();
        server
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
        self.post(key, r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa"}"#)
    }

    pub fn post(&self, key: &str, body: &str) -> Answer {
        self.try_post(key, body).unwrap()
    }

    pub fn try_post(&self, key: &str, body: &str) -> std::io::Result<Answer> {
        let headers = format!(
            "Authorization: Bearer {}\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n",
            self.api_key
        );
        exchange(self.port, "POST", "/v1/charges", &headers, body)
    }

    pub fn get(&self, path: &str) -> Answer {
        exchange(self.port, "GET", path, &format!("Authorization: Bearer {}\r\n", self.api_key), "").unwrap()
    }

    /// Repeats the charge until it has its final answer.
    pub fn until_answered(&self, key: &str) -> Answer {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            match self.try_post(key, r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa"}"#) {
                Ok(answer) if answer.status != 503 && answer.status != 409 => return answer,
                Ok(_) | Err(_) => assert!(Instant::now() < deadline, "{key} has no answer after a minute"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn verified(&self) {
        let checked = run(&["verify", "--store", self.store().to_str().unwrap()]);
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
        let deadline = Instant::now() + Duration::from_secs(20);
        while exchange(self.port, "GET", "/readyz", "", "").map_or(0, |answer| answer.status) != 200 {
            assert!(Instant::now() < deadline, "the server is not ready after 20 s");
            std::thread::sleep(Duration::from_millis(5));
        }
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

    /// Asks it to stop and waits; gives the exit code.
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

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    /// The parts that a replay must repeat.
    pub fn declared(&self) -> (u16, Vec<Option<&String>>, &str) {
        let names = ["content-type", "location", "idempotency-expires"];
        (self.status, names.map(|name| self.headers.get(name)).to_vec(), &self.body)
    }

    pub fn error(&self) -> String {
        field(&self.body, "error")
    }

    pub fn is_replay(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }
}

/// The value of a string member of a flat JSON text.
pub fn field(json: &str, name: &str) -> String {
    let start = json.find(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("no {name} in {json}"));
    json.get(start + name.len() + 4..).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

/// One request on a connection of its own.
pub fn exchange(port: u16, method: &str, path: &str, headers: &str, body: &str) -> std::io::Result<Answer> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(40)))?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status =
        line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Answer { status, headers, body: text(&body) })
}

/// Everything below a directory.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    entries.unwrap_or_default()
}
