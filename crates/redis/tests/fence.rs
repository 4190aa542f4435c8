//! The fence on a healthy server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_core::types::time::Span;
use counterfoil_gateway::fence::{Fence, FenceFailure, HeldByAnother, Token};
use counterfoil_redis::Redis;
use counterfoil_testkit::redis::Server;
use std::sync::atomic::Ordering;
use support::{LONG, ONE, PATIENT, TWO, client, eventually, fences, raw};

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_processes_enters() {
    let server = Server::start(&[]).unwrap();
    let processes: Vec<_> = (0..4).map(|_| client(&server.url(), PATIENT)).collect();
    let takes = (0..64_u128).map(|number| {
        let redis = processes[usize::try_from(number).unwrap() % processes.len()].clone();
        tokio::spawn(async move { redis.take("ch_1", Token::new(number), LONG).await.unwrap() })
    });
    let mut entered = 0;
    for take in takes.collect::<Vec<_>>() {
        entered += usize::from(take.await.unwrap());
    }
    assert_eq!(entered, 1);
    assert_eq!(processes[0].take("ch_2", ONE, LONG).await, Ok(true), "another payment is another fence");
}

#[tokio::test]
async fn a_foreign_token_renews_and_releases_nothing() {
    let server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), PATIENT);
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(true));
    assert_eq!(redis.release("ch_1", TWO).await, Ok(false));
    assert_eq!(redis.renew("ch_1", TWO, LONG).await, Ok(false));
    assert_eq!(redis.take("ch_1", TWO, LONG).await, Ok(false));
    assert_eq!(redis.release("ch_1", ONE).await, Ok(true));
    assert_eq!(redis.release("ch_1", ONE).await, Ok(false), "it was given back already");
    assert_eq!(redis.take("ch_1", TWO, LONG).await, Ok(true));
}

#[tokio::test]
async fn an_expired_hold_can_be_taken_and_its_old_holder_has_lost_it() {
    let server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), PATIENT);
    assert_eq!(redis.take("ch_1", ONE, Span::from_ms(50)).await, Ok(true));
    eventually(Ok(true), || redis.take("ch_1", TWO, LONG)).await;
    assert_eq!(redis.renew("ch_1", ONE, LONG).await, Ok(false));
    assert_eq!(redis.release("ch_1", ONE).await, Ok(false));
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(false), "the second holder still has it");
}

#[tokio::test]
async fn renewing_and_taking_again_extend_the_hold() {
    let server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), PATIENT);
    let left = || raw::<i64>(&server.url(), &[b"PTTL", b"counterfoil:fence:ch_1"]);
    assert_eq!(redis.take("ch_1", ONE, Span::from_ms(60_000)).await, Ok(true));
    assert!((1..=60_000).contains(&left()), "{}", left());
    assert_eq!(redis.renew("ch_1", ONE, LONG).await, Ok(true));
    assert!((60_001..=600_000).contains(&left()), "{}", left());
    assert_eq!(redis.take("ch_1", ONE, Span::from_ms(60_000)).await, Ok(true), "the holder may ask again");
    assert!((1..=60_000).contains(&left()), "{}", left());
}

#[tokio::test]
async fn a_foreign_value_under_one_name_fails_that_name_alone() {
    let server = Server::start(&[]).unwrap();
    let redis = client(&server.url(), PATIENT);
    let _: i64 = raw(&server.url(), &[b"LPUSH", b"counterfoil:fence:ch_1", b"x"]);
    let answer = redis.take("ch_1", ONE, LONG).await;
    assert!(matches!(&answer, Err(FenceFailure::Refused(why)) if why.contains("WRONGTYPE")), "{answer:?}");
    assert_eq!(redis.take("ch_2", ONE, LONG).await, Ok(true), "the server is not left alone for it");
}

#[tokio::test]
async fn a_full_server_stops_nobody() {
    let server = Server::start(&[("maxmemory", "1"), ("maxmemory-policy", "noeviction")]).unwrap();
    let (fences, bypasses) = fences(&client(&server.url(), PATIENT), LONG);
    for name in ["ch_1", "ch_2"] {
        fences.enter(name, ONE).await.unwrap().leave().await;
    }
    assert_eq!(bypasses.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn operations_on_one_payment_exclude_each_other_until_one_leaves() {
    let server = Server::start(&[]).unwrap();
    let (here, bypasses_here) = fences(&client(&server.url(), PATIENT), LONG);
    let (there, bypasses_there) = fences(&client(&server.url(), PATIENT), LONG);
    let mut capture = here.enter("ch_1", ONE).await.unwrap();
    assert_eq!(there.enter("ch_1", TWO).await.unwrap_err(), HeldByAnother);
    assert!(capture.renew().await);
    assert_eq!(there.enter("ch_1", TWO).await.unwrap_err(), HeldByAnother);
    capture.leave().await;
    there.enter("ch_1", TWO).await.unwrap().leave().await;
    assert_eq!(bypasses_here.load(Ordering::SeqCst) + bypasses_there.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_emptied_server_gives_the_hold_back_to_its_holder() {
    let server = Server::start(&[]).unwrap();
    let (fences, _) = fences(&client(&server.url(), PATIENT), LONG);
    let mut pass = fences.enter("ch_1", ONE).await.unwrap();
    server.say(&["FLUSHALL"]).unwrap();
    assert!(pass.renew().await);
    assert_eq!(fences.enter("ch_1", TWO).await.unwrap_err(), HeldByAnother);
    pass.leave().await;
}

#[tokio::test]
async fn a_password_and_a_database_are_used() {
    let server = Server::start(&[("requirepass", "a#b")]).unwrap();
    let unknown = client(&server.url(), PATIENT);
    let answer = unknown.take("ch_1", ONE, LONG).await;
    assert!(matches!(&answer, Err(FenceFailure::Refused(why)) if why.contains("NOAUTH")), "{answer:?}");
    let wrong = client(&server.url().replace("redis://", "redis://:no@"), PATIENT);
    let answer = wrong.take("ch_1", ONE, LONG).await;
    assert!(matches!(answer, Err(FenceFailure::Unreachable(_))), "{answer:?}");

    let url = format!("{}/3", server.url().replace("redis://", "redis://:a%23b@"));
    let redis = Redis::new(&url, PATIENT).unwrap();
    assert_eq!(redis.take("ch_1", ONE, LONG).await, Ok(true));
    assert_eq!(raw::<i64>(&url, &[b"EXISTS", b"counterfoil:fence:ch_1"]), 1);
    let first = url.replace("/3", "/0");
    assert_eq!(raw::<i64>(&first, &[b"EXISTS", b"counterfoil:fence:ch_1"]), 0);
}
