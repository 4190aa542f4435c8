//! Charges in the ledger: captured charges are posted once, with the answer; others are not.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::ledger::chart::ROLES;
use counterfoil_core::ledger::transaction::TransactionKind;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::ledger::{LedgerCommand, Open};
use counterfoil_core::payments::provider::{Approval, ProviderOutcome, Stands};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::{RowKey, Scan, Store};
use std::time::Duration;

fn crediting(key: &str, amount: i64, destination: AccountId) -> CreateCharge {
    let mut command = command(key, amount);
    command.wanted.destination = Some(destination);
    command
}

async fn accounts(store: &SharedStore) -> usize {
    store.scan(Scan::Accounts { after: None, limit: 1_000 }).await.unwrap().len()
}

/// The balances of the chart's accounts, by role.
async fn chart(engine: &TestEngine, role: &str) -> i128 {
    posted(engine, &format!("chart:{role}:USD")).await
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_cannot_be_credited_is_refused_before_anything_happens() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    charge(&engine, "first", 5).await;
    let euros = open(&engine, Open { asset: asset("EUR"), ..plain("euros") }).await;
    let theirs = engine
        .execute(request_of(TenantId::from_i64(2), "k", b""), LedgerCommand::Open(plain("theirs")))
        .await;
    let theirs = AccountId::from_i64(number(&answer(&theirs).1));
    let receivable = account(&engine, "chart:receivable:USD").await.id;
    for (turn, destination) in [euros, theirs, AccountId::from_i64(77), receivable].into_iter().enumerate() {
        let command = crediting(&format!("k{turn}"), 1_250, destination);
        let claim = RowKey::Claim(TENANT, command.request.claim);
        let Submitted::Invalid(flaws) = engine.submit(command).await else { panic!("{turn} was taken") };
        assert_eq!(flaws[0].pointer, "/destination");
        assert_eq!(store.read(vec![claim]).await.unwrap(), [None], "the key is free");
    }
    assert_eq!(provider.keys().len(), 1, "only the first was sent");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_captured_charge_credits_its_destination_and_debits_the_receivable() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    let wallet = open(&engine, guarded("wallet", Some(0), Some(2_000))).await;
    assert_eq!(answer(&engine.submit(crediting("k", 1_250, wallet)).await).0, 201);
    assert_eq!(answer(&charge(&engine, "main", 100).await).0, 201);
    assert_eq!(posted(&engine, "wallet").await, 1_250);
    assert_eq!((chart(&engine, "payable").await, chart(&engine, "receivable").await), (100, 1_350));
    let kinds: Vec<TransactionKind> =
        journal(&store).await.into_iter().map(|transaction| transaction.kind).collect();
    let charges = [claim(&store, "k").await.subject, claim(&store, "main").await.subject];
    assert_eq!(kinds, charges.map(|charge| TransactionKind::Charge(charge.into())));
    // A refund moves the money back.
    let undone = executed(&engine, "undo", reverse(charges[0].to_i64())).await;
    assert!(undone.1.starts_with("not_reversible"));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_decline_and_an_authorization_post_nothing() {
    let authorized = ProviderOutcome::Approved(Approval {
        reference: "pi_held".into(),
        stands: Stands::Held,
        amount_minor: 1_250,
        asset: Some(asset("USD")),
        payment: None,
    });
    let provider = Provider::new(&[Script::Decline, Script::Answer(authorized)]);
    let store = SharedStore::new();
    let engine = engine(&store, &provider).await;
    assert_eq!(answer(&charge(&engine, "declined", 1_250).await).0, 402);
    let mut command = command("held", 1_250);
    command.wanted.capture = false;
    let (status, body, _) = answer(&engine.submit(command).await);
    assert!(status == 201 && body.contains("requires_capture"), "{body}");
    assert_eq!(journal(&store).await, []);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn money_whose_account_is_full_goes_to_suspense() {
    for shards in [1, 16] {
        let (store, provider) = (SharedStore::new(), Provider::default());
        let engine = engine(&store, &provider).await;
        let wallet = open(&engine, Open { shards, ..guarded("wallet", None, Some(2_000)) }).await;
        for (key, amount) in [("fits", 1_250), ("does not", 1_250), ("fits too", 750), ("full", 1)] {
            let (status, _, _) = answer(&engine.submit(crediting(key, amount, wallet)).await);
            assert_eq!(status, 201, "the provider has taken it, so it is done");
        }
        assert_eq!(posted(&engine, "wallet").await, 2_000);
        assert_eq!((chart(&engine, "suspense").await, chart(&engine, "receivable").await), (1_251, 3_251));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_chart_is_opened_once_by_concurrent_charges() {
    for seed in 1..=10 {
        let (store, provider) = (SharedStore::new(), Provider::default());
        let engines =
            [engine(&store.jumpy(seed), &provider).await, engine(&store.jumpy(seed + 100), &provider).await];
        let charges: Vec<_> = (0..20)
            .map(|turn| {
                let engine = engines[turn % 2].clone();
                tokio::spawn(async move { answer(&charge(&engine, &format!("k{turn}"), 10).await).0 })
            })
            .collect();
        for charge in charges {
            assert_eq!(charge.await.unwrap(), 201);
        }
        assert_eq!(accounts(&store).await, ROLES.len(), "seed {seed}");
        assert_eq!((chart(&engines[0], "payable").await, provider.effects()), (200, 20));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_currency_has_its_own_chart_and_so_has_each_tenant() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 10).await;
    let mut theirs = command("k", 20);
    theirs.request = request_of(TenantId::from_i64(2), "k", b"20");
    assert_eq!(answer(&engine.submit(theirs).await).0, 201);
    assert_eq!(accounts(&store).await, 2 * ROLES.len());
    assert_eq!(chart(&engine, "payable").await, 10, "not the other tenant's twenty");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_charges_on_one_guarded_account_are_all_posted() {
    for (shards, seed) in [(1, 1), (16, 2)] {
        let (store, provider) = (charted().await, Provider::default());
        let engine = engine(&store.jumpy(seed), &provider).await;
        let wallet = open(&engine, Open { shards, ..guarded("wallet", Some(0), Some(1_000)) }).await;
        let charges: Vec<_> = (0..150)
            .map(|turn| {
                let engine = engine.clone();
                tokio::spawn(async move {
                    answer(&engine.submit(crediting(&format!("k{turn}"), 10, wallet)).await).0
                })
            })
            .collect();
        for charge in charges {
            assert_eq!(charge.await.unwrap(), 201);
        }
        assert_eq!((posted(&engine, "wallet").await, chart(&engine, "suspense").await), (1_000, 500));
        assert_eq!(chart(&engine, "receivable").await, 1_500);
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_the_call_and_the_answer_posts_once() {
    // The process dies after the commit of the claim, or after that of the answer.
    for commits in [1, 2] {
        let store = charted().await;
        let provider = Provider::new(&[Script::Slow(Duration::from_secs(2))]);
        let mortal = store.another();
        let first = engine(&mortal, &provider).await;
        let wallet = open(&first, guarded("wallet", Some(0), Some(5_000))).await;
        seconds(1).await;
        mortal.dies_after(commits);
        let client = tokio::spawn(async move { first.submit(crediting("k", 1_250, wallet)).await });
        seconds(1).await;
        assert_eq!(provider.effects(), 1, "the provider was called");
        seconds(10).await;
        assert_eq!(
            journal(&store).await.len(),
            usize::from(commits == 2),
            "dead before its answer, or after"
        );
        let second = engine(&store, &provider).await;
        seconds(40).await;
        let (status, _, replayed) = answer(&second.submit(crediting("k", 1_250, wallet)).await);
        assert_eq!((status, replayed, provider.effects()), (201, true, 1));
        assert_eq!((posted(&second, "wallet").await, journal(&store).await.len()), (1_250, 1));
        client.abort();
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_writer_posts_nothing() {
    let store = charted().await;
    // The first attempt is approved after another process took over and settled a decline.
    let provider = Provider::new(&[Script::Slow(Duration::from_secs(50)), Script::Decline]);
    let first = engine_with(&store, &provider, never_renewing()).await;
    let late = tokio::spawn({
        let first = first.clone();
        async move { charge(&first, "k", 1_250).await }
    });
    seconds(1).await;
    let second = engine(&store, &provider).await;
    seconds(70).await;
    assert_eq!(answer(&late.await.unwrap()).0, 402);
    assert_eq!(journal(&store).await, [], "the answer stays a decline");
    assert_eq!(answer(&charge(&second, "k", 1_250).await).0, 402);
    verified(&store).await;
}
