//! The connection that listens, and locks what is waited for.

use super::waiters::Waiters;
use crate::session::{Purpose, Session};
use crate::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Locks those keys that no committer is settling right now.
const LOCK: &str = "SELECT k FROM unnest($1::bigint[]) AS u(k) \
     WHERE pg_try_advisory_lock_shared((k >> 32)::int, (k << 32 >> 32)::int)";
const UNLOCK: &str = "SELECT pg_advisory_unlock_shared((k >> 32)::int, (k << 32 >> 32)::int) \
     FROM unnest($1::bigint[]) AS u(k)";

/// How often a lock is tried again, and keys that nobody waits for are given up.
const TURN: Duration = Duration::from_millis(20);
/// How long the server may take for one statement.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a lost connection is left alone.
const RECONNECT_EVERY: Duration = Duration::from_millis(500);

/// Why listening ended.
struct Lost(String);

impl From<tokio_postgres::Error> for Lost {
    fn from(error: tokio_postgres::Error) -> Lost {
        Lost(crate::error::reason(&error))
    }
}

/// Listens until the store is closed.
pub(super) async fn serve(shared: Arc<Shared>, waiters: Arc<Waiters>) {
    // A process that never meets another's work needs no connection for it.
    waiters.wanted.notified().await;
    loop {
        let Lost(why) = listen(&shared, &waiters).await;
        waiters.close();
        tracing::debug!(%why, "the connection that listens was lost; whoever waits looks by itself");
        tokio::time::sleep(RECONNECT_EVERY).await;
    }
}

async fn listen(shared: &Shared, waiters: &Waiters) -> Lost {
    let mut session = match shared.connect(Purpose::Read).await {
        Ok(session) => session,
        Err(error) => return Lost(error.to_string()),
    };
    match attend(&mut session, waiters).await {
        Ok(never) => match never {},
        Err(lost) => lost,
    }
}

async fn attend(session: &mut Session, waiters: &Waiters) -> Result<std::convert::Infallible, Lost> {
    within(session.command("SET idle_session_timeout = 0; LISTEN counterfoil_settled")).await?;
    within(session.prepare(&[LOCK, UNLOCK])).await?;
    waiters.open();
    lock(session, waiters).await?;
    let mut turn = tokio::time::interval(TURN);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            word = session.word() => {
                let word = word.ok_or_else(|| Lost("the server ended it".to_owned()))?;
                // Anything else on the channel is not for us.
                if let Ok(key) = u64::from_str_radix(&word, 16) {
                    waiters.tell(key.cast_signed());
                }
                continue;
            }
            () = waiters.wanted.notified() => {}
            _ = turn.tick(), if !waiters.is_empty() => {
                let left = waiters.leave();
                if !left.is_empty() {
                    within(session.query(UNLOCK, vec![&left])).await?;
                }
            }
        }
        lock(session, waiters).await?;
    }
}

async fn lock(session: &Session, waiters: &Waiters) -> Result<(), Lost> {
    let wanted = waiters.unlocked();
    if wanted.is_empty() {
        return Ok(());
    }
    let rows = within(session.query(LOCK, vec![&wanted])).await?;
    let locked: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(0)).collect();
    waiters.locked(&locked?);
    Ok(())
}

async fn within<T>(step: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Lost> {
    match tokio::time::timeout(ANSWER_WITHIN, step).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Lost("the server does not answer".to_owned())),
    }
}
