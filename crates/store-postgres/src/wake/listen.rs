//! The listening connection, which also holds the advisory locks of waited-for claims.

use super::waiters::Waiters;
use crate::session::{Purpose, Session};
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Locks the keys that no committer is settling at the moment, and returns them.
const LOCK: &str = "SELECT k FROM unnest($1::bigint[]) AS u(k) \
     WHERE pg_try_advisory_lock_shared((k >> 32)::int, (k << 32 >> 32)::int)";
const UNLOCK: &str = "SELECT pg_advisory_unlock_shared((k >> 32)::int, (k << 32 >> 32)::int) \
     FROM unnest($1::bigint[]) AS u(k)";

/// The interval for retrying locks and for releasing keys without waiters.
const TICK: Duration = Duration::from_millis(20);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The pause before a lost connection is reopened.
const RECONNECT_EVERY: Duration = Duration::from_millis(500);

/// The connection was lost, and why.
struct Lost(String);

impl From<tokio_postgres::Error> for Lost {
    fn from(error: tokio_postgres::Error) -> Lost {
        Lost(crate::error::reason(&error))
    }
}

/// Listens until the store is closed.
pub(super) async fn serve(shared: Arc<Shared>, waiters: Arc<Waiters>) {
    // A process whose waiters never depend on other processes opens no connection.
    waiters.key_added.notified().await;
    loop {
        let Lost(why) = listen(&shared, &waiters).await;
        waiters.disconnect();
        tracing::debug!(%why, "the listening connection was lost; waiters poll");
        tokio::time::sleep(RECONNECT_EVERY).await;
    }
}

async fn listen(shared: &Shared, waiters: &Waiters) -> Lost {
    let mut session = match shared.connect(Purpose::Read).await {
        Ok(session) => session,
        Err(error) => return Lost(error.to_string()),
    };
    match run(&mut session, waiters).await {
        Ok(never) => match never {},
        Err(lost) => lost,
    }
}

async fn run(session: &mut Session, waiters: &Waiters) -> Result<std::convert::Infallible, Lost> {
    within(session.command("SET idle_session_timeout = 0; LISTEN counterfoil_settled")).await?;
    within(session.prepare(&[LOCK, UNLOCK])).await?;
    waiters.connect();
    lock_keys(session, waiters).await?;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            payload = session.notification() => {
                let payload = payload.ok_or_else(|| Lost("the server ended the connection".to_owned()))?;
                // Ignore payloads that are not keys.
                if let Ok(key) = u64::from_str_radix(&payload, 16) {
                    waiters.wake(key.cast_signed());
                }
                continue;
            }
            () = waiters.key_added.notified() => {}
            _ = tick.tick(), if !waiters.is_empty() => {
                let left = waiters.remove_idle();
                if !left.is_empty() {
                    within(session.query(UNLOCK, vec![&left])).await?;
                }
            }
        }
        lock_keys(session, waiters).await?;
    }
}

async fn lock_keys(session: &Session, waiters: &Waiters) -> Result<(), Lost> {
    let keys = waiters.unlocked_keys();
    if keys.is_empty() {
        return Ok(());
    }
    let rows = within(session.query(LOCK, vec![&keys])).await?;
    let locked: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(0)).collect();
    waiters.mark_locked(&locked?);
    Ok(())
}

async fn within<T>(step: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Lost> {
    match tokio::time::timeout(ANSWER_WITHIN, step).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Lost("the server does not answer".to_owned())),
    }
}
