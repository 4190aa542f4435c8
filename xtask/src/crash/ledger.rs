//! The ledger of a campaign: guarded accounts that clients transfer between and pay parts of
//! charges from. Every balance is a sum of acknowledged requests.

use super::client::{Address, Client};
use super::order::What;
use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use counterfoil_testkit::http::Answer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Accounts with a floor of zero: code, and number of balance shards.
pub(super) const GUARDED: [(&str, u16); 4] =
    [("crash:0", 1), ("crash:1", 1), ("crash:2", 4), ("crash:3", 16)];
/// The source of funds, without a floor.
const WORLD: &str = "crash:world";
/// Chart accounts that charges are posted to: the provider's debt, and the tenant's claim.
pub(super) const RECEIVABLE: &str = "chart:receivable:USD";
pub(super) const PAYABLE: &str = "chart:payable:USD";
/// Initial balance of every guarded account.
pub(super) const FUNDS: i64 = 10_000;
/// Large enough that some transfers exceed the balance.
const AMOUNT_MAX: u64 = 4_000;
/// One of this many transfers adds funds.
const FILLED_ONCE_IN: u64 = 4;
/// Interval of balance reads during the kills.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Retries of a balance read after all faults have ended.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn code(place: usize) -> &'static str {
    GUARDED.get(place).map_or(WORLD, |(code, _)| code)
}

/// The body of a transfer.
pub(super) fn transfer(from: &str, to: &str, amount: u64) -> String {
    format!(r#"{{"from":"{from}","to":"{to}","amount":{amount},"currency":"USD"}}"#)
}

/// The index of a random guarded account.
pub(super) fn place(prng: &mut Prng) -> usize {
    usize::try_from(prng.below(GUARDED.len() as u64)).unwrap_or(0)
}

/// A transfer between two guarded accounts, or one that adds funds so that wallets do not run dry.
pub(super) fn draw(prng: &mut Prng) -> What {
    let (count, to, amount) = (GUARDED.len(), place(prng), 1 + prng.below(AMOUNT_MAX));
    if prng.once_in(FILLED_ONCE_IN) {
        return What::Transfer { from: count, to, amount };
    }
    let away = 1 + usize::try_from(prng.below(count as u64 - 1)).unwrap_or(0);
    What::Transfer { from: (to + away) % count, to, amount }
}

/// Opens and funds the accounts; returns the ids of the guarded ones.
pub(super) async fn open(address: &Address) -> Result<Vec<Arc<str>>> {
    let mut client = Client::new(address);
    let mut requests = vec![("/v1/accounts", format!(r#"{{"code":"{WORLD}","asset":"USD"}}"#))];
    for (code, shards) in GUARDED {
        let account = format!(r#"{{"code":"{code}","asset":"USD","floor":0,"shards":{shards}}}"#);
        requests.push(("/v1/accounts", account));
        requests.push(("/v1/transfers", transfer(WORLD, code, FUNDS.unsigned_abs())));
    }
    let mut opened = Vec::new();
    for (number, (path, body)) in requests.iter().enumerate() {
        let answer = client
            .send("POST", path, &format!("crash-ledger-{number}"), body)
            .await
            .map_err(Failure::while_("opening the ledger"))?;
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let Some(id) = body["id"].as_str().filter(|_| answer.status == 201) else {
            return Err(Failure::new(format!("opening the ledger: {body}")));
        };
        if *path == "/v1/accounts" {
            opened.push(Arc::from(id));
        }
    }
    // The first account is the source of funds.
    Ok(opened.split_off(1))
}

/// Final balances.
#[derive(Debug)]
pub(super) struct Balances {
    /// Balances of the guarded accounts, in their order.
    pub(super) guarded: Vec<i64>,
    /// Balance of the source of funds.
    pub(super) world: i64,
    /// Posted balance of the chart's receivable account.
    pub(super) receivable: i64,
    pub(super) payable: i64,
    /// The reserved part of the payable account.
    pub(super) reserved: i64,
}

/// Reads all balances after the last request. `field` names the balance to read from guarded
/// accounts.
pub(super) async fn balances(address: &Address, field: &str) -> Result<Balances> {
    let mut client = Client::new(address);
    let mut guarded = Vec::new();
    for (code, _) in GUARDED {
        guarded.push(balance(&mut client, code, field).await?);
    }
    let payable = balance(&mut client, PAYABLE, "posted").await?;
    Ok(Balances {
        guarded,
        world: balance(&mut client, WORLD, "posted").await?,
        // A parked refund keeps its reservation.
        receivable: balance(&mut client, RECEIVABLE, "posted").await?,
        payable,
        reserved: payable - balance(&mut client, PAYABLE, "available").await?,
    })
}

async fn balance(client: &mut Client, code: &str, field: &str) -> Result<i64> {
    for _ in 0..TRIES {
        if let Some(found) = fetch(client, code, field).await {
            return Ok(found);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::new(format!("the balance of {code} cannot be read")))
}

async fn fetch(client: &mut Client, code: &str, field: &str) -> Option<i64> {
    let answer = client.get(&format!("/v1/accounts/{code}/balance")).await.ok()?;
    // A chart account is opened on first use.
    if answer.status == 404 { Some(0) } else { read(&answer, field) }
}

fn read(answer: &Answer, field: &str) -> Option<i64> {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    body[field].as_i64()
}

/// A reader that checks the balances all the time.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    watching: JoinHandle<Vec<String>>,
}

impl Watch {
    pub(super) fn start(address: &Address) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let (mut client, ended) = (Client::new(address), Arc::clone(&over));
        let watching = tokio::spawn(async move {
            let mut seen = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                for (code, _) in GUARDED {
                    if let Some(balance) =
                        fetch(&mut client, code, "available").await.filter(|balance| *balance < 0)
                    {
                        seen.push(format!("{code} was seen at {balance}"));
                    }
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            seen
        });
        Watch { over, watching }
    }

    /// Stops reading and returns the balances seen below their floor.
    pub(super) async fn end(self) -> Result<Vec<String>> {
        self.over.store(true, Ordering::Relaxed);
        self.watching.await.map_err(Failure::while_("watching the balances"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_between_two_accounts() {
        let mut prng = Prng::new(1);
        for _ in 0..1_000 {
            let What::Transfer { from, to, amount } = draw(&mut prng) else { panic!("a charge") };
            assert!(from != to && from <= GUARDED.len() && to < GUARDED.len());
            assert!((1..=AMOUNT_MAX).contains(&amount));
        }
        assert_eq!(
            transfer(code(0), code(9), 7),
            r#"{"from":"crash:0","to":"crash:world","amount":7,"currency":"USD"}"#
        );
    }

    #[test]
    fn only_a_balance_is_read() {
        let answer = |body: &str| Answer { status: 200, headers: Vec::new(), body: body.as_bytes().to_vec() };
        assert_eq!(read(&answer(r#"{"posted":9,"available":-7}"#), "available"), Some(-7));
        assert_eq!(read(&answer(r#"{"error":"store_unavailable"}"#), "posted"), None);
    }
}
