//! Waiters in one process, commits in another: who is woken, who is not, and what the server is asked to do for it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Custody};
use counterfoil_store::conformance::fixtures::{at, charge, claim, claim_id, claim_in, lease, set, settled};
use counterfoil_store::{ChangeSet, Store};
use counterfoil_store_postgres::PostgresStore;
use counterfoil_testkit::postgres::Database;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use support::{database, open, raw};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// Far more than anything here takes; what ends it is a failure.
const LONG: Duration = Duration::from_secs(20);

/// Two processes on one database, and somebody who hears every word.
struct Scene {
    worker: Arc<PostgresStore>,
    stranger: PostgresStore,
    ear: Ear,
    database: Database,
}

struct Ear {
    client: Client,
    words: mpsc::UnboundedReceiver<String>,
}

impl Ear {
    async fn on(url: &str) -> Ear {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let (reply, words) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(word) = message {
                    let _ = reply.send(word.payload().to_owned());
                }
            }
        });
        client.batch_execute("LISTEN counterfoil_settled").await.unwrap();
        Ear { client, words }
    }

    /// Every word sent so far: words come in the order of their commits, so the last one is our own.
    async fn all(&mut self) -> Vec<String> {
        self.client.batch_execute("NOTIFY counterfoil_settled, 'end'").await.unwrap();
        let mut all = Vec::new();
        loop {
            let word = self.words.recv().await.unwrap();
            if word == "end" {
                return all;
            }
            all.push(word);
        }
    }
}

async fn scene() -> Scene {
    let database = database().await;
    let url = database.url();
    Scene {
        worker: Arc::new(open(&url).await),
        stranger: open(&url).await,
        ear: Ear::on(&url).await,
        database,
    }
}

impl Scene {
    async fn opens(&self, numbers: impl Iterator<Item = i64>) {
        self.commits(numbers.map(|number| set(number).insert(claim(number)).insert(charge(number)))).await;
    }

    async fn settles(&self, numbers: impl Iterator<Item = i64>) {
        self.commits(numbers.map(|number| becoming(number, completed()))).await;
    }

    /// All at once, so that they make groups.
    async fn commits(&self, sets: impl Iterator<Item = ChangeSet>) {
        let mut committing = JoinSet::new();
        for set in sets {
            let worker = Arc::clone(&self.worker);
            committing.spawn(async move { worker.commit(set).await.unwrap() });
        }
        committing.join_all().await;
    }
}

fn completed() -> ClaimState {
    ClaimState::Completed(settled(b"done", at(9)))
}

fn becoming(number: i64, state: ClaimState) -> ChangeSet {
    set(10_000 + number).replace(Claim { revision: 2, ..claim_in(number, state) }, 1)
}

/// A place whose key is locked by now: the first word only says so.
async fn place(store: &PostgresStore, claim: ClaimId) -> impl Future<Output = ()> + Send + use<'_> {
    let first = store.settled_elsewhere(claim).unwrap();
    tokio::time::timeout(LONG, first).await.expect("the key is locked");
    store.settled_elsewhere(claim).unwrap()
}

async fn woken(place: impl Future<Output = ()>) {
    tokio::time::timeout(LONG, place).await.expect("a word comes");
}

async fn is_waiting(place: impl Future<Output = ()> + Unpin) -> bool {
    tokio::time::timeout(Duration::ZERO, place).await.is_err()
}

/// The word for a claim, and its lock's key.
fn word(number: i64) -> String {
    let hex = claim_id(number).digest().hex();
    format!("{:x}", u64::from_str_radix(&hex[..16], 16).unwrap())
}

async fn locks(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Asks until it holds.
async fn until(client: &Client, holds: impl Fn(i64) -> bool) {
    let looking = async {
        while !holds(locks(client).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, looking).await.expect("locks come and go");
}

#[tokio::test]
async fn nothing_is_sent_where_nobody_waits() {
    let mut scene = scene().await;
    scene.opens(1..=5).await;
    scene.settles(1..=4).await;
    let elsewhere = pin!(place(&scene.stranger, claim_id(5)).await);
    scene.worker.commit(set(900).insert(claim_in(6, completed())).insert(charge(6))).await.unwrap();
    assert_eq!(scene.ear.all().await, Vec::<String>::new());
    assert!(is_waiting(elsewhere).await);
}

#[tokio::test]
async fn only_news_is_sent_and_a_renewed_lease_is_none() {
    let mut scene = scene().await;
    scene.opens(1..=6).await;
    let mut places = Vec::new();
    for number in 1..=6 {
        places.push(Box::pin(place(&scene.stranger, claim_id(number)).await));
    }
    let silent = [ClaimState::InFlight(lease(at(8))), ClaimState::Uncertain(Custody::Held(lease(at(8))))];
    for (number, state) in (1..).zip(silent) {
        scene.worker.commit(becoming(number, state)).await.unwrap();
    }
    let news = [
        completed(),
        ClaimState::FailedTerminal(settled(b"no", at(9))),
        ClaimState::FailedRetry { not_before: at(5) },
        ClaimState::Uncertain(Custody::Waiting { not_before: at(5) }),
    ];
    for (number, state) in (3..).zip(news) {
        scene.worker.commit(becoming(number, state)).await.unwrap();
    }
    assert_eq!(scene.ear.all().await, [3, 4, 5, 6].map(word));
    for told in places.split_off(2) {
        woken(told).await;
    }
    for silent in places {
        assert!(is_waiting(silent).await);
    }
}

#[tokio::test]
async fn who_waits_in_another_process_is_woken_by_the_commit() {
    let mut scene = scene().await;
    scene.opens(1..=1).await;
    let place = place(&scene.stranger, claim_id(1)).await;
    scene.settles(1..=1).await;
    woken(place).await;
    assert_eq!(scene.ear.all().await, [word(1)]);
}

#[tokio::test]
async fn many_wait_for_one_key_and_one_word_wakes_them_all() {
    let mut scene = scene().await;
    scene.opens(1..=2).await;
    let first = place(&scene.stranger, claim_id(1)).await;
    let crowd: Vec<_> = (0..200).map(|_| scene.stranger.settled_elsewhere(claim_id(1)).unwrap()).collect();
    let here = place(&scene.worker, claim_id(1)).await;
    let other = Box::pin(place(&scene.stranger, claim_id(2)).await);
    assert_eq!(locks(&raw(&scene.database.url()).await).await, 3, "one lock a key and process");
    scene.settles(1..=1).await;
    woken(first).await;
    woken(here).await;
    for place in crowd {
        woken(place).await;
    }
    assert!(is_waiting(other).await);
    assert_eq!(scene.ear.all().await, [word(1)]);
}

#[tokio::test]
async fn many_keys_are_waited_for_at_once_and_given_up_afterwards() {
    let mut scene = scene().await;
    scene.opens(1..=256).await;
    let all: Vec<_> =
        (1..=256).map(|number| scene.stranger.settled_elsewhere(claim_id(number)).unwrap()).collect();
    assert!(
        scene.stranger.settled_elsewhere(claim_id(257)).is_none(),
        "the server's locks are not for us alone"
    );
    let again: Vec<_> =
        (1..=256).map(|number| scene.stranger.settled_elsewhere(claim_id(number)).unwrap()).collect();
    let client = raw(&scene.database.url()).await;
    until(&client, |locks| locks == 256).await;
    for place in all {
        woken(place).await;
    }
    drop(again);
    let places: Vec<_> =
        (1..=256).map(|number| scene.stranger.settled_elsewhere(claim_id(number)).unwrap()).collect();
    scene.settles(1..=256).await;
    for place in places {
        woken(place).await;
    }
    until(&client, |locks| locks == 0).await;
    let mut words = scene.ear.all().await;
    words.sort_unstable();
    let mut wanted: Vec<String> = (1..=256).map(word).collect();
    wanted.sort_unstable();
    assert_eq!(words, wanted, "each is sent once");
}

#[tokio::test]
async fn nobody_begins_to_wait_unseen_while_a_commit_is_on_its_way() {
    let scene = scene().await;
    scene.opens(1..=2).await;
    // As a committer does that found nobody there.
    let committer = raw(&scene.database.url()).await;
    let key = u64::from_str_radix(&word(1), 16).unwrap().cast_signed();
    let lock = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(({key}::bigint >> 32)::int, ({key}::bigint << 32 >> 32)::int)"
    );
    committer.batch_execute(&lock).await.unwrap();
    let mut late = pin!(scene.stranger.settled_elsewhere(claim_id(1)).unwrap());
    let other = place(&scene.stranger, claim_id(2)).await;
    assert!(is_waiting(&mut late).await, "it has been tried by now, and others are not held up");
    committer.batch_execute("COMMIT").await.unwrap();
    woken(late).await;
    scene.settles(2..=2).await;
    woken(other).await;
}

#[tokio::test]
async fn a_listener_that_was_ended_wakes_everybody_and_comes_back() {
    let scene = scene().await;
    scene.opens(1..=2).await;
    let first = place(&scene.stranger, claim_id(1)).await;
    let client = raw(&scene.database.url()).await;
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(client.query_one(ended, &[]).await.unwrap().get::<_, i64>(0), 1);
    woken(first).await;
    scene.settles(1..=1).await;
    let back = async {
        while scene.stranger.settled_elsewhere(claim_id(2)).is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, back).await.expect("it comes back");
    let second = place(&scene.stranger, claim_id(2)).await;
    scene.settles(2..=2).await;
    woken(second).await;
}

#[tokio::test]
async fn a_store_that_nobody_waits_at_has_no_connection_for_it() {
    let scene = scene().await;
    scene.opens(1..=1).await;
    let client = raw(&scene.database.url()).await;
    let count = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND query LIKE '%advisory%shared%' AND pid <> pg_backend_pid()";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    assert_eq!(count().await, 0);
    drop(place(&scene.stranger, claim_id(1)).await);
    assert_eq!(count().await, 1);
    scene.stranger.close().await;
    until(&client, |locks| locks == 0).await;
}
