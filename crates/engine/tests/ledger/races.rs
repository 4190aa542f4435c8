//! Concurrent requests on few guarded accounts: guards always hold, and every request that fits
//! succeeds.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::payments::ledger::{LedgerCommand, Open};
use counterfoil_engine::service::Submitted;
use std::collections::HashMap;

/// Runs all commands concurrently on two processes until all have answers. Returns status and body
/// in order.
async fn all_at_once(store: &SharedStore, seed: u64, acts: Vec<LedgerCommand>) -> Vec<(u16, String)> {
    let engines = [
        engine(&store.jumpy(seed), &Provider::default()).await,
        engine(&store.jumpy(seed.wrapping_mul(31)), &Provider::default()).await,
    ];
    let tasks: Vec<_> = acts
        .into_iter()
        .enumerate()
        .map(|(number, act)| {
            let engine = engines[number % 2].clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    match execute(&engine, &format!("race {number}"), act.clone()).await {
                        // Other requests were always faster; retry with the same key.
                        Submitted::StoreUnavailable => {}
                        submitted => {
                            let (status, body, _) = answer(&submitted);
                            return (status, body);
                        }
                    }
                }
                panic!("no answer for act {number}");
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

/// Number of answers by first word.
fn words(answers: &[(u16, String)]) -> HashMap<&str, usize> {
    let mut words = HashMap::new();
    for (_, body) in answers {
        *words.entry(body.split_whitespace().next().unwrap()).or_insert(0) += 1;
    }
    words
}

/// Asserts that every replay equals its answer.
async fn replayed(store: &SharedStore, acts: &[LedgerCommand], answers: &[(u16, String)]) {
    let stranger = engine(&store.another(), &Provider::default()).await;
    for (number, (act, first)) in acts.iter().zip(answers).enumerate() {
        let (status, body, replayed) =
            answer(&execute(&stranger, &format!("race {number}"), act.clone()).await);
        assert_eq!((&(status, body), replayed), (first, true));
    }
}

async fn scene(accounts: &[(Open, i64)]) -> (SharedStore, TestEngine) {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    funded(&engine, accounts).await;
    (store, engine)
}

fn wide(open: Open, shards: u16) -> Open {
    Open { shards, ..open }
}

#[tokio::test(start_paused = true)]
async fn exactly_the_debits_that_fit_the_floor_succeed() {
    for (shards, seed) in [(1, 1), (1, 2), (16, 3), (16, 4), (256, 5)] {
        let (store, engine) = scene(&[(wide(guarded("a", Some(-100), None), shards), 900)]).await;
        let acts: Vec<LedgerCommand> = (0..300).map(|_| transfer("a", "world", 7)).collect();
        let answers = all_at_once(&store, seed, acts.clone()).await;
        let words = words(&answers);
        // 142 times 7 is 994 of the available 1,000.
        assert_eq!((words["transferred"], words["insufficient_funds"]), (142, 158), "{shards} shards");
        assert_eq!(posted(&engine, "a").await, -94);
        replayed(&store, &acts, &answers).await;
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn exactly_the_credits_that_fit_the_cap_succeed() {
    for (shards, seed) in [(1, 1), (1, 2), (16, 3), (16, 4), (256, 5)] {
        let (store, engine) = scene(&[(wide(guarded("a", None, Some(1_000)), shards), 0)]).await;
        let acts: Vec<LedgerCommand> = (0..300).map(|_| transfer("world", "a", 7)).collect();
        let answers = all_at_once(&store, seed, acts.clone()).await;
        let words = words(&answers);
        assert_eq!((words["transferred"], words["cap_exceeded"]), (142, 158), "{shards} shards");
        assert_eq!(posted(&engine, "a").await, 994);
        replayed(&store, &acts, &answers).await;
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn circulating_money_is_neither_created_nor_lost() {
    for (shards, seed) in [(1, 6), (16, 7), (256, 8)] {
        let names = ["a", "b", "c", "d"];
        let accounts: Vec<(Open, i64)> =
            names.iter().map(|name| (wide(guarded(name, Some(0), Some(500)), shards), 250)).collect();
        let (store, engine) = scene(&accounts).await;
        let acts: Vec<LedgerCommand> = (0_usize..240)
            .map(|turn| {
                let (from, to) = (names[turn % 4], names[(turn + 1 + turn / 4 % 3) % 4]);
                let amount = i64::try_from(turn * 37 % 101).unwrap() + 1;
                if turn % 5 == 0 { hold(from, to, amount) } else { transfer(from, to, amount) }
            })
            .collect();
        let answers = all_at_once(&store, seed, acts).await;
        let mut all = 0;
        for name in names {
            let shown = balance(&engine, name).await;
            assert!(shown.available >= 0 && shown.posted + shown.incoming <= 500, "{name} {shown:?}");
            all += shown.posted;
        }
        assert_eq!(all, 1_000);
        assert!(words(&answers)["transferred"] > 50);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_shards_may_change_during_writes() {
    for seed in 1..=4 {
        let (store, engine) = scene(&[(wide(guarded("a", Some(0), Some(2_000)), 4), 700)]).await;
        let spreads = [1, 16, 2, 256, 8];
        let acts: Vec<LedgerCommand> = (0..200)
            .map(|turn: usize| match turn % 10 {
                9 => LedgerCommand::Reshard { account: named("a"), shards: spreads[turn / 10 % 5] },
                even if even % 2 == 0 => transfer("a", "world", 10),
                _ => transfer("world", "a", 3),
            })
            .collect();
        let answers = all_at_once(&store, seed, acts).await;
        let words = words(&answers);
        assert_eq!(words["resharded"], 20, "{words:?}");
        // The balance is the sum of all successful answers.
        let out =
            answers.iter().enumerate().filter(|(turn, answer)| turn % 2 == 0 && answer.0 == 201).count();
        let come =
            answers.iter().enumerate().filter(|(turn, answer)| turn % 2 == 1 && answer.0 == 201).count();
        let sum = 700 - 10 * i128::try_from(out).unwrap() + 3 * i128::try_from(come).unwrap();
        assert_eq!(posted(&engine, "a").await, sum);
        assert!(sum >= 0);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_many_reversals_of_a_transaction_succeeds() {
    for seed in 1..=6 {
        let (store, engine) =
            scene(&[(guarded("a", Some(0), None), 100), (guarded("b", Some(0), None), 0)]).await;
        let moved = number(&executed(&engine, "move", transfer("a", "b", 100)).await.1);
        let answers = all_at_once(&store, seed, (0..40).map(|_| reverse(moved)).collect()).await;
        let words = words(&answers);
        assert_eq!((words["posted"], words["already_reversed"]), (1, 39));
        assert_eq!((posted(&engine, "a").await, posted(&engine, "b").await), (100, 0));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_many_openings_of_a_code_succeeds() {
    for seed in 1..=6 {
        let (store, engine) = scene(&[]).await;
        let acts: Vec<LedgerCommand> = (0..40)
            .map(|turn| {
                LedgerCommand::Open(Open {
                    shards: turn + 1,
                    ..guarded("same", Some(-i64::from(turn)), None)
                })
            })
            .collect();
        let answers = all_at_once(&store, seed, acts.clone()).await;
        let words = words(&answers);
        assert_eq!((words["opened"], words["account_exists"]), (1, 39));
        let winner = answers.iter().position(|answer| answer.0 == 201).unwrap();
        assert_eq!(
            usize::from(account(&engine, "same").await.shards),
            winner + 1,
            "with its guard and shards"
        );
        replayed(&store, &acts, &answers).await;
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn twins_under_one_key_share_one_effect_and_one_answer() {
    for seed in 1..=6 {
        let (store, engine) = scene(&[(guarded("a", Some(0), None), 100)]).await;
        let engines = [
            crate::support::engine(&store.jumpy(seed), &Provider::default()).await,
            crate::support::engine(&store.jumpy(seed + 40), &Provider::default()).await,
        ];
        for (key, amount) in [("done", 60), ("refused", 61)] {
            let twins: Vec<_> = (0..60)
                .map(|turn| {
                    let engine = engines[turn % 2].clone();
                    tokio::spawn(async move {
                        answer(&execute(&engine, key, transfer("a", "world", amount)).await)
                    })
                })
                .collect();
            let (mut bodies, mut firsts) = (std::collections::HashSet::new(), 0);
            for twin in twins {
                let (_, body, replayed) = twin.await.unwrap();
                firsts += usize::from(!replayed);
                bodies.insert(body);
            }
            assert_eq!((bodies.len(), firsts, posted(&engine, "a").await), (1, 1, 40), "seed {seed}");
        }
        verified(&store).await;
    }
}
