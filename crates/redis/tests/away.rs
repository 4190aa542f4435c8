//! A server that is down, hangs, comes back or is replaced: every caller goes on within one
//! timeout.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_core::types::time::Span;
use counterfoil_gateway::fence::{Fence, FenceFailure, HeldByAnother};
use counterfoil_testkit::redis::{Relay, Server};
use std::sync::atomic::Ordering;
use support::{LONG, ONE, PATIENT, SHORT, TWO, client, eventually, fences};

fn unheard() -> FenceFailure {
    FenceFailure::Unheard("no answer within 200 ms".to_owned())
}

#[tokio::test]
async fn an_absent_server_stops_nobody_and_is_used_once_it_starts() {
    let mut server = Server::start(&[]).unwrap();
    server.kill().unwrap();
    let redis = client(&server.url(), PATIENT);
    let (fences, bypasses) = fences(&redis, LONG);
    let answer = redis.take("ch_1", ONE, LONG).await;
    assert!(matches!(answer, Err(FenceFailure::Unreachable(_))), "{answer:?}");
    eventually(Err(FenceFailure::Resting), || redis.take("ch_1", ONE, LONG)).await;
    fences.enter("ch_1", ONE).await.unwrap().leave().await;
    fences.enter("ch_1", TWO).await.unwrap().leave().await;
    assert_eq!(bypasses.load(Ordering::SeqCst), 2);
    server.restart().unwrap();
    eventually(Ok(true), || redis.take("ch_1", ONE, LONG)).await;
}

#[tokio::test]
async fn a_killed_server_stops_nobody_and_works_again_when_it_is_back() {
    let mut server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), PATIENT);
    let (fences, bypasses) = fences(&redis, LONG);
    let mut pass = fences.enter("ch_1", ONE).await.unwrap();
    server.kill().unwrap();
    assert!(pass.renew().await, "the work goes on");
    fences.enter("ch_1", TWO).await.unwrap().leave().await;
    pass.leave().await;
    assert_eq!(bypasses.load(Ordering::SeqCst), 2, "each pass is counted once");
    server.restart().unwrap();
    eventually(Ok(true), || redis.take("ch_2", ONE, LONG)).await;
    assert_eq!(fences.enter("ch_2", TWO).await.unwrap_err(), HeldByAnother);
    assert_eq!(bypasses.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_connection_that_broke_while_idle_is_replaced_unnoticed() {
    let mut server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), PATIENT);
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(true));
    server.restart().unwrap();
    assert_eq!(redis.take("ch_2", ONE, LONG).await, Ok(true));
}

#[tokio::test]
async fn a_hanging_server_costs_one_timeout_per_cooldown() {
    let server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), SHORT);
    let (fences, bypasses) = fences(&redis, Span::from_ms(100));
    eventually(Ok(true), || redis.take("ch_0", ONE, LONG)).await;
    server.pause().unwrap();
    assert_eq!(redis.take("ch_1", ONE, Span::from_ms(100)).await, Err(unheard()));
    eventually(Err(FenceFailure::Resting), || redis.take("ch_1", ONE, Span::from_ms(100))).await;
    fences.enter("ch_1", TWO).await.unwrap().leave().await;
    assert_eq!(bypasses.load(Ordering::SeqCst), 1);
    server.resume().unwrap();
    // An unanswered take may still be executed when the server wakes; its TTL ends it.
    eventually(Ok(true), || redis.take("ch_1", TWO, LONG)).await;
    eventually(Ok(false), || redis.take("ch_0", TWO, LONG)).await;
}

#[tokio::test]
async fn a_server_that_hangs_before_the_first_connection_counts_as_unreachable() {
    let server = Server::start(&[]).unwrap();
    server.pause().unwrap();
    let redis = client(&server.url(), SHORT);
    // The kernel accepts the connection, so connecting may succeed before the server stays silent.
    let answer = redis.take("ch_1", ONE, LONG).await;
    assert!(matches!(answer, Err(FenceFailure::Unheard(_) | FenceFailure::Unreachable(_))), "{answer:?}");
    server.resume().unwrap();
    eventually(Ok(true), || redis.take("ch_2", ONE, LONG)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_the_hold_stands_on_the_promoted_replica() {
    let primary = Server::start(&[]).unwrap();
    let replica = Server::replica_of(&primary).unwrap();
    let relay = Relay::to(primary.port()).await.unwrap();
    let redis = client(&format!("redis://127.0.0.1:{}", relay.port()), PATIENT);
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(true));
    let has_hold = async || replica.say(&["EXISTS", "counterfoil:fence:ch_1"]).unwrap();
    eventually("1".to_owned(), has_hold).await;

    primary.kill().unwrap();
    replica.promote().unwrap();
    relay.turn_to(replica.port());
    eventually(Ok(false), || redis.take("ch_1", TWO, LONG)).await;
    assert_eq!(redis.renew("ch_1", ONE, LONG).await, Ok(true));
    assert_eq!(redis.release("ch_1", ONE).await, Ok(true));
    assert_eq!(redis.take("ch_1", TWO, LONG).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_the_replica_never_saw_lets_a_second_holder_in_and_the_first_goes_on() {
    let primary = Server::start(&[]).unwrap();
    let replica = Server::replica_of(&primary).unwrap();
    let relay = Relay::to(primary.port()).await.unwrap();
    let redis = client(&format!("redis://127.0.0.1:{}", relay.port()), PATIENT);
    let (fences, bypasses) = fences(&redis, LONG);
    // Replication is asynchronous: here it stops before the hold is taken.
    replica.promote().unwrap();
    let mut first = fences.enter("ch_1", ONE).await.unwrap();
    primary.kill().unwrap();
    relay.turn_to(replica.port());
    eventually(Ok(true), || redis.take("ch_1", TWO, LONG)).await;
    assert!(
        !first.renew().await,
        "it learns that another holder is in, and goes on: the claim's fence decides"
    );
    first.leave().await;
    assert_eq!(redis.renew("ch_1", TWO, LONG).await, Ok(true), "the first took nothing from the second");
    assert_eq!(bypasses.load(Ordering::SeqCst), 0, "the fence was asked each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_became_a_replica_stops_nobody_and_its_successor_is_found() {
    let old = Server::start(&[]).unwrap();
    let new = Server::replica_of(&old).unwrap();
    let relay = Relay::to(old.port()).await.unwrap();
    let redis = client(&format!("redis://127.0.0.1:{}", relay.port()), PATIENT);
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(true));
    new.promote().unwrap();
    old.say(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]).unwrap();
    let answer = redis.take("ch_2", ONE, LONG).await;
    assert!(
        matches!(&answer, Err(FenceFailure::Refused(why)) if why.contains("read only replica")),
        "{answer:?}"
    );
    relay.turn_to(new.port());
    eventually(Ok(true), || redis.take("ch_2", ONE, LONG)).await;
}
