//! A connection: how it is opened and configured, its prepared statements, and the server's
//! warnings.

mod pipeline;
mod target;
mod tls;

pub(crate) use pipeline::{Step, all};
pub(crate) use target::{CONNECT_WITHIN, Target};

use crate::error::OpenError;
use counterfoil_core::types::time::Time;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::error::Severity;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Row, Socket, Statement};

/// The purpose of a connection, which determines its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Commit,
    /// Reads. The server enforces `default_transaction_read_only`.
    Read,
    Migrate,
}

/// Every statement has a matching index. Without these settings the planner would scan small tables
/// and keep the generic plan while the tables grow. Planning every group again would cost more than
/// running it.
const PLANS: &str = "SET search_path = counterfoil, pg_temp; SET TimeZone = 'UTC'; SET jit = off; \
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off; SET enable_bitmapscan = off; SET client_min_messages = warning; ";

/// Locks, statements and idle transactions have timeouts: an idle transaction belongs to a dead
/// process. `synchronous_commit` is set explicitly, also if it has the right value, because a
/// session without its own value follows later changes of the server's configuration.
const COMMIT: &str = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '2s'; \
    SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'; \
    SELECT set_config('synchronous_commit', \
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

const READ: &str = "SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'; \
    SET default_transaction_read_only = on";

/// Lock timeouts are short, because every server would queue behind a waiting exclusive lock.
const MIGRATE: &str = "SET search_path = counterfoil, pg_temp; SET lock_timeout = '1s'; \
    SET statement_timeout = '60s'; SET client_min_messages = warning";

/// The bound of queued notifications.
const NOTIFICATIONS_MAX: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    warned: Arc<AtomicBool>,
    notifications: mpsc::Receiver<String>,
    driver: JoinHandle<()>,
}

impl Session {
    /// Connects to the first usable host. If there is none, the error is that of the first host.
    pub(crate) async fn open(target: &Target, purpose: Purpose) -> Result<Session, OpenError> {
        let mut refused = None;
        for (index, host) in target.hosts() {
            match Session::at(host, target, purpose).await {
                Ok(session) => {
                    target.used(index);
                    return Ok(session);
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        Err(refused.unwrap_or_else(no_answer))
    }

    /// Connects to one host of a target, and refuses a server with unsafe settings.
    pub(crate) async fn at(host: &Config, target: &Target, purpose: Purpose) -> Result<Session, OpenError> {
        let connecting = tokio::time::timeout(target.within, host.connect(target.tls.clone()));
        let (client, connection) = connecting.await.map_err(|_| no_answer())??;
        let warned = Arc::new(AtomicBool::new(false));
        let (sender, notifications) = mpsc::channel(NOTIFICATIONS_MAX);
        let driver = tokio::spawn(drive(connection, Arc::clone(&warned), sender));
        let session = Session { client, statements: Mutex::default(), warned, notifications, driver };
        tokio::time::timeout(CONNECT_WITHIN, session.check_and_configure(purpose))
            .await
            .map_err(|_| no_answer())??;
        Ok(session)
    }

    async fn check_and_configure(&self, purpose: Purpose) -> Result<(), OpenError> {
        let found = self
            .client
            .query_one(
                "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
                 pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', \
                 current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on'",
                &[],
            )
            .await?;
        let flag = |at: usize| found.try_get::<_, bool>(at);
        if found.try_get::<_, i32>(0)? < 150_000 {
            return Err(OpenError::TooOld(found.try_get(1)?));
        }
        if flag(2)? {
            return Err(OpenError::Standby);
        }
        if flag(3)? {
            return Err(OpenError::ReadOnly);
        }
        for (at, name) in [(4, "fsync"), (5, "full_page_writes")] {
            if !flag(at)? {
                return Err(OpenError::Unsafe(name));
            }
        }
        let settings = match purpose {
            Purpose::Commit => format!("{PLANS}{COMMIT}"),
            Purpose::Read => format!("{PLANS}{READ}"),
            Purpose::Migrate => MIGRATE.to_owned(),
        };
        Ok(self.client.batch_execute(&settings).await?)
    }

    /// Whether the connection is known to be gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Prepares the statements that are not prepared yet.
    pub(crate) async fn prepare(&self, wanted: &[&'static str]) -> Result<(), Error> {
        for &sql in wanted {
            if self.known().contains_key(sql) {
                continue;
            }
            let statement = self.client.prepare(sql).await?;
            self.known().insert(sql, statement);
        }
        Ok(())
    }

    /// A prepared statement as a step of a pipeline.
    pub(crate) fn query<'a>(
        &'a self,
        sql: &'static str,
        parameters: Vec<&'a (dyn ToSql + Sync)>,
    ) -> Step<'a> {
        let statement = self.known().get(sql).cloned();
        Box::pin(async move {
            match statement {
                Some(statement) => self.client.query(&statement, &parameters).await,
                None => self.client.query(sql, &parameters).await,
            }
        })
    }

    /// A command as a step of a pipeline.
    pub(crate) fn command<'a>(&'a self, sql: &'a str) -> Step<'a> {
        Box::pin(async move { self.client.batch_execute(sql).await.map(|()| Vec::new()) })
    }

    /// Runs a statement without preparing it.
    pub(crate) async fn query_once(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        self.client.query(sql, parameters).await
    }

    /// Whether the server has warned since the last call.
    pub(crate) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }

    /// The payload of the next notification, or `None` once the connection has ended.
    pub(crate) async fn notification(&mut self) -> Option<String> {
        self.notifications.recv().await
    }

    fn known(&self) -> MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Dropping the driver closes the socket.
        self.driver.abort();
    }
}

pub(crate) fn no_answer() -> OpenError {
    OpenError::Unreachable("no answer".to_owned())
}

/// Processes messages until the connection ends. A warning is recorded before the answer that
/// follows it is delivered.
async fn drive(
    mut connection: Connection<Socket, tls::Stream>,
    warned: Arc<AtomicBool>,
    sender: mpsc::Sender<String>,
) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                if notice.parsed_severity() == Some(Severity::Warning) {
                    tracing::debug!(message = notice.message(), "PostgreSQL warns");
                    warned.store(true, Ordering::Release);
                }
            }
            Ok(AsyncMessage::Notification(notification)) => {
                // A full queue drops the notification. Waiters poll anyway.
                let _ = sender.try_send(notification.payload().to_owned());
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
                return;
            }
        }
    }
}

/// The state of the database at the time of connecting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatabaseState {
    pub(crate) secret: [u8; 32],
    pub(crate) position: u64,
    pub(crate) at: Time,
    pub(crate) server_us: i64,
}

impl DatabaseState {
    pub(crate) async fn read(session: &Session) -> Result<DatabaseState, OpenError> {
        let rows = session
            .query_once(
                "SELECT meta.value, head.position, head.at, \
                 (extract(epoch FROM clock_timestamp()) * 1000000)::bigint \
                 FROM counterfoil.head, counterfoil.meta WHERE head.one AND meta.name = 'secret'",
                &[],
            )
            .await?;
        let row = rows.first().ok_or(OpenError::NotMigrated)?;
        let secret: &[u8] = row.try_get(0)?;
        let position: i64 = row.try_get(1)?;
        Ok(DatabaseState {
            secret: secret.try_into().map_err(|_| {
                OpenError::Failed("the secret of the store does not have 32 bytes".to_owned())
            })?,
            position: u64::try_from(position).unwrap_or(0),
            at: Time::from_ms(row.try_get(2)?),
            server_us: row.try_get(3)?,
        })
    }
}
