//! Shared answers on a real server: found by other processes, never wrong, harmless when lost.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::time::Span;
use counterfoil_engine::answers::{SharedAnswers, SharedCache};
use counterfoil_store::conformance::fixtures::{NOW, at, claim_in, settled};
use counterfoil_testkit::redis::Server;
use std::sync::Arc;
use std::time::Duration;
use support::{PATIENT, SHORT, client, eventually, raw};

/// The replay window of all answers here: an hour.
const WINDOW_MS: u64 = 3_600_000;

fn answers(url: &str, timeout: Duration) -> SharedAnswers {
    SharedAnswers::new(client(url, timeout) as Arc<dyn SharedCache>, MacKey::new(&[7; 32]))
}

fn claim(number: i64) -> Claim {
    claim_in(number, ClaimState::Completed(settled(b"{\"paid\":true}", at(WINDOW_MS))))
}

/// Stores the claim's answer and returns its Redis key.
async fn keep(url: &str, answers: &SharedAnswers, claim: &Claim) -> Vec<u8> {
    let keys = || raw::<Vec<Vec<u8>>>(url, &[b"KEYS", b"*"]);
    let before = keys();
    answers.keep(claim, NOW).await;
    keys().into_iter().find(|key| !before.contains(key)).expect("something was kept")
}

#[tokio::test]
async fn an_altered_cut_or_swollen_entry_is_a_miss() {
    let server = Server::start(&[]).unwrap();
    let url = server.url();
    let answers = answers(&url, PATIENT);
    let key = keep(&url, &answers, &claim(1)).await;
    let entry: Vec<u8> = raw(&url, &[b"GET", &key]);
    let put = |bytes: &[u8]| raw::<()>(&url, &[b"SET", &key, bytes]);
    for at in [0, 31, 32, entry.len() / 2, entry.len() - 1] {
        let mut flipped = entry.clone();
        flipped[at] ^= 1;
        put(&flipped);
        assert_eq!(answers.find(claim(1).id).await, None, "a bit of byte {at}");
    }
    for poison in [Vec::new(), entry[..31].to_vec(), entry[..entry.len() - 1].to_vec(), vec![0; 1 << 20]] {
        put(&poison);
        assert_eq!(answers.find(claim(1).id).await, None, "{} bytes", poison.len());
    }
    put(&entry);
    assert_eq!(answers.find(claim(1).id).await, Some(claim(1)));
}

#[tokio::test]
async fn another_claims_entry_is_a_miss() {
    let server = Server::start(&[]).unwrap();
    let url = server.url();
    let answers = answers(&url, PATIENT);
    let one = keep(&url, &answers, &claim(1)).await;
    let two = keep(&url, &answers, &claim(2)).await;
    assert_eq!(raw::<i64>(&url, &[b"COPY", &one, &two, b"REPLACE"]), 1);
    assert_eq!(answers.find(claim(2).id).await, None);
    assert_eq!(answers.find(claim(1).id).await, Some(claim(1)));
}

#[tokio::test]
async fn a_value_of_another_type_is_a_miss_and_harms_no_other_entry() {
    let server = Server::start(&[]).unwrap();
    let url = server.url();
    let answers = answers(&url, PATIENT);
    let one = keep(&url, &answers, &claim(1)).await;
    keep(&url, &answers, &claim(2)).await;
    let _: i64 = raw(&url, &[b"DEL", &one]);
    let _: i64 = raw(&url, &[b"LPUSH", &one, b"x"]);
    assert_eq!(answers.find(claim(1).id).await, None);
    assert_eq!(answers.find(claim(2).id).await, Some(claim(2)));
    answers.keep(&claim(1), NOW).await;
    assert_eq!(answers.find(claim(1).id).await, Some(claim(1)), "what is kept takes its place");
}

#[tokio::test]
async fn an_answer_is_found_by_other_processes_until_its_window_ends() {
    let server = Server::start(&[]).unwrap();
    let (here, there) = (answers(&server.url(), PATIENT), answers(&server.url(), PATIENT));
    assert_eq!(there.find(claim(1).id).await, None);
    let key = keep(&server.url(), &here, &claim(1)).await;
    assert_eq!(there.find(claim(1).id).await, Some(claim(1)));
    let left: i64 = raw(&server.url(), &[b"PTTL", &key]);
    assert!((1..=i64::try_from(WINDOW_MS).unwrap()).contains(&left), "{left}");
    here.keep(&claim(2), at(WINDOW_MS).minus(Span::from_ms(1))).await;
    eventually(None, || there.find(claim(2).id)).await;
}

#[tokio::test]
async fn endless_windows_are_cut_to_the_servers_limits() {
    let server = Server::start(&[]).unwrap();
    let answers = answers(&server.url(), PATIENT);
    let endless =
        claim_in(1, ClaimState::Completed(settled(b"{}", counterfoil_core::types::time::Time::MAX)));
    answers.keep(&endless, NOW).await;
    assert_eq!(answers.find(endless.id).await, Some(endless));
}

#[tokio::test]
async fn an_emptied_server_is_a_miss() {
    let server = Server::start(&[]).unwrap();
    let answers = answers(&server.url(), PATIENT);
    answers.keep(&claim(1), NOW).await;
    server.say(&["FLUSHALL"]).unwrap();
    assert_eq!(answers.find(claim(1).id).await, None);
}

#[tokio::test]
async fn a_server_that_hangs_or_is_gone_is_a_miss_and_is_found_again() {
    let mut server = Server::start(&[]).unwrap();
    let answers = answers(&server.url(), SHORT);
    let there = async || {
        answers.keep(&claim(1), NOW).await;
        answers.find(claim(1).id).await
    };
    eventually(Some(claim(1)), there).await;
    server.pause().unwrap();
    assert_eq!(answers.find(claim(1).id).await, None);
    answers.keep(&claim(2), NOW).await;
    server.resume().unwrap();
    eventually(Some(claim(1)), || answers.find(claim(1).id)).await;
    server.kill().unwrap();
    assert_eq!(answers.find(claim(1).id).await, None);
    server.restart().unwrap();
    eventually(Some(claim(1)), there).await;
}
