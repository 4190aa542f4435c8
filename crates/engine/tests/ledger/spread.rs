//! Accounts spread over shards: one balance in every process.

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

/// Number of balance rows of all accounts.
async fn shards(store: &SharedStore) -> usize {
    let rows = store.scan(Scan::Balances { after: None, limit: 1_000 }).await.unwrap();
    rows.iter().filter(|row| matches!(row, Row::Balance(balance) if balance.posted != 0)).count()
}

#[tokio::test(start_paused = true)]
async fn an_account_that_began_beyond_its_bound_is_judged_as_a_whole() {
    // A move, and whether it brings the balance closer to the bound.
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
        let (status, body) = executed(&engine, &format!("k{number}"), transfer(from, to, amount)).await;
        assert_eq!(status == 201, fits, "step {number}: {body}");
    }
    // With several shards, no shard would know the whole balance.
    for account in accounts {
        let (code, shards) = (account.code.as_str().to_owned(), 2);
        let spread = execute(&engine, &format!("spread {code}"), reshard(&code, shards)).await;
        assert!(matches!(spread, Submitted::Invalid(_)), "{spread:?}");
        let opened =
            execute(&engine, &format!("open wide {code}"), LedgerCommand::Open(wide(account, shards))).await;
        assert!(matches!(opened, Submitted::Invalid(_)), "{opened:?}");
    }
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn shards_added_by_another_process_are_found() {
    let store = SharedStore::new();
    let [first, second] =
        [engine(&store, &Provider::default()).await, engine(&store.another(), &Provider::default()).await];
    funded(&first, &[(guarded("a", Some(0), None), 100)]).await;
    executed(&first, "known", transfer("a", "world", 1)).await;
    assert_eq!(executed(&second, "spread", reshard("a", 16)).await.0, 200);
    for turn in 0..90 {
        assert_eq!(executed(&second, &format!("t{turn}"), transfer("world", "a", 10)).await.0, 201);
    }
    assert!(shards(&store).await > 5);
    // The first process has the account cached with one shard.
    let (status, body) = executed(&first, "all", transfer("a", "world", 999)).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(posted(&first, "a").await, 0);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_bulk_request_finds_shards_added_by_another_process() {
    let store = SharedStore::new();
    let [first, second] =
        [engine(&store, &Provider::default()).await, engine(&store.another(), &Provider::default()).await];
    funded(&first, &[(guarded("a", Some(0), None), 100)]).await;
    executed(&second, "spread", reshard("a", 16)).await;
    for turn in 0..90 {
        executed(&second, &format!("t{turn}"), transfer("world", "a", 10)).await;
    }
    let items: Vec<Item> = (0..11).map(|_| Item::Transfer(order("a", "world", 100))).collect();
    let body = answer(&bulk(&first, "k", &items).await).1;
    let refused = results(&body).into_iter().filter(|result| *result == "insufficient_funds").count();
    assert_eq!((refused, posted(&first, "a").await), (1, 0), "{body}");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn all_money_stays_usable_with_any_number_of_shards() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    funded(&engine, &[(wide(guarded("a", Some(-30), None), 1), 50)]).await;
    for (turn, shards) in [256, 1, 16, 3, 1, 256].into_iter().enumerate() {
        assert_eq!(executed(&engine, &format!("s{turn}"), reshard("a", shards)).await.0, 200);
        for step in 0..10 {
            executed(&engine, &format!("t{turn}-{step}"), transfer("world", "a", 7)).await;
        }
        // The whole balance and the whole credit line, but no unit more.
        let all = i64::try_from(posted(&engine, "a").await).unwrap() + 30;
        assert!(
            executed(&engine, &format!("more{turn}"), transfer("a", "world", all + 1))
                .await
                .1
                .starts_with("insufficient")
        );
        assert_eq!(executed(&engine, &format!("all{turn}"), transfer("a", "world", all)).await.0, 201);
        assert_eq!(executed(&engine, &format!("back{turn}"), transfer("world", "a", 31)).await.0, 201);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn money_on_more_shards_than_a_set_can_change_is_gathered() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    let accounts = [
        (wide(guarded("a", Some(0), None), 256), 0),
        (wide(Open { normal: Side::Debit, ..guarded("b", Some(0), None) }, 256), 0),
    ];
    funded(&engine, &accounts).await;
    for turn in 0..600 {
        executed(&engine, &format!("t{turn}"), transfer("b", "a", 1)).await;
    }
    assert!(shards(&store).await > 300, "each over more than a hundred");
    assert!(executed(&engine, "more", transfer("a", "b", 601)).await.1.starts_with("insufficient"));
    assert_eq!(executed(&engine, "all", transfer("a", "b", 600)).await.0, 201, "both at once");
    assert_eq!((posted(&engine, "a").await, posted(&engine, "b").await), (0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn holds_end_completely_after_the_number_of_shards_changed() {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    let accounts =
        [(wide(guarded("a", Some(0), None), 16), 1_000), (wide(guarded("b", None, Some(1_000)), 16), 0)];
    funded(&engine, &accounts).await;
    let mut holds = Vec::new();
    for turn in 0..10 {
        let (status, body) = executed(&engine, &format!("h{turn}"), hold("a", "b", 100)).await;
        assert_eq!(status, 201, "{body}");
        holds.push(number(&body));
    }
    assert_eq!((balance(&engine, "a").await.available, balance(&engine, "b").await.incoming), (0, 1_000));
    for (turn, shards) in [(0, 1), (4, 5), (7, 256)] {
        executed(&engine, &format!("ra{turn}"), reshard("a", shards)).await;
        executed(&engine, &format!("rb{turn}"), reshard("b", shards)).await;
        for hold in &holds[turn..turn + 3] {
            assert_eq!(executed(&engine, &format!("e{hold}"), post_hold(*hold, Some(60))).await.0, 200);
        }
    }
    executed(&engine, "last", void(holds[3])).await;
    assert_eq!(balance(&engine, "a").await, view(1_000 - 9 * 60, 0, 0));
    assert_eq!(balance(&engine, "b").await, view(9 * 60, 0, 0));
    assert_eq!(executed(&engine, "rest", transfer("a", "b", 460)).await.0, 201);
    verified(&store).await;
}
