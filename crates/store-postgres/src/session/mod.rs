//! One connection: how it is opened, what it insists on, its prepared statements, and whether the server warned.

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

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It commits.
    Commit,
    /// It only reads, and the server holds it to that.
    Read,
    /// It changes tables.
    Migrate,
}

/// Every statement of the store has an index made for it. Left alone, the planner would read small tables whole, and
/// keep that plan while they grow; planning anew for every group would cost more than running it.
const PLANS: &str = "SET search_path = counterfoil, pg_temp; SET TimeZone = 'UTC'; SET jit = off; \
    SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off; SET enable_bitmapscan = off; SET client_min_messages = warning; ";

/// No server waits for ever for us, nor we for a lock. A transaction of ours that hears nothing is of a process that
/// is gone. What a commit waits for is said by this session, also where it is as it should be: else it would follow the server's
/// configuration, whoever changes that.
const COMMIT: &str = "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '2s'; \
    SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'; \
    SELECT set_config('synchronous_commit', \
        CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

const READ: &str = "SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s'; \
    SET default_transaction_read_only = on";

/// Tables are changed without waiting for long: a waiting lock would stop every server behind it.
const MIGRATE: &str = "SET search_path = counterfoil, pg_temp; SET lock_timeout = '1s'; \
    SET statement_timeout = '60s'; SET client_min_messages = warning";

/// Words that may wait to be heard.
const WORDS_MAX: usize = 4_096;

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    warned: Arc<AtomicBool>,
    words: mpsc::Receiver<String>,
    driver: JoinHandle<()>,
}

impl Session {
    /// Connects to the first host that serves, and says of the first that does not why if none does.
    pub(crate) async fn open(target: &Target, purpose: Purpose) -> Result<Session, OpenError> {
        let mut refused = None;
        for (place, host) in target.hosts() {
            match Session::at(host, target, purpose).await {
                Ok(session) => {
                    target.taken_by(place);
                    return Ok(session);
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        Err(refused.unwrap_or_else(no_answer))
    }

    /// Connects to one host of a target, and refuses a server that cannot keep what it is told.
    pub(crate) async fn at(host: &Config, target: &Target, purpose: Purpose) -> Result<Session, OpenError> {
        let connecting = tokio::time::timeout(target.within, host.connect(target.tls.clone()));
        let (client, connection) = connecting.await.map_err(|_| no_answer())??;
        let warned = Arc::new(AtomicBool::new(false));
        let (reply, words) = mpsc::channel(WORDS_MAX);
        let driver = tokio::spawn(drive(connection, Arc::clone(&warned), reply));
        let session = Session { client, statements: Mutex::default(), warned, words, driver };
        tokio::time::timeout(CONNECT_WITHIN, session.vet(purpose)).await.map_err(|_| no_answer())??;
        Ok(session)
    }

    async fn vet(&self, purpose: Purpose) -> Result<(), OpenError> {
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

    /// Prepares what is not prepared yet.
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

    /// A prepared statement as a step of a pipeline. It must have been prepared.
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

    /// One statement that is not worth preparing.
    pub(crate) async fn ask(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        self.client.query(sql, parameters).await
    }

    /// Whether the server has warned since this was last asked.
    pub(crate) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }

    /// The next word on a channel this connection listens on; nothing once the connection has ended.
    pub(crate) async fn word(&mut self) -> Option<String> {
        self.words.recv().await
    }

    fn known(&self) -> MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The socket closes with its driver, whatever the server is still about to say.
        self.driver.abort();
    }
}

/// A server that keeps silent.
pub(crate) fn no_answer() -> OpenError {
    OpenError::Unreachable("no answer".to_owned())
}

/// Moves messages until the connection ends. A warning is noted before the answer that follows it is passed on.
async fn drive(
    mut connection: Connection<Socket, tls::Stream>,
    warned: Arc<AtomicBool>,
    reply: mpsc::Sender<String>,
) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                if notice.parsed_severity() == Some(Severity::Warning) {
                    tracing::debug!(message = notice.message(), "PostgreSQL warns");
                    warned.store(true, Ordering::Release);
                }
            }
            Ok(AsyncMessage::Notification(word)) => {
                // Who listens looks now and then all the same: a word too many may be lost.
                let _ = reply.try_send(word.payload().to_owned());
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "a connection to PostgreSQL has ended");
                return;
            }
        }
    }
}

/// What a connection finds in the database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    pub(crate) secret: [u8; 32],
    pub(crate) position: u64,
    pub(crate) at: Time,
    pub(crate) server_us: i64,
}

impl Ground {
    pub(crate) async fn look(session: &Session) -> Result<Ground, OpenError> {
        let rows = session
            .ask(
                "SELECT meta.value, head.position, head.at, \
                 (extract(epoch FROM clock_timestamp()) * 1000000)::bigint \
                 FROM counterfoil.head, counterfoil.meta WHERE head.one AND meta.name = 'secret'",
                &[],
            )
            .await?;
        let row = rows.first().ok_or(OpenError::NotMigrated)?;
        let secret: &[u8] = row.try_get(0)?;
        let position: i64 = row.try_get(1)?;
        Ok(Ground {
            secret: secret.try_into().map_err(|_| {
                OpenError::Failed("the store's secret has another length than 32 bytes".to_owned())
            })?,
            position: u64::try_from(position).unwrap_or(0),
            at: Time::from_ms(row.try_get(2)?),
            server_us: row.try_get(3)?,
        })
    }
}
