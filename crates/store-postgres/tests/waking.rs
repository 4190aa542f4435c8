//! Wake-ups between processes, with the notifications and locks involved.

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

/// A time limit that only a failed test reaches.
const LONG: Duration = Duration::from_secs(20);

/// Two processes on one database, and a listener for all notifications.
struct Scene {
    worker: Arc<PostgresStore>,
    other: PostgresStore,
    listener: Listener,
    database: Database,
}

struct Listener {
    client: Client,
    notifications: mpsc::UnboundedReceiver<String>,
}

impl Listener {
    async fn on(url: &str) -> Listener {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let (sender, notifications) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    let _ = sender.send(notification.payload().to_owned());
                }
            }
        });
        client.batch_execute("LISTEN counterfoil_settled").await.unwrap();
        Listener { client, notifications }
    }

    /// All notifications sent so far. They arrive in commit order, so our own marks the end.
    async fn all(&mut self) -> Vec<String> {
        self.client.batch_execute("NOTIFY counterfoil_settled, 'end'").await.unwrap();
        let mut all = Vec::new();
        loop {
            let notification = self.notifications.recv().await.unwrap();
            if notification == "end" {
                return all;
            }
            all.push(notification);
        }
    }
}

async fn scene() -> Scene {
    let database = database().await;
    let url = database.url();
    Scene {
        worker: Arc::new(open(&url).await),
        other: open(&url).await,
        listener: Listener::on(&url).await,
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

    /// Commits the sets concurrently, so that they form groups.
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

/// A waiter whose key is locked: the first wake-up only signals the lock.
async fn locked_waiter(store: &PostgresStore, claim: ClaimId) -> impl Future<Output = ()> + Send + use<'_> {
    let first = store.settled_elsewhere(claim).unwrap();
    tokio::time::timeout(LONG, first).await.expect("the key is locked");
    store.settled_elsewhere(claim).unwrap()
}

async fn woken(locked_waiter: impl Future<Output = ()>) {
    tokio::time::timeout(LONG, locked_waiter).await.expect("a notification arrives");
}

async fn is_waiting(locked_waiter: impl Future<Output = ()> + Unpin) -> bool {
    tokio::time::timeout(Duration::ZERO, locked_waiter).await.is_err()
}

/// The notification for a claim, and the key of its lock.
fn notification(number: i64) -> String {
    let hex = claim_id(number).digest().hex();
    format!("{:x}", u64::from_str_radix(&hex[..16], 16).unwrap())
}

async fn locks(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// Polls until the condition holds.
async fn until(client: &Client, holds: impl Fn(i64) -> bool) {
    let looking = async {
        while !holds(locks(client).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, looking).await.expect("locks come and go");
}

#[tokio::test]
async fn no_notification_is_sent_without_waiters() {
    let mut scene = scene().await;
    scene.opens(1..=5).await;
    scene.settles(1..=4).await;
    let elsewhere = pin!(locked_waiter(&scene.other, claim_id(5)).await);
    scene.worker.commit(set(900).insert(claim_in(6, completed())).insert(charge(6))).await.unwrap();
    assert_eq!(scene.listener.all().await, Vec::<String>::new());
    assert!(is_waiting(elsewhere).await);
}

#[tokio::test]
async fn a_renewed_lease_sends_no_notification() {
    let mut scene = scene().await;
    scene.opens(1..=6).await;
    let mut places = Vec::new();
    for number in 1..=6 {
        places.push(Box::pin(locked_waiter(&scene.other, claim_id(number)).await));
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
    assert_eq!(scene.listener.all().await, [3, 4, 5, 6].map(notification));
    for told in places.split_off(2) {
        woken(told).await;
    }
    for silent in places {
        assert!(is_waiting(silent).await);
    }
}

#[tokio::test]
async fn a_waiter_in_another_process_is_woken_by_the_commit() {
    let mut scene = scene().await;
    scene.opens(1..=1).await;
    let locked_waiter = locked_waiter(&scene.other, claim_id(1)).await;
    scene.settles(1..=1).await;
    woken(locked_waiter).await;
    assert_eq!(scene.listener.all().await, [notification(1)]);
}

#[tokio::test]
async fn one_notification_wakes_all_waiters_of_a_key() {
    let mut scene = scene().await;
    scene.opens(1..=2).await;
    let first = locked_waiter(&scene.other, claim_id(1)).await;
    let crowd: Vec<_> = (0..200).map(|_| scene.other.settled_elsewhere(claim_id(1)).unwrap()).collect();
    let here = locked_waiter(&scene.worker, claim_id(1)).await;
    let other = Box::pin(locked_waiter(&scene.other, claim_id(2)).await);
    assert_eq!(locks(&raw(&scene.database.url()).await).await, 3, "one lock a key and process");
    scene.settles(1..=1).await;
    woken(first).await;
    woken(here).await;
    for locked_waiter in crowd {
        woken(locked_waiter).await;
    }
    assert!(is_waiting(other).await);
    assert_eq!(scene.listener.all().await, [notification(1)]);
}

#[tokio::test]
async fn many_keys_are_waited_for_at_once_and_released_afterwards() {
    let mut scene = scene().await;
    scene.opens(1..=256).await;
    let all: Vec<_> =
        (1..=256).map(|number| scene.other.settled_elsewhere(claim_id(number)).unwrap()).collect();
    assert!(
        scene.other.settled_elsewhere(claim_id(257)).is_none(),
        "the server's locks are not for us alone"
    );
    let again: Vec<_> =
        (1..=256).map(|number| scene.other.settled_elsewhere(claim_id(number)).unwrap()).collect();
    let client = raw(&scene.database.url()).await;
    until(&client, |locks| locks == 256).await;
    for locked_waiter in all {
        woken(locked_waiter).await;
    }
    drop(again);
    let places: Vec<_> =
        (1..=256).map(|number| scene.other.settled_elsewhere(claim_id(number)).unwrap()).collect();
    scene.settles(1..=256).await;
    for locked_waiter in places {
        woken(locked_waiter).await;
    }
    until(&client, |locks| locks == 0).await;
    let mut notifications = scene.listener.all().await;
    notifications.sort_unstable();
    let mut wanted: Vec<String> = (1..=256).map(notification).collect();
    wanted.sort_unstable();
    assert_eq!(notifications, wanted, "each is sent once");
}

#[tokio::test]
async fn no_waiter_starts_unnoticed_during_a_commit() {
    let scene = scene().await;
    scene.opens(1..=2).await;
    // A committer that found no waiter holds the exclusive lock.
    let committer = raw(&scene.database.url()).await;
    let key = u64::from_str_radix(&notification(1), 16).unwrap().cast_signed();
    let lock = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(({key}::bigint >> 32)::int, ({key}::bigint << 32 >> 32)::int)"
    );
    committer.batch_execute(&lock).await.unwrap();
    let mut late = pin!(scene.other.settled_elsewhere(claim_id(1)).unwrap());
    let other = locked_waiter(&scene.other, claim_id(2)).await;
    assert!(is_waiting(&mut late).await, "it has been tried by now, and others are not held up");
    committer.batch_execute("COMMIT").await.unwrap();
    woken(late).await;
    scene.settles(2..=2).await;
    woken(other).await;
}

#[tokio::test]
async fn a_terminated_listener_wakes_all_waiters_and_reconnects() {
    let scene = scene().await;
    scene.opens(1..=2).await;
    let first = locked_waiter(&scene.other, claim_id(1)).await;
    let client = raw(&scene.database.url()).await;
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(client.query_one(ended, &[]).await.unwrap().get::<_, i64>(0), 1);
    woken(first).await;
    scene.settles(1..=1).await;
    let back = async {
        while scene.other.settled_elsewhere(claim_id(2)).is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, back).await.expect("the listener reconnects");
    let second = locked_waiter(&scene.other, claim_id(2)).await;
    scene.settles(2..=2).await;
    woken(second).await;
}

#[tokio::test]
async fn a_store_without_waiters_opens_no_listening_connection() {
    let scene = scene().await;
    scene.opens(1..=1).await;
    let client = raw(&scene.database.url()).await;
    let count = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND query LIKE '%advisory%shared%' AND pid <> pg_backend_pid()";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    assert_eq!(count().await, 0);
    drop(locked_waiter(&scene.other, claim_id(1)).await);
    assert_eq!(count().await, 1);
    scene.other.close().await;
    until(&client, |locks| locks == 0).await;
}
