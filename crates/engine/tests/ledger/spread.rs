//! Accounts spread over shards: one balance to everybody who asks, whoever spread it.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::payments::ledger::{Item, LedgerCommand, Open};
use counterfoil_engine::service::Submitted;
use counterfoil_store::{Row, Scan, Store};

fn wide(open: Open, shards: u16) -> Open {
    Open { shards, ..open }
}

fn reshard(code: &str, shards: u16) -> LedgerCommand {
    LedgerCommand::Reshard { account: named(code), shards }
}

/// How many shards of all accounts were ever written.
async fn shards(store: &SharedStore) -> usize {
    let rows = store.scan(Scan::Balances { after: None, limit: 1_000 }).await.unwrap();
    rows.iter().filter(|row| matches!(row, Row::Balance(balance) if balance.posted != 0)).count()
}

#[tokio::test(start_paused = true)]
async fn an_account_that_began_beyond_its_bound_is_judged_as_a_whole() {
    // What is moved, and whether it comes closer to the bound or keeps it.
    let steps = [
        ("world", "floor", 50, true),
        ("floor", "world", 10, false),
        ("world", "floor", 10, true),
        ("floor", "world", 50, false),
        ("world", "floor", 100, true),
        ("floor", "world", 60, true),
        ("floor", "world", 1, false),
        ("cap", "world", 50, true),
        ("world", "cap", 10, false),
        ("cap", "world", 10, true),
        ("cap", "world", 100, true),
        ("world", "cap", 60, true),
        ("world", "cap", 1, false),
    ];
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    let accounts = [guarded("floor", Some(100), None), guarded("cap", None, Some(-100))];
    funded(&engine, &accounts.clone().map(|account| (account, 0))).await;
    for (number, (from, to, amount, fits)) in steps.into_iter().enumerate() {
        let (status, body) = kept(&engine, &format!("k{number}"), transfer(from, to, amount)).await;
        assert_eq!(status == 201, fits, "step {number}: {body}");
    }
    // Spread, no shard would know of the whole.
    for account in accounts {
        let (code, shards) = (account.code.as_str().to_owned(), 2);
        let spread = keep(&engine, &format!("spread {code}"), reshard(&code, shards)).await;
        assert!(matches!(spread, Submitted::Invalid(_)), "{spread:?}");
        let opened =
            keep(&engine, &format!("open wide {code}"), LedgerCommand::Open(wide(account, shards))).await;
        assert!(matches!(opened, Submitted::Invalid(_)), "{opened:?}");
    }
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn what_another_process_spread_is_not_missed() {
    let store = SharedStore::new();
    let [first, second] =
        [engine(&store, &Provider::default()).await, engine(&store.another(), &Provider::default()).await];
    funded(&first, &[(guarded("a", Some(0), None), 100)]).await;
    kept(&first, "known", transfer("a", "world", 1)).await;
    assert_eq!(kept(&second, "spread", reshard("a", 16)).await.0, 200);
    for turn in 0..90 {
        assert_eq!(kept(&second, &format!("t{turn}"), transfer("world", "a", 10)).await.0, 201);
    }
    assert!(shards(&store).await > 5);
    // The first process has last seen the account with one shard.
    let (status, body) = kept(&first, "all", transfer("a", "world", 999)).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(posted(&first, "a").await, 0);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_bulk_request_does_not_miss_what_another_process_spread() {
    let store = SharedStore::new();
    let [first, second] =
        [engine(&store, &Provider::default()).await, engine(&store.another(), &Provider::default()).await];
    funded(&first, &[(guarded("a", Some(0), None), 100)]).await;
    kept(&second, "spread", reshard("a", 16)).await;
    for turn in 0..90 {
        kept(&second, &format!("t{turn}"), transfer("world", "a", 10)).await;
    }
    let items: Vec<Item> = (0..11).map(|_| Item::Transfer(order("a", "world", 100))).collect();
    let body = answer(&bulk(&first, "k", &items).await).1;
    let refused = results(&body).into_iter().filter(|result| *result == "insufficient_funds").count();
    assert_eq!((refused, posted(&first, "a").await), (1, 0), "{body}");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn money_stays_within_reach_whatever_the_spread() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    funded(&engine, &[(wide(guarded("a", Some(-30), None), 1), 50)]).await;
    for (turn, shards) in [256, 1, 16, 3, 1, 256].into_iter().enumerate() {
        assert_eq!(kept(&engine, &format!("s{turn}"), reshard("a", shards)).await.0, 200);
        for step in 0..10 {
            kept(&engine, &format!("t{turn}-{step}"), transfer("world", "a", 7)).await;
        }
        // All there is and all that may be owed, but not one more.
        let all = i64::try_from(posted(&engine, "a").await).unwrap() + 30;
        assert!(
            kept(&engine, &format!("more{turn}"), transfer("a", "world", all + 1))
                .await
                .1
                .starts_with("insufficient")
        );
        assert_eq!(kept(&engine, &format!("all{turn}"), transfer("a", "world", all)).await.0, 201);
        assert_eq!(kept(&engine, &format!("back{turn}"), transfer("world", "a", 31)).await.0, 201);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_spread_over_more_shards_than_a_set_can_name_is_gathered() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    let accounts = [
        (wide(guarded("a", Some(0), None), 256), 0),
        (wide(Open { normal: Side::Debit, ..guarded("b", Some(0), None) }, 256), 0),
    ];
    funded(&engine, &accounts).await;
    for turn in 0..600 {
        kept(&engine, &format!("t{turn}"), transfer("b", "a", 1)).await;
    }
    assert!(shards(&store).await > 300, "each over more than a hundred");
    assert!(kept(&engine, "more", transfer("a", "b", 601)).await.1.starts_with("insufficient"));
    assert_eq!(kept(&engine, "all", transfer("a", "b", 600)).await.0, 201, "both at once");
    assert_eq!((posted(&engine, "a").await, posted(&engine, "b").await), (0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn holds_end_whole_after_the_spread_changed() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    let accounts =
        [(wide(guarded("a", Some(0), None), 16), 1_000), (wide(guarded("b", None, Some(1_000)), 16), 0)];
    funded(&engine, &accounts).await;
    let mut holds = Vec::new();
    for turn in 0..10 {
        let (status, body) = kept(&engine, &format!("h{turn}"), hold("a", "b", 100)).await;
        assert_eq!(status, 201, "{body}");
        holds.push(number(&body));
    }
    assert_eq!((balance(&engine, "a").await.available, balance(&engine, "b").await.incoming), (0, 1_000));
    for (turn, shards) in [(0, 1), (4, 5), (7, 256)] {
        kept(&engine, &format!("ra{turn}"), reshard("a", shards)).await;
        kept(&engine, &format!("rb{turn}"), reshard("b", shards)).await;
        for hold in &holds[turn..turn + 3] {
            assert_eq!(kept(&engine, &format!("e{hold}"), post_hold(*hold, Some(60))).await.0, 200);
        }
    }
    kept(&engine, "last", void(holds[3])).await;
    assert_eq!(balance(&engine, "a").await, view(1_000 - 9 * 60, 0, 0));
    assert_eq!(balance(&engine, "b").await, view(9 * 60, 0, 0));
    assert_eq!(kept(&engine, "rest", transfer("a", "b", 460)).await.0, 201);
    verified(&store).await;
}
