//! The ledger of a campaign: a few guarded accounts that clients move money between and pay a part of charges from. Every
//! balance is a sum of acknowledged requests.

use super::client::{Address, Client};
use super::order::What;
use crate::failure::{Failure, Result};
use crate::http::Answer;
use counterfoil_prng::Prng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Accounts that must not fall below zero: code, and rows of the balance.
pub(super) const GUARDED: [(&str, u16); 4] =
    [("crash:0", 1), ("crash:1", 1), ("crash:2", 4), ("crash:3", 16)];
/// Where the money comes from, without a floor.
const WORLD: &str = "crash:world";
/// What the provider owes, and what is owed to the tenant: the chart's own accounts, which charges are posted to.
pub(super) const RECEIVABLE: &str = "chart:receivable:USD";
pub(super) const PAYABLE: &str = "chart:payable:USD";
/// What every guarded account holds at first.
pub(super) const FUNDS: i64 = 10_000;
/// Large enough that some transfers find too little.
const AMOUNT_MAX: u64 = 4_000;
/// Money comes in once in so many transfers.
const FILLED_ONCE_IN: u64 = 4;
/// How often the balances are looked at under the kills.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Tries to read a balance when nothing disturbs any more.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn code(place: usize) -> &'static str {
    GUARDED.get(place).map_or(WORLD, |(code, _)| code)
}

/// The body of a transfer.
pub(super) fn transfer(from: &str, to: &str, amount: u64) -> String {
    format!(r#"{{"from":"{from}","to":"{to}","amount":{amount},"currency":"USD"}}"#)
}

/// One of the guarded accounts.
pub(super) fn place(prng: &mut Prng) -> usize {
    usize::try_from(prng.below(GUARDED.len() as u64)).unwrap_or(0)
}

/// A transfer between two of the guarded accounts, or to one of them: wallets have to be filled again.
pub(super) fn draw(prng: &mut Prng) -> What {
    let (count, to, amount) = (GUARDED.len(), place(prng), 1 + prng.below(AMOUNT_MAX));
    if prng.once_in(FILLED_ONCE_IN) {
        return What::Transfer { from: count, to, amount };
    }
    let away = 1 + usize::try_from(prng.below(count as u64 - 1)).unwrap_or(0);
    What::Transfer { from: (to + away) % count, to, amount }
}

/// Opens the accounts and fills them; the guarded ones' own names.
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
    // The first one is where the money comes from.
    Ok(opened.split_off(1))
}

/// What the ledger show at the end.
#[derive(Debug)]
pub(super) struct Balances {
    /// Of the guarded accounts, in their order.
    pub(super) guarded: Vec<i64>,
    /// Of where the money came from.
    pub(super) world: i64,
    /// Posted, of the chart's own.
    pub(super) receivable: i64,
    pub(super) payable: i64,
    /// What of the last is reserved.
    pub(super) reserved: i64,
}

/// Reads all balances, now that nothing moves any more. `field`: what is read of the guarded accounts.
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
        // What a parked refund has reserved is still there.
        receivable: balance(&mut client, RECEIVABLE, "posted").await?,
        payable,
        reserved: payable - balance(&mut client, PAYABLE, "available").await?,
    })
}

async fn balance(client: &mut Client, code: &str, field: &str) -> Result<i64> {
    for _ in 0..TRIES {
        if let Some(found) = look(client, code, field).await {
            return Ok(found);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::new(format!("the balance of {code} cannot be read")))
}

async fn look(client: &mut Client, code: &str, field: &str) -> Option<i64> {
    let answer = client.look(&format!("/v1/accounts/{code}/balance")).await.ok()?;
    // An account of the chart is opened when it is first used.
    if answer.status == 404 { Some(0) } else { read(&answer, field) }
}

fn read(answer: &Answer, field: &str) -> Option<i64> {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    body[field].as_i64()
}

/// Somebody who looks at the balances all the time.
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
                        look(&mut client, code, "available").await.filter(|balance| *balance < 0)
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

    /// What was seen below its floor.
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
