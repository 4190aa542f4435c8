//! The API's final view: every charge, payout and dead letter, and the keys that were never
//! answered.

use super::client::{Address, Client};
use super::order::{Order, What};
use crate::failure::{Failure, Result};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Retries of a page read after all faults have ended.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// A charge as shown. For a payout: its status and the paid amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) status: String,
    pub(super) captured: u64,
    pub(super) refunded: u64,
}

/// Every charge and payout by id.
pub(super) async fn payments(address: &Address) -> Result<HashMap<String, Shown>> {
    let (charges, payouts) = (list(address, "/v1/charges").await?, list(address, "/v1/payouts").await?);
    let named = |all: &[Value], read: fn(&Value) -> Option<Shown>| -> Vec<(String, Shown)> {
        all.iter().filter_map(|one| Some((one["id"].as_str()?.to_owned(), read(one)?))).collect()
    };
    Ok(named(&charges, shown).into_iter().chain(named(&payouts, paid)).collect())
}

fn paid(payout: &Value) -> Option<Shown> {
    let status = payout["status"].as_str()?.to_owned();
    let captured = if status == "paid" { payout["amount"].as_u64()? } else { 0 };
    Some(Shown { status, captured, refunded: 0 })
}

fn shown(charge: &Value) -> Option<Shown> {
    Some(Shown {
        status: charge["status"].as_str()?.to_owned(),
        captured: charge["amount_captured"].as_u64()?,
        refunded: charge["amount_refunded"].as_u64()?,
    })
}

/// Dead letters and their orders.
#[derive(Debug, Default)]
pub(super) struct Parked {
    /// Indices of parked orders.
    pub(super) orders: HashSet<usize>,
    /// Indices of orders that stored nothing, because another operation on their charge is parked.
    pub(super) behind: HashSet<usize>,
    /// Charges with a parked operation.
    pub(super) charges: HashSet<String>,
    /// Number of dead letters by reason.
    pub(super) reasons: HashMap<String, u64>,
}

/// Ids of the dead letters.
pub(super) async fn letters(address: &Address) -> Result<Vec<String>> {
    Ok(list(address, "/v1/dead-letters").await?.iter().map(|letter| text(&letter["id"])).collect())
}

/// Finds the unanswered orders that are dead letters.
pub(super) async fn parked(address: &Address, orders: &[Order]) -> Result<Parked> {
    let letters = list(address, "/v1/dead-letters").await?;
    let mut parked = Parked::default();
    for letter in &letters {
        *parked.reasons.entry(text(&letter["reason"])).or_default() += 1;
        parked.charges.insert(text(&letter["charge"]));
    }
    // A refund is a separate resource; every other dead letter names the charge.
    let of = |letter: &Value| {
        letter["refund"].as_str().unwrap_or(letter["charge"].as_str().unwrap_or("")).to_owned()
    };
    let names: HashSet<String> = letters.iter().map(of).collect();
    let mut client = Client::new(address);
    for (index, order) in orders.iter().enumerate().filter(|(_, order)| order.first.is_none()) {
        let key = fetch(&mut client, &format!("/v1/idempotency-keys/{}", order.key)).await?;
        let of_parked = |charge: &str| parked.charges.contains(charge);
        match (key["resource"]["id"].as_str(), &order.what) {
            (Some(id), _) if names.contains(id) => {
                parked.orders.insert(index);
            }
            (None, What::Operate(operate)) if key["error"] == "not_found" && of_parked(&operate.charge) => {
                parked.behind.insert(index);
            }
            (Some(_) | None, _) => {}
        }
    }
    Ok(parked)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads all pages of a list.
async fn list(address: &Address, path: &str) -> Result<Vec<Value>> {
    let mut client = Client::new(address);
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let mut page = fetch(&mut client, &format!("{path}?limit=100{after}")).await?;
        let more = page["has_more"] == true;
        let Some(data) = page["data"].as_array_mut() else {
            return Err(Failure::new(format!("{path} is no list: {page}")));
        };
        all.append(data);
        match all.last().and_then(|last| last["id"].as_str()) {
            Some(last) if more => after = format!("&starting_after={last}"),
            Some(_) | None => return Ok(all),
        }
    }
}

async fn fetch(client: &mut Client, path: &str) -> Result<Value> {
    let mut last = String::new();
    for _ in 0..TRIES {
        match client.get(path).await {
            Ok(answer) if matches!(answer.status, 200 | 404) => {
                return serde_json::from_slice(&answer.body)
                    .map_err(Failure::while_(format!("reading {path}")));
            }
            Ok(answer) => last = format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body)),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Failure::new(format!("{path} cannot be read: {last}")))
}
