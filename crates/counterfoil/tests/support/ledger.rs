//! A race for the rest of a balance: many clients debit one account of 16 shards down to its floor.

use super::client::{Answer, Client};
use std::sync::atomic::{AtomicBool, Ordering};

/// The initial balance, the amount of one debit, and the number of debits that fit.
pub const FUNDS: i64 = 1_000;
pub const DEBIT: i64 = 7;
pub const FITTING: usize = 142;
/// The number of racers, and debits per racer: far more than fit.
pub const RACERS: usize = 64;
pub const DEBITS_EACH: usize = 4;

const DEBIT_BODY: &str = r#"{"from":"pot","to":"sink","amount":7,"currency":"USD"}"#;

/// A debit and its final answer.
pub struct Debit {
    pub key: String,
    pub answer: Answer,
}

/// Opens the accounts and funds the contended one.
pub fn open(client: &Client) {
    for account in [
        r#"{"code":"world","asset":"USD"}"#,
        r#"{"code":"sink","asset":"USD"}"#,
        r#"{"code":"pot","asset":"USD","floor":0,"shards":16}"#,
    ] {
        let opened = client.post("/v1/accounts", &format!("open-{}", super::field(account, "code")), account);
        assert_eq!(opened.unwrap().status, 201);
    }
    let funds = format!(r#"{{"from":"world","to":"pot","amount":{FUNDS},"currency":"USD"}}"#);
    assert_eq!(client.post("/v1/transfers", "fund", &funds).unwrap().status, 201);
}

/// Races for the account, each racer with its own client, and reads the balance meanwhile. Calls
/// `told` for every final answer.
pub fn race(clients: &[Client], told: impl Fn() + Sync) -> Vec<Debit> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (client, told) = (&clients[racer % clients.len()], &told);
                scope.spawn(move || {
                    let debit = |number: usize| {
                        let key = format!("debit-{racer}-{number}");
                        let answer = client.until_final("/v1/transfers", &key, DEBIT_BODY);
                        told();
                        Debit { key, answer }
                    };
                    (0..DEBITS_EACH).map(debit).collect::<Vec<_>>()
                })
            })
            .collect();
        let watch = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if let Some(available) = try_balance(&clients[0], "pot") {
                    assert!((0..=FUNDS).contains(&available), "the balance was {available}");
                }
            }
        });
        let debits = racers.into_iter().flat_map(|racer| racer.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        watch.join().unwrap();
        debits
    })
}

/// Exactly the debits that fit were made, all others were refused for lack of funds, and the ledger
/// balances.
pub fn check(client: &Client, debits: &[Debit]) {
    let made = debits.iter().filter(|debit| debit.answer.status == 201).count();
    for debit in debits.iter().filter(|debit| debit.answer.status != 201) {
        assert_eq!((debit.answer.status, debit.answer.error()), (400, "insufficient_funds".into()));
    }
    assert_eq!((debits.len(), made), (RACERS * DEBITS_EACH, FITTING));
    let balances = ["pot", "sink", "world"].map(|code| try_balance(client, code).unwrap());
    let taken = DEBIT * i64::try_from(FITTING).unwrap();
    assert_eq!(balances, [FUNDS - taken, taken, -FUNDS]);
    assert_eq!(balances.iter().sum::<i64>(), 0);
}

/// Every debit is replayed with its first answer.
pub fn replay(client: &Client, debits: &[Debit]) {
    for Debit { key, answer } in debits {
        let again = client.post("/v1/transfers", key, DEBIT_BODY).unwrap();
        assert_eq!((again.declared(), again.is_replay()), (answer.declared(), true), "{key}");
    }
}

/// The available amount, unless the server is down.
fn try_balance(client: &Client, code: &str) -> Option<i64> {
    let answer = client.try_get(&format!("/v1/accounts/{code}/balance")).ok()?;
    (answer.status == 200).then(|| super::client::number(&answer.body, "available"))
}
