//! Many transactions under one key.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::payments::ledger::{HoldTerms, Item, Post, TransferOrder};
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::Submitted;
use counterfoil_store::Store;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

fn item(from: &str, to: &str, amount: i64) -> Item {
    Item::Transfer(order(from, to, amount))
}

async fn pair(store: &SharedStore) -> TestEngine {
    let engine = engine(store, &Provider::default()).await;
    funded(&engine, &[(guarded("a", Some(0), None), 10_000), (guarded("b", Some(0), Some(5_000)), 0)]).await;
    engine
}

#[tokio::test(start_paused = true)]
async fn a_thousand_of_every_kind_each_get_their_own_result_in_order() {
    let store = SharedStore::new();
    let engine = pair(&store).await;
    open(&engine, guarded("empty", Some(0), None)).await;
    let items: Vec<Item> = (0..1_000)
        .map(|place| match place % 5 {
            0 => item("world", "a", 3),
            1 => Item::Post(legs(&[("a", -2), ("b", 1), ("world", 1)])),
            2 => item("empty", "a", 1),
            3 => item("a", "nobody", 1),
            _ => Item::Post(legs(&[("a", -2), ("b", 1)])),
        })
        .collect();
    let (status, body, _) = answer(&bulk(&engine, "k", &items).await);
    let results = results(&body);
    assert_eq!((status, results.len()), (200, 1_000));
    let mut ids = HashSet::new();
    for (place, result) in results.iter().enumerate() {
        match place % 5 {
            0 | 1 => assert!(ids.insert(result.parse::<i64>().unwrap()), "{place}"),
            2 => assert_eq!(*result, "insufficient_funds", "{place}"),
            3 => assert_eq!(*result, "invalid /to", "{place}"),
            _ => assert_eq!(*result, "invalid /entries", "{place}"),
        }
    }
    assert_eq!(posted(&engine, "a").await, 10_000 + 200 * 3 - 200 * 2);
    assert_eq!(posted(&engine, "b").await, 200);
    assert_eq!(journal(&store).await.len(), 1 + 400, "and nothing else was written");
    let again = answer(&bulk(&engine, "k", &items).await);
    assert_eq!((&again.1, again.2), (&body, true));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn items_are_judged_one_after_the_other() {
    let store = SharedStore::new();
    let engine = pair(&store).await;
    open(&engine, guarded("c", Some(0), Some(10))).await;
    let items = [
        item("c", "b", 1),
        item("a", "c", 10),
        item("a", "c", 1),
        item("c", "b", 4),
        item("c", "b", 7),
        item("c", "b", 6),
        item("a", "c", 11),
        item("b", "c", 10),
    ];
    let body = answer(&bulk(&engine, "k", &items).await).1;
    let words: Vec<&str> = results(&body)
        .into_iter()
        .map(|result| if result.parse::<i64>().is_ok() { "done" } else { result })
        .collect();
    let (done, low, high) = ("done", "insufficient_funds", "cap_exceeded");
    assert_eq!(words, [low, done, high, done, low, done, high, done]);
    assert_eq!((posted(&engine, "b").await, posted(&engine, "c").await), (0, 10));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn balances_are_read_only_where_not_everything_fits() {
    let store = SharedStore::new();
    let engine = pair(&store).await;
    bulk(&engine, "first", &[item("a", "b", 1)]).await;
    let before = store.looks();
    let items: Vec<Item> = (0..300).map(|_| item("a", "b", 1)).collect();
    bulk(&engine, "fits", &items).await;
    assert_eq!(store.looks(), before, "the judge alone decides");
    bulk(&engine, "does not", &[item("a", "b", 1), item("a", "b", 4_699)]).await;
    assert!(store.looks() > before);
    assert_eq!(posted(&engine, "b").await, 302);
}

#[tokio::test(start_paused = true)]
async fn later_items_do_not_fund_earlier_ones() {
    let store = SharedStore::new();
    let engine = pair(&store).await;
    open(&engine, guarded("low", Some(0), None)).await;
    open(&engine, guarded("full", None, Some(0))).await;
    let items = [item("low", "world", 5), item("a", "low", 5), item("a", "full", 5), item("full", "a", 5)];
    let body = answer(&bulk(&engine, "k", &items).await).1;
    let results = results(&body);
    assert_eq!((results[0], results[2]), ("insufficient_funds", "cap_exceeded"));
    assert!(results[1].parse::<i64>().is_ok() && results[3].parse::<i64>().is_ok(), "{body}");
    assert_eq!((posted(&engine, "low").await, posted(&engine, "full").await), (5, -5));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_held_transfer_is_refused_as_an_item() {
    let store = SharedStore::new();
    let engine = pair(&store).await;
    let held = TransferOrder { hold: Some(HoldTerms { expires_at: None }), ..order("a", "b", 5) };
    let body = answer(&bulk(&engine, "k", &[Item::Transfer(held), item("a", "b", 1)]).await).1;
    assert!(results(&body)[0].starts_with("invalid"), "{body}");
    assert_eq!((balance(&engine, "a").await, posted(&engine, "b").await), (view(9_999, 0, 0), 1));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn many_items_on_the_same_accounts_take_few_commits() {
    for shards in [1, 16] {
        let store = SharedStore::new();
        let engine = engine(&store, &Provider::default()).await;
        let wide = counterfoil_core::payments::ledger::Open { shards, ..guarded("a", Some(0), None) };
        funded(&engine, &[(wide, 500), (guarded("b", Some(0), None), 0)]).await;
        let before = store.feed(counterfoil_store::Position(0), 1_000).await.unwrap().len();
        let items: Vec<Item> = (0..1_000).map(|_| item("a", "b", 1)).collect();
        let body = answer(&bulk(&engine, "k", &items).await).1;
        let done = results(&body).iter().take_while(|result| result.parse::<i64>().is_ok()).count();
        let refused = results(&body).iter().filter(|result| **result == "insufficient_funds").count();
        assert_eq!((done, refused), (500, 500), "the first five hundred");
        let commits = store.feed(counterfoil_store::Position(0), 1_000).await.unwrap().len() - before;
        assert!(commits <= 12, "{shards} shards: {commits} commits");
        assert_eq!((posted(&engine, "a").await, posted(&engine, "b").await), (0, 500));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_body_under_the_key_is_a_mismatch() {
    let store = SharedStore::new();
    let engine = pair(&store).await;
    let items = [item("a", "b", 1), item("a", "b", 2)];
    bulk(&engine, "k", &items).await;
    assert_eq!(bulk(&engine, "k", &items[..1]).await, Submitted::Mismatch);
    assert_eq!(execute(&engine, "k", transfer("a", "b", 1)).await, Submitted::Mismatch);
    assert_eq!(posted(&engine, "b").await, 3);
}

#[tokio::test(start_paused = true)]
async fn twins_share_one_execution() {
    for seed in 1..=5 {
        let store = SharedStore::new();
        let engine = pair(&store.jumpy(seed)).await;
        let other = crate::support::engine(&store.jumpy(seed + 9), &Provider::default()).await;
        let items: Vec<Item> = (0..300).map(|_| item("a", "b", 1)).collect();
        let twins: Vec<_> = (0..10)
            .map(|turn| {
                let (engine, items) =
                    (if turn % 2 == 0 { engine.clone() } else { other.clone() }, items.clone());
                tokio::spawn(async move { answer(&bulk(&engine, "k", &items).await) })
            })
            .collect();
        let mut bodies = HashSet::new();
        let mut first = 0;
        for twin in twins {
            let (status, body, replayed) = twin.await.unwrap();
            assert_eq!(status, 200);
            first += usize::from(!replayed);
            bodies.insert(body);
        }
        assert_eq!((bodies.len(), first, posted(&engine, "b").await), (1, 1, 300), "seed {seed}");
        verified(&store).await;
    }
}

/// Items, of which some are refused, on an account with other writers.
fn mixed() -> Vec<Item> {
    (0..400).map(|place| if place % 7 == 3 { item("b", "a", 1_000_000) } else { item("a", "b", 1) }).collect()
}

#[tokio::test(start_paused = true)]
async fn a_bulk_request_of_a_dead_process_is_continued() {
    // The process dies after each of the commits in turn. The fifth one has the answer.
    for commits in 1..=5 {
        let store = SharedStore::new();
        let mortal = store.another();
        let first = pair(&mortal).await;
        let second = engine(&store, &Provider::default()).await;
        let items = mixed();
        // The workers have nothing left to write.
        seconds(1).await;
        mortal.dies_after(commits);
        let client = tokio::spawn({
            let items = items.clone();
            async move { bulk(&first, "k", &items).await }
        });
        seconds(1).await;
        let early = bulk(&second, "k", &items).await;
        if commits < 5 {
            assert_eq!(early, Submitted::InUse, "the lease of the dead still runs");
            assert_eq!(bulk(&second, "k", &items[..1]).await, Submitted::Mismatch);
        }
        seconds(40).await;
        let written = journal(&store).await.len();
        assert_eq!(written == 1 + 343, commits == 5, "{written} after {commits} commits");
        let (status, body, replayed) = answer(&bulk(&second, "k", &items).await);
        assert_eq!((status, replayed), (200, commits == 5), "after {commits}");
        let mut ids = HashSet::new();
        for (place, result) in results(&body).into_iter().enumerate() {
            if place % 7 == 3 {
                assert_eq!(result, "insufficient_funds");
            } else {
                assert!(ids.insert(result.parse::<i64>().unwrap()));
            }
        }
        assert_eq!(ids.len(), 343);
        assert_eq!(posted(&second, "b").await, 343, "each once");
        assert_eq!(journal(&store).await.len(), 1 + 343);
        assert_eq!(answer(&bulk(&second, "k", &items).await).1, body);
        assert_eq!(client.is_finished(), commits == 5);
        client.abort();
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_many_takeovers_continues_and_the_others_wait() {
    for seed in 1..=8 {
        let store = SharedStore::new();
        let mortal = store.another();
        let first = pair(&mortal).await;
        seconds(1).await;
        mortal.dies_after(2);
        let items = mixed();
        let client = tokio::spawn({
            let items = items.clone();
            async move { bulk(&first, "k", &items).await }
        });
        seconds(40).await;
        let takers = [
            engine(&store.jumpy(seed), &Provider::default()).await,
            engine(&store.jumpy(seed + 77), &Provider::default()).await,
        ];
        let retries: Vec<_> = (0..6)
            .map(|turn| {
                let (engine, items) = (takers[turn % 2].clone(), items.clone());
                tokio::spawn(async move { bulk(&engine, "k", &items).await })
            })
            .collect();
        let mut bodies = HashSet::new();
        for retry in retries {
            bodies.insert(answer(&retry.await.unwrap()).1);
        }
        assert_eq!((bodies.len(), posted(&takers[0], "b").await), (1, 343), "seed {seed}");
        client.abort();
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_process_that_lost_its_lease_returns_the_stored_answer() {
    let store = SharedStore::new();
    let slow = pair(&store.another()).await;
    let items = mixed();
    // The projection has caught up, so it commits nothing in between.
    seconds(1).await;
    // The third commit is throttled until another process takes over and continues.
    store.0.fail_next(&[
        counterfoil_store::memory::MemoryFault::Pass,
        counterfoil_store::memory::MemoryFault::Pass,
    ]);
    store.0.fail_next(&[counterfoil_store::memory::MemoryFault::Throttle; 3]);
    assert_eq!(bulk(&slow, "k", &items).await, Submitted::StoreUnavailable);
    seconds(40).await;
    let other = engine(&store, &Provider::default()).await;
    let finished = answer(&bulk(&other, "k", &items).await);
    assert_eq!((finished.0, finished.2), (200, false));
    assert_eq!(answer(&bulk(&slow, "k", &items).await).1, finished.1);
    assert_eq!(posted(&other, "b").await, 343);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_cancels_nothing() {
    let store = SharedStore::new();
    let engine = pair(&store.jumpy(3)).await;
    let items = mixed();
    {
        let mut request = Box::pin(bulk(&engine, "k", &items));
        // The client hangs up before the first answer of the store.
        tokio::select! {
            biased;
            _ = &mut request => panic!("too fast"),
            () = tokio::task::yield_now() => {}
        }
    }
    seconds(1).await;
    let (status, _, replayed) = answer(&bulk(&engine, "k", &items).await);
    assert_eq!((status, replayed, posted(&engine, "b").await), (200, true, 343));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn bulks_and_single_transfers_on_the_same_account_never_pass_its_floor() {
    for seed in 1..=6 {
        let store = SharedStore::new();
        let engine = engine(&store.jumpy(seed), &Provider::default()).await;
        funded(&engine, &[(guarded("a", Some(0), None), 1_000), (guarded("b", None, None), 0)]).await;
        let bulks = (0..4).map(|turn| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let items: Vec<Item> = (0..200).map(|_| item("a", "b", 1)).collect();
                let body = answer(&bulk(&engine, &format!("bulk {turn}"), &items).await).1;
                results(&body).iter().filter(|result| result.parse::<i64>().is_ok()).count()
            })
        });
        let singles = (0..60).map(|turn| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let answer = executed(&engine, &format!("single {turn}"), transfer("a", "b", 9)).await;
                if answer.0 == 201 { 9 } else { 0 }
            })
        });
        let tasks: Vec<_> = bulks.chain(singles).collect();
        let mut moved = 0;
        for task in tasks {
            moved += task.await.unwrap();
        }
        let left = posted(&engine, "a").await;
        assert_eq!(i128::try_from(moved).unwrap() + left, 1_000, "seed {seed}");
        assert!((0..9).contains(&left), "all that fits was moved, but {left}");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_can_be_claimed_while_the_sweeper_removes_its_claim() {
    for seed in 1..=30 {
        let store = SharedStore::new();
        let mut policy = policy();
        policy.windows.replay = Span::from_ms(100);
        policy.windows.tombstone = Span::from_ms(100);
        let engine = engine_with(&store.jumpy(seed), &Provider::default(), policy).await;
        funded(&engine, &[(guarded("a", Some(0), None), 100)]).await;
        bulk(&engine, "k", &[item("a", "world", 1)]).await;
        // The sweeper and this loop both run every five seconds.
        tokio::time::sleep(Duration::from_secs(5).saturating_sub(Duration::from_millis(seed % 2))).await;
        let submitted = bulk(&engine, "k", &[item("a", "world", 2)]).await;
        assert_eq!(answer(&submitted).0, 200, "seed {seed}: the key was free, swept or not");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bulk_in_flight_is_seen_under_its_key() {
    let store = SharedStore::new();
    let mortal = store.another();
    let engine = pair(&mortal).await;
    seconds(1).await;
    mortal.dies_after(2);
    let client = tokio::spawn(async move { bulk(&engine, "k", &mixed()).await });
    seconds(1).await;
    let claim = claim(&store, "k").await;
    assert!(matches!(claim.state, ClaimState::InFlight(_)) && claim.makes.name() == "bulk");
    client.abort();
}

#[tokio::test(start_paused = true)]
async fn forty_legs_on_guarded_accounts_fit_and_so_do_many_of_them() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    let accounts: Vec<_> =
        (0..40).map(|number| (guarded(&format!("g{number}"), Some(0), None), 1_000)).collect();
    funded(&engine, &accounts).await;
    let post = || {
        let codes: Vec<String> = (0..40).map(|number| format!("g{number}")).collect();
        let all: Vec<(&str, i64)> = codes
            .iter()
            .enumerate()
            .map(|(place, code)| (code.as_str(), if place % 2 == 0 { -1 } else { 1 }))
            .collect();
        Post { metadata: BTreeMap::new(), ..legs(&all) }
    };
    let items: Vec<Item> = (0..100).map(|_| Item::Post(post())).collect();
    let body = answer(&bulk(&engine, "k", &items).await).1;
    assert!(results(&body).iter().all(|result| result.parse::<i64>().is_ok()), "{body}");
    assert_eq!((posted(&engine, "g0").await, posted(&engine, "g1").await), (900, 1_100));
    verified(&store).await;
}
