//! The product as its operator runs it: the binary, its commands, its environment.

use super::{Running, captured};
use crate::failure::{Failure, Result};
use counterfoil_testkit::http;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// Longer than any start should take.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Often enough to time a start in milliseconds.
const READY_POLL: Duration = Duration::from_millis(1);

/// The built binary and the directory of its logs.
pub(crate) struct Product {
    binary: PathBuf,
    logs: PathBuf,
}

impl Product {
    pub(crate) fn new(binary: &Path, logs: &Path) -> Product {
        Product { binary: binary.to_owned(), logs: logs.to_owned() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        clean(&mut command);
        command
    }

    fn log(&self, name: &str) -> Result<File> {
        let path = self.logs.join(format!("{name}.log"));
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        opened.map_err(Failure::while_(format!("opening {}", path.display())))
    }

    /// The log with this name so far.
    pub(crate) fn read_log(&self, name: &str) -> Result<String> {
        let path = self.logs.join(format!("{name}.log"));
        let read = std::fs::read(&path).map_err(Failure::while_(format!("reading {}", path.display())))?;
        Ok(String::from_utf8_lossy(&read).into_owned())
    }

    /// Starts the provider simulator on a port chosen by the kernel.
    pub(crate) async fn simulator(&self) -> Result<(Running, SocketAddr)> {
        let mut command = self.command();
        command.args(["simulator", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(self.log("simulator")?);
        let mut simulator = Running::start("simulator", &mut command)?;
        let stdout =
            simulator.child.stdout.take().ok_or_else(|| Failure::new("the simulator has no stdout"))?;
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        let read = timeout(START_LIMIT, stdout.read_line(&mut line));
        read.await
            .map_err(Failure::while_("waiting for the simulator"))?
            .map_err(Failure::while_("reading from the simulator"))?;
        let address = address_in(&line)
            .ok_or_else(|| Failure::new(format!("the simulator does not say where it listens: {line:?}")))?;
        Ok((simulator, address))
    }

    /// Starts the server, without waiting until it is ready.
    pub(crate) fn server(
        &self,
        address: SocketAddr,
        store: impl AsRef<OsStr>,
        gateway: SocketAddr,
        settings: &[(&str, &str)],
    ) -> Result<Running> {
        let gateway = format!("stripe+http://sk_test_xtask@{gateway}");
        let mut command = self.command();
        command
            .args(["serve", "--listen", &address.to_string(), "--gateway", &gateway, "--store"])
            .arg(store);
        command.envs(settings.iter().copied());
        command.stdout(self.log("server")?).stderr(self.log("server")?);
        Running::start("server", &mut command)
    }

    /// Creates a tenant and returns an API key with all scopes.
    pub(crate) async fn tenant(&self, store: impl AsRef<OsStr>) -> Result<String> {
        let arguments = ["tenant", "create", "xtask", "--scopes", "read,write,admin", "--json"];
        let (succeeded, run_json) = self.run_json(&arguments, store).await?;
        match run_json["secret"].as_str() {
            Some(secret) if succeeded => Ok(secret.to_owned()),
            Some(_) | None => Err(Failure::new("`counterfoil tenant create` gave no API key; see above")),
        }
    }

    /// Runs `counterfoil verify`: whether every invariant holds, and the report.
    pub(crate) async fn verify(&self, store: impl AsRef<OsStr>) -> Result<(bool, serde_json::Value)> {
        self.run_json(&["verify", "--json"], store).await
    }

    async fn run_json(
        &self,
        arguments: &[&str],
        store: impl AsRef<OsStr>,
    ) -> Result<(bool, serde_json::Value)> {
        let doing = format!("counterfoil {}", arguments.join(" "));
        let mut command = self.command();
        command.args(arguments).arg("--store").arg(store);
        let output = captured(&mut command).await.map_err(Failure::while_(&doing))?;
        let run_json = serde_json::from_slice(&output.stdout).map_err(Failure::while_(&doing))?;
        Ok((output.status.success(), run_json))
    }
}

impl Running {
    /// Waits until `/readyz` answers 200; returns the time since `begun`.
    pub(crate) async fn ready(&mut self, address: SocketAddr, begun: Instant) -> Result<Duration> {
        while begun.elapsed() < START_LIMIT {
            let answer = http::ask(address, "GET", "/readyz", "", START_LIMIT).await;
            // Check the process before the answer: another program may have taken the address.
            if let Some(status) = self.ended() {
                return Err(Failure::new(format!(
                    "the server ended with {status} instead of getting ready; see its log"
                )));
            }
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(begun.elapsed());
            }
            tokio::time::sleep(READY_POLL).await;
        }
        Err(Failure::new(format!("the server was not ready within {START_LIMIT:?}; see its log")))
    }
}

/// Removes product settings from the environment, which would change the measurement.
pub(crate) fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COUNTERFOIL_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
}

/// The address in a line such as `provider simulator on http://127.0.0.1:4711 (…)`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("http://")?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_address_is_read() {
        let line = "provider simulator on http://127.0.0.1:4711 (effects: GET /_sim/effects)\n";
        assert_eq!(address_in(line), Some(SocketAddr::from(([127, 0, 0, 1], 4711))));
        assert_eq!(address_in("counterfoil: no"), None);
    }
}
