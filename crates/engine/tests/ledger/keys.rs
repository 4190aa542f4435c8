//! One key, one answer: for every ledger request.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::ledger::convert::{Rate, Rounding};
use counterfoil_core::payments::ledger::{Convert, Item, LedgerCommand, Post};
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::id::TenantId;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::{Row, RowKey, Store};
use std::collections::BTreeMap;

fn define(code: &str) -> LedgerCommand {
    LedgerCommand::Define { asset: asset(code), exponent: 3 }
}

fn reshard(code: &str, shards: u16) -> LedgerCommand {
    LedgerCommand::Reshard { account: named(code), shards }
}

fn convert(from: &str, to: &str, amount: i64) -> LedgerCommand {
    LedgerCommand::Convert(Convert {
        from: named(from),
        to: named(to),
        amount,
        rate: Rate::new(&Decimal::parse("0.905").unwrap()).unwrap(),
        rounding: Rounding::HalfEven,
        metadata: BTreeMap::new(),
    })
}

/// Two funded accounts, one euro account, an open hold and a posted transfer.
struct Scene {
    store: SharedStore,
    engine: TestEngine,
    hold: i64,
    transfer: i64,
}

async fn scene() -> Scene {
    let store = SharedStore::new();
    let engine = engine_with(&store, &Provider::default(), short_windows()).await;
    funded(&engine, &[(guarded("a", Some(0), None), 1_000), (guarded("b", Some(0), Some(900)), 0)]).await;
    open(&engine, counterfoil_core::payments::ledger::Open { asset: asset("EUR"), ..plain("e") }).await;
    let held = number(&executed(&engine, "scene hold", hold("a", "b", 100)).await.1);
    let moved = number(&executed(&engine, "scene transfer", transfer("a", "b", 200)).await.1);
    Scene { store, engine, hold: held, transfer: moved }
}

/// Every command, another command with a different meaning, and the first word of the answer.
fn acts(scene: &Scene) -> Vec<(&'static str, LedgerCommand, LedgerCommand)> {
    vec![
        ("opened", LedgerCommand::Open(plain("new")), LedgerCommand::Open(plain("newer"))),
        ("defined", define("POINTS"), define("MILES")),
        ("resharded", reshard("a", 4), reshard("a", 5)),
        ("transferred", transfer("a", "b", 10), transfer("a", "b", 11)),
        ("held", hold("a", "b", 10), hold("a", "b", 11)),
        ("posted", post_hold(scene.hold, Some(40)), void(scene.hold)),
        ("voided", void(scene.hold), post_hold(scene.hold, None)),
        (
            "posted",
            LedgerCommand::Post(legs(&[("a", -5), ("b", 3), ("world", 2)])),
            LedgerCommand::Post(legs(&[("a", -5), ("b", 5)])),
        ),
        ("posted", reverse(scene.transfer), reverse(scene.hold)),
        ("posted", convert("a", "e", 100), convert("a", "e", 101)),
    ]
}

/// All rows with money or names.
async fn everything(store: &SharedStore) -> (usize, Vec<i64>) {
    let journal = journal(store).await;
    let mut commits = 0;
    loop {
        let page = store.feed(counterfoil_store::Position(commits), 1_000).await.unwrap();
        if page.is_empty() {
            break;
        }
        commits += u64::try_from(page.len()).unwrap();
    }
    (usize::try_from(commits).unwrap(), journal.iter().map(|transaction| transaction.id.to_i64()).collect())
}

#[tokio::test(start_paused = true)]
async fn every_ledger_command_is_executed_once_and_answered_with_the_same_bytes() {
    let count = acts(&scene().await).len();
    for number in 0..count {
        let scene = scene().await;
        let (word, act, other) = acts(&scene).remove(number);
        let first = answer(&execute(&scene.engine, "k", act.clone()).await);
        assert!(first.1.starts_with(word) && !first.2, "{first:?}");
        let after = everything(&scene.store).await;
        // From the cache, from the store, and by another process.
        let again = answer(&execute(&scene.engine, "k", act.clone()).await);
        let stranger = engine(&scene.store.another(), &Provider::default()).await;
        let elsewhere = answer(&execute(&stranger, "k", act.clone()).await);
        assert_eq!((&again, again.2), (&elsewhere, true));
        assert_eq!((first.0, &first.1), (again.0, &again.1));
        for engine in [&scene.engine, &stranger] {
            assert_eq!(execute(engine, "k", other.clone()).await, Submitted::Mismatch, "{act:?}");
        }
        let slot = 1;
        assert_eq!(everything(&scene.store).await, (after.0 + slot, after.1), "{act:?} left traces");
        verified(&scene.store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_belongs_to_its_tenant() {
    let scene = scene().await;
    executed(&scene.engine, "k", transfer("a", "b", 10)).await;
    let act = LedgerCommand::Open(plain("a"));
    let other = request_of(TenantId::from_i64(2), "k", format!("{act:?}").as_bytes());
    let (status, body, replayed) = answer(&scene.engine.execute(other, act).await);
    assert!(status == 201 && body.starts_with("opened") && !replayed, "the other tenant has no `a` either");
    verified(&scene.store).await;
}

#[tokio::test(start_paused = true)]
async fn refusals_are_stored_and_replayed() {
    type Refused = (&'static str, fn(&Scene) -> LedgerCommand);
    let refusals: [Refused; 9] = [
        ("insufficient_funds", |_| transfer("a", "world", 1_000)),
        ("insufficient_funds", |_| hold("a", "world", 1_000)),
        ("insufficient_funds", |_| convert("a", "e", 1_000)),
        ("cap_exceeded", |_| transfer("world", "b", 601)),
        ("cap_exceeded", |_| LedgerCommand::Post(legs(&[("world", -601), ("b", 601)]))),
        ("account_exists", |_| LedgerCommand::Open(plain("a"))),
        ("asset_exists", |_| define("USD")),
        ("not_reversible", |scene| reverse(scene.hold)),
        ("hold_ended", |scene| void(scene.hold)),
    ];
    for (word, act) in refusals {
        let scene = scene().await;
        let act = act(&scene);
        if word == "hold_ended" {
            executed(&scene.engine, "end", post_hold(scene.hold, None)).await;
        }
        let before = journal(&scene.store).await;
        let first = answer(&execute(&scene.engine, "k", act.clone()).await);
        assert_eq!(
            (first.0, first.1.split_whitespace().next(), first.2),
            (400, Some(word), false),
            "{act:?}"
        );
        // The reason of the refusal is gone, but the answer stays.
        executed(&scene.engine, "more", transfer("world", "a", 5_000)).await;
        let stranger = engine(&scene.store.another(), &Provider::default()).await;
        for engine in [&scene.engine, &stranger] {
            let again = answer(&execute(engine, "k", act.clone()).await);
            assert_eq!((again.0, &again.1, again.2), (400, &first.1, true));
            assert_eq!(execute(engine, "k", transfer("a", "b", 1)).await, Submitted::Mismatch);
        }
        assert_eq!(journal(&scene.store).await.len(), before.len() + 1, "only the deposit was written");
        verified(&scene.store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_request_leaves_no_trace_and_the_key_free() {
    let scene = scene().await;
    let nobody = Post { entries: legs(&[("a", -5), ("nobody", 5)]).entries, metadata: BTreeMap::new() };
    let wrong: Vec<(LedgerCommand, &str)> = vec![
        (transfer("nobody", "b", 1), "/from"),
        (transfer("a", "nobody", 1), "/to"),
        (transfer("a", "a", 1), "/to"),
        (transfer("a", "e", 1), "/currency"),
        (transfer("a", "b", 0), "/amount"),
        (hold_for(&scene.store, "a", "b", 1, 0), "/expires_at"),
        (LedgerCommand::Post(nobody), "/entries/1/account"),
        (LedgerCommand::Post(legs(&[("a", -5), ("b", 4)])), "/entries"),
        (LedgerCommand::Post(legs(&[("a", -5)])), "/entries"),
        (post_hold(scene.hold, Some(101)), "/amount"),
        (convert("a", "b", 10), "/to"),
        (convert("a", "nobody", 10), "/to"),
        (LedgerCommand::Open(plain("chart:payable:USD")), "/code"),
        (LedgerCommand::Open(guarded("upside", Some(10), Some(9))), "/cap"),
        (
            LedgerCommand::Open(counterfoil_core::payments::ledger::Open {
                asset: asset("NOPE"),
                ..plain("new")
            }),
            "/asset",
        ),
    ];
    for (number, (act, place)) in wrong.into_iter().enumerate() {
        let key = format!("k{number}");
        let Submitted::Invalid(flaws) = execute(&scene.engine, &key, act.clone()).await else {
            panic!("{act:?} fits");
        };
        assert_eq!(flaws.first().map(|flaw| flaw.pointer.as_str()), Some(place), "{act:?}");
        let claim = RowKey::Claim(TENANT, request(&key, &act).claim);
        assert_eq!(scene.store.read(vec![claim]).await.unwrap(), [None]);
        assert_eq!(executed(&scene.engine, &key, transfer("a", "b", 1)).await.0, 201);
    }
    verified(&scene.store).await;
}

#[tokio::test(start_paused = true)]
async fn a_transfer_without_a_hold_cannot_be_ended() {
    let scene = scene().await;
    let (status, _) = executed(&scene.engine, "k", void(scene.transfer)).await;
    assert_eq!(status, 400, "refused for good");
    verified(&scene.store).await;
}

#[tokio::test(start_paused = true)]
async fn missing_resources_and_those_of_another_tenant_are_not_found() {
    let scene = scene().await;
    let absent = [post_hold(1, None), void(1), reverse(1), reshard("nobody", 3)];
    for act in absent {
        assert_eq!(execute(&scene.engine, "k", act.clone()).await, Submitted::NotFound, "{act:?}");
    }
    for act in [void(scene.hold), void(scene.transfer), reverse(scene.transfer), reshard("a", 3)] {
        let theirs = request_of(TenantId::from_i64(2), "k", b"");
        assert_eq!(scene.engine.execute(theirs, act.clone()).await, Submitted::NotFound, "{act:?}");
    }
    let theirs = request_of(TenantId::from_i64(2), "k", b"");
    let id = account(&scene.engine, "a").await.id;
    let mut order = order("a", "b", 1);
    order.from = counterfoil_core::payments::ledger::AccountSelector::Id(id);
    let answer = scene.engine.execute(theirs, LedgerCommand::Transfer(order)).await;
    assert!(matches!(answer, Submitted::Invalid(_)), "another tenant's account is an absent one: {answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_used_key_answers_before_an_invalid_request_is_refused() {
    let scene = scene().await;
    let first = executed(&scene.engine, "k", transfer("a", "b", 10)).await;
    let stranger = engine(&scene.store.another(), &Provider::default()).await;
    for engine in [&scene.engine, &stranger] {
        assert_eq!(execute(engine, "k", transfer("nobody", "b", 10)).await, Submitted::Mismatch);
        assert_eq!(execute(engine, "k", reverse(1)).await, Submitted::Mismatch);
        let used = bulk(engine, "k", &[Item::Transfer(order("a", "b", 1))]).await;
        assert_eq!(used, Submitted::Mismatch);
        assert_eq!(charge(engine, "k", 10).await, Submitted::Mismatch);
    }
    assert_eq!(answer(&execute(&stranger, "k", transfer("a", "b", 10)).await).1, first.1);
    // A hold with a passed deadline could not be created now, but its key still has the answer.
    let act = hold_for(&scene.store, "a", "b", 1, 2);
    let held = executed(&scene.engine, "h", act.clone()).await;
    seconds(10).await;
    assert_eq!(answer(&execute(&stranger, "h", act).await).1, held.1);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_free_again_after_its_tombstone() {
    let scene = scene().await;
    let [done, refused] = [transfer("a", "b", 10), transfer("a", "b", 100_000)];
    let first = executed(&scene.engine, "done", done.clone()).await;
    executed(&scene.engine, "refused", refused.clone()).await;
    seconds(620).await;
    for (key, act) in [("done", &done), ("refused", &refused)] {
        assert!(matches!(execute(&scene.engine, key, act.clone()).await, Submitted::Expired { .. }));
        assert_eq!(execute(&scene.engine, key, transfer("b", "a", 1)).await, Submitted::Mismatch);
        assert_eq!(execute(&scene.engine, key, transfer("nobody", "a", 1)).await, Submitted::Mismatch);
    }
    seconds(600).await;
    let again = executed(&scene.engine, "done", done).await;
    assert_ne!(again.1, first.1, "a new transfer");
    assert_eq!(executed(&scene.engine, "refused", transfer("b", "a", 1)).await.0, 201);
    assert_eq!(posted(&scene.engine, "b").await, 200 + 10 + 10 - 1);
    verified(&scene.store).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_is_claimed_again_before_the_sweeper_runs() {
    // A window shorter than the sweeper's interval of five seconds.
    let store = SharedStore::new();
    let mut policy = policy();
    policy.windows.replay = counterfoil_core::types::time::Span::from_ms(100);
    policy.windows.tombstone = counterfoil_core::types::time::Span::from_ms(100);
    let engine = engine_with(&store, &Provider::default(), policy).await;
    funded(&engine, &[(guarded("a", Some(0), None), 100)]).await;
    executed(&engine, "k", transfer("a", "world", 10)).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let before = claim(&store, "k").await;
    assert!(matches!(before.state, ClaimState::Completed(_)), "not swept yet");
    assert!(matches!(execute(&engine, "k", transfer("nobody", "world", 10)).await, Submitted::Invalid(_)));
    assert_eq!(
        executed(&engine, "k", transfer("a", "world", 1_000)).await.0,
        400,
        "refused under the free key"
    );
    let after = claim(&store, "k").await;
    assert!(after.fence > before.fence && matches!(after.state, ClaimState::FailedTerminal(_)));
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(answer(&bulk(&engine, "k", &[Item::Transfer(order("a", "world", 20))]).await).0, 200);
    assert_eq!(posted(&engine, "a").await, 70);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_engine_replays_and_takes_nothing_new() {
    let scene = scene().await;
    let first = executed(&scene.engine, "k", transfer("a", "b", 10)).await;
    let many = [Item::Transfer(order("a", "b", 1))];
    let bulked = answer(&bulk(&scene.engine, "many", &many).await);
    let closed = engine(&scene.store.another(), &Provider::default()).await;
    closed.close();
    assert_eq!(answer(&execute(&closed, "k", transfer("a", "b", 10)).await).1, first.1);
    assert_eq!(answer(&bulk(&closed, "many", &many).await).1, bulked.1);
    assert_eq!(execute(&closed, "new", transfer("a", "b", 10)).await, Submitted::Draining);
    assert_eq!(bulk(&closed, "newer", &many).await, Submitted::Draining);
}

#[tokio::test(start_paused = true)]
async fn a_timeline_is_returned_in_order() {
    let scene = scene().await;
    for turn in 0..20 {
        let held = number(&executed(&scene.engine, &format!("h{turn}"), hold("a", "b", 1)).await.1);
        executed(&scene.engine, &format!("e{turn}"), post_hold(held, None)).await;
        let records = scene
            .engine
            .timeline(TENANT, counterfoil_core::types::id::SubjectId::from_i64(held), None, 10)
            .await
            .unwrap()
            .unwrap();
        let words: Vec<&str> =
            records.iter().filter_map(|record| record.detail.split("kind=").nth(1)).collect();
        assert_eq!(words, ["held", "hold_posted"], "within one millisecond too");
    }
}

/// A claim's row names its request.
#[tokio::test(start_paused = true)]
async fn a_claim_names_what_it_made() {
    let scene = scene().await;
    let made = number(&executed(&scene.engine, "k", transfer("a", "b", 10)).await.1);
    let row = scene.store.read(vec![RowKey::Claim(TENANT, request("k", &()).claim)]).await.unwrap().remove(0);
    let Some(Row::Claim(claim)) = row else { panic!("no claim") };
    assert_eq!((claim.subject.to_i64(), claim.makes.name()), (made, "transfer"));
}
