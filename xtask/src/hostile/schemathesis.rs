//! Schemathesis (<https://schemathesis.readthedocs.io>), in a Python environment beside the build,
//! against the real server with everything in memory.

use crate::failure::{Failure, Result};
use crate::process::{Running, clean, free_address};
use crate::servers::install;
use counterfoil_testkit::http::{Connection, Request};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

/// Exact versions of all packages, so that a seed generates the same requests everywhere.
const REQUIREMENTS: &str = include_str!("requirements.txt");
/// The demo tenant of `counterfoil dev`.
const SECRET: &str = "sk_test_demo";
const LIMIT: Duration = Duration::from_secs(30);
/// A check that does not apply: it wants every request that matches its schema to succeed, but no
/// schema knows which accounts exist.
const UNFIT: &str = "positive_data_acceptance";

/// Runs Schemathesis. Returns whether it found no violation.
pub(super) async fn run(binary: &Path, examples: u32, seed: u32) -> Result<bool> {
    let beside = binary.parent().and_then(Path::parent).unwrap_or(binary);
    let tool = tool(&beside.join("hostile")).await?;
    let address = free_address()?;
    let mut server = serve(binary, address)?;
    server.ready(address, Instant::now()).await?;
    let made = tempfile::Builder::new().prefix("hostile-").tempdir_in(beside);
    let directory = made.map_err(Failure::while_("making a directory beside the build"))?;
    let settings = directory.path().join("schemathesis.toml");
    let ids = create_objects(address).await?;
    std::fs::write(&settings, configuration(&ids)).map_err(Failure::while_("writing schemathesis.toml"))?;

    let mut command = Command::new(tool);
    command
        .arg("--config-file")
        .arg(&settings)
        .args(["run", &format!("http://{address}/openapi.json")])
        .args(["--header", &format!("Authorization: Bearer {SECRET}")])
        .args(["--checks", "all", "--exclude-checks", UNFIT])
        .args(["--max-examples", &examples.to_string(), "--seed", &seed.to_string()])
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let status = command.status().await.map_err(Failure::while_("starting Schemathesis"))?;
    if let Some(ended) = server.ended() {
        return Err(Failure::new(format!("the server ended with {ended} under Schemathesis' requests")));
    }
    Ok(status.success())
}

/// Starts everything in one process. Idempotency keys are optional, so that requests without one
/// get further.
fn serve(binary: &Path, address: SocketAddr) -> Result<Running> {
    let provider = free_address()?;
    let mut command = Command::new(binary);
    clean(&mut command);
    command
        .args(["dev", "--store", "memory:", "--listen", &address.to_string()])
        .args(["--gateway-listen", &provider.to_string()])
        .env("COUNTERFOIL_IDEMPOTENCY__KEY_POLICY", "optional")
        // Logs of refused charges are no finding; a panic still shows.
        .env("COUNTERFOIL_LOG__LEVEL", "off")
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    Running::start("server", &mut command)
}

/// Finds the executable; installs it if it is missing or has other versions.
async fn tool(environment: &Path) -> Result<PathBuf> {
    let (tool, stamp) = (environment.join("bin/schemathesis"), environment.join("requirements.txt"));
    if tool.exists() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == REQUIREMENTS) {
        return Ok(tool);
    }
    eprintln!("\ninstalling Schemathesis into {}", environment.display());
    let venv = async || run_quietly(Command::new("python3").args(["-m", "venv"]).arg(environment)).await;
    if !venv().await {
        install("python3-venv")?;
        if !venv().await {
            return Err(Failure::new(
                "`python3 -m venv` does not work: install Python 3.10 or later with venv",
            ));
        }
    }
    let wanted = environment.join("wanted.txt");
    std::fs::write(&wanted, REQUIREMENTS).map_err(Failure::while_("writing requirements"))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    if !run_quietly(
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&wanted),
    )
    .await
    {
        return Err(Failure::new("pip could not install Schemathesis; see above"));
    }
    // Only a complete installation has a stamp.
    std::fs::rename(&wanted, &stamp).map_err(Failure::while_("recording the installed versions"))?;
    Ok(tool)
}

async fn run_quietly(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    command.status().await.is_ok_and(|status| status.success())
}

/// Creates one object of each kind, so that requests meet more than 404; returns the ids.
async fn create_objects(address: SocketAddr) -> Result<Vec<String>> {
    let hold = r#"{"from":"a","to":"b","amount":100,"currency":"usd","hold":true}"#;
    let post = r#"{"entries":[{"account":"a","direction":"debit","amount":5,"asset":"usd"},{"account":"b","direction":"credit","amount":5,"asset":"usd"}]}"#;
    let mut ids = Vec::new();
    for (path, body) in [
        ("/v1/accounts", r#"{"code":"a","asset":"usd"}"#),
        ("/v1/accounts", r#"{"code":"b","asset":"usd"}"#),
        ("/v1/accounts", r#"{"code":"e","asset":"eur"}"#),
        ("/v1/transfers", hold),
        ("/v1/transactions", post),
        ("/v1/charges", r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#),
    ] {
        ids.push(make(address, path, body).await?);
    }
    Ok(ids)
}

async fn make(address: SocketAddr, path: &str, body: &str) -> Result<String> {
    let secret = format!("Bearer {SECRET}");
    let headers =
        [("authorization", secret.as_str()), ("content-type", "application/json"), ("connection", "close")];
    let sent = async {
        let mut connection = Connection::open(address).await?;
        connection.send(&Request { method: "POST", path, headers: &headers, body }, LIMIT).await
    };
    let answer = sent.await.map_err(Failure::while_(format!("POST {path}")))?;
    let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let id = value["id"].as_str().filter(|_| answer.status == 201);
    id.map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("POST {path} was answered {}: {value}", answer.status)))
}

/// Configuration that puts existing ids into most requests.
fn configuration(ids: &[String]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| format!("{id:?}")).collect();
    let mut text = format!(
        "[dictionaries.ids]\nvalues = [{}]\n\n[dictionaries.accounts]\nvalues = [\"a\", \"b\", \"e\"]\n\n\
         [dictionaries.assets]\nvalues = [\"usd\", \"USD\", \"eur\"]\n\n[parameters]\n",
        quoted.join(", ")
    );
    for (place, dictionary) in [
        ("path.id", "ids"),
        ("query.starting_after", "ids"),
        ("body.from", "accounts"),
        ("body.to", "accounts"),
        ("body.currency", "assets"),
        ("body.asset", "assets"),
    ] {
        let _ = writeln!(text, "\"{place}\" = {{ dictionary = \"{dictionary}\", probability = 0.8 }}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_its_version() {
        assert!(REQUIREMENTS.lines().any(|line| line.starts_with("schemathesis==4.")));
        for line in REQUIREMENTS.lines() {
            assert_eq!(line.split("==").count(), 2, "{line}");
        }
    }

    #[test]
    fn ids_become_a_dictionary() {
        let text = configuration(&["tr_1".to_owned(), "ch_2".to_owned()]);
        assert!(text.contains("values = [\"tr_1\", \"ch_2\"]"), "{text}");
        assert!(text.contains("\"path.id\" = { dictionary = \"ids\", probability = 0.8 }\n"), "{text}");
    }
}
