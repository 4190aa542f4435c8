//! Transfers over HTTP: the real server on a new store, whose accounts are opened and funded
//! through the API.

use super::cell::{Accounts, Cell};
use super::chart::{FUND, OPENERS, SOURCE, wanted};
use crate::bench::Place;
use crate::bench::child::Order;
use crate::bench::disk;
use crate::bench::neighbours::{Machine, Neighbours};
use crate::bench::sample::{Sample, number};
use crate::bench::scrape::Commits;
use crate::bench::server::Server;
use crate::failure::{Failure, Result};
use crate::process::{Product, cpu_of};
use counterfoil_testkit::http::{Connection, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;

/// Longer than opening or funding an account takes on any machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// The server and its accounts.
pub(super) struct OverHttp {
    server: Server,
    xtask: PathBuf,
    directory: PathBuf,
    /// Account ids by code.
    accounts: BTreeMap<String, String>,
    runs: u64,
    /// Disk growth in bytes, and the single transfers that caused it.
    grown: (u64, u64),
}

impl OverHttp {
    pub(super) async fn start(
        product: &Product,
        provider: SocketAddr,
        place: &Place<'_>,
    ) -> Result<OverHttp> {
        let server = Server::start(product, provider, place.directory.join("store-http")).await?;
        let accounts = open(&server).await?;
        Ok(OverHttp {
            server,
            xtask: place.xtask.to_owned(),
            directory: place.directory.to_owned(),
            accounts,
            runs: 0,
            grown: (0, 0),
        })
    }

    /// Counts the CPU time of the server only.
    pub(super) async fn measure(
        &mut self,
        cell: Cell,
        duration: Duration,
        neighbours: &mut Neighbours,
    ) -> Result<Sample> {
        let pairs = self.pairs(cell.accounts)?;
        self.runs += 1;
        let prefix = format!("ledger-{}-{}", std::process::id(), self.runs);
        let server = &self.server;
        let order = Order {
            address: server.address,
            api_key: &server.api_key,
            connections: cell.clients,
            duration,
            prefix: &prefix,
        };
        let batch = cell.batch.to_string();
        let (before, used) = (Machine::read()?, disk::used(&server.store)?);
        let (commits, cpu) = (Commits::read(server.address).await?, cpu_of(server.pid())?);
        let driven = order
            .drive(
                &self.xtask,
                &["load".as_ref(), "--pairs".as_ref(), pairs.as_ref(), "--batch".as_ref(), batch.as_ref()],
            )
            .await?;
        let cpu = cpu_of(server.pid())?.saturating_sub(cpu);
        neighbours.add(before, Machine::read()?, cpu + Duration::from_micros(driven.cpu_us));
        let sets_per_write = Commits::read(server.address).await?.per_write_since(commits);
        if cell.batch == 1 {
            self.grown.0 += disk::used(&server.store)?.saturating_sub(used);
            self.grown.1 += driven.answered;
        }
        Ok(Sample::of(&driven, cpu, sets_per_write))
    }

    /// Disk space of a transfer sent alone.
    pub(super) fn bytes_per_transfer(&self) -> f64 {
        number(self.grown.0) / number(self.grown.1.max(1))
    }

    /// Writes the file that names the accounts for the load.
    fn pairs(&self, accounts: Accounts) -> Result<PathBuf> {
        let path = self.directory.join(format!("{accounts}.pairs").replace([' ', ','], "-"));
        if !path.exists() {
            let mut text = String::new();
            for (debited, credited) in accounts.pairs() {
                let (debited, credited) = (self.reference(&debited)?, self.reference(&credited)?);
                text.extend([debited, " ", credited, "\n"]);
            }
            write(&path, &text)?;
        }
        Ok(path)
    }

    fn reference(&self, code: &str) -> Result<&str> {
        let reference = self.accounts.get(code).map(String::as_str);
        reference.ok_or_else(|| Failure::new(format!("the account {code} was not opened")))
    }
}

/// Opens and funds every account; returns ids by code.
async fn open(server: &Server) -> Result<BTreeMap<String, String>> {
    let wanted = wanted();
    let bodies = wanted.iter().map(|it| match it.guarded {
        None => json!({ "code": it.code, "asset": "USD" }),
        Some(shards) => json!({ "code": it.code, "asset": "USD", "floor": 0, "shards": shards }),
    });
    let answers = post_all(server, "/v1/accounts", bodies.collect()).await?;
    let mut accounts = BTreeMap::new();
    for (wanted, answer) in wanted.iter().zip(answers) {
        let reference = answer["id"].as_str().ok_or_else(|| Failure::new("an account has no `id`"))?;
        accounts.insert(wanted.code.clone(), reference.to_owned());
    }
    let fundings = wanted.iter().flat_map(|it| std::iter::repeat_n(it.code.as_str(), it.fundings));
    let bodies = fundings.map(|code| {
        json!({ "from": accounts.get(SOURCE), "to": accounts.get(code), "amount": FUND, "currency": "USD" })
    });
    post_all(server, "/v1/transfers", bodies.collect()).await?;
    Ok(accounts)
}

/// Sends the bodies over many connections; returns the answers in the same order.
async fn post_all(server: &Server, path: &'static str, bodies: Vec<Value>) -> Result<Vec<Value>> {
    let mut shares = vec![Vec::new(); OPENERS];
    for (nth, body) in bodies.iter().enumerate() {
        shares[nth % OPENERS].push((nth, body.to_string()));
    }
    let mut running = JoinSet::new();
    for share in shares {
        running.spawn(post(server.address, server.api_key.clone(), path, share));
    }
    let mut answers = vec![Value::Null; bodies.len()];
    while let Some(done) = running.join_next().await {
        for (nth, answer) in done.map_err(Failure::while_("opening accounts"))?? {
            answers[nth] = answer;
        }
    }
    Ok(answers)
}

async fn post(
    address: SocketAddr,
    api_key: String,
    path: &'static str,
    bodies: Vec<(usize, String)>,
) -> Result<Vec<(usize, Value)>> {
    let doing = || format!("POST {path}");
    let mut connection = Connection::open(address).await.map_err(Failure::while_(doing()))?;
    let mut answers = Vec::with_capacity(bodies.len());
    let authorization = format!("Bearer {api_key}");
    for (nth, body) in bodies {
        let key = format!("open-{}-{nth}", path.trim_start_matches("/v1/"));
        let headers = [
            ("content-type", "application/json"),
            ("authorization", authorization.as_str()),
            ("idempotency-key", key.as_str()),
        ];
        let request = Request { method: "POST", path, headers: &headers, body: &body };
        let answer = connection.send(&request, ANSWER_LIMIT).await.map_err(Failure::while_(doing()))?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status != 201 {
            return Err(Failure::new(format!("{} was answered {}: {text}", doing(), answer.status)));
        }
        answers.push((nth, serde_json::from_str(&text).map_err(Failure::while_(doing()))?));
    }
    Ok(answers)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Failure::while_(format!("writing {}", path.display())))
}
