//! The pool of read-only connections: opened on demand, reused, bounded.

use crate::clock::monotonic;
use crate::error::{Blame, blame, reason};
use crate::session::{Purpose, Session, Step, all};
use crate::shared::Shared;
use counterfoil_store::ReadError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

/// The wait for a free connection.
const FREE_WITHIN: Duration = Duration::from_secs(5);
/// The limit for a read. The server's own timeout is shorter.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// A statement with its parameters.
pub(crate) struct Question<'a> {
    pub(crate) sql: &'static str,
    pub(crate) parameters: Vec<&'a (dyn ToSql + Sync)>,
}

/// The transaction enclosing questions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Enclosing {
    /// None: a single statement has its own snapshot.
    None,
    /// A read-only transaction with one snapshot for several statements.
    Snapshot,
    /// A transaction that may lock rows while the statement runs. It is rolled back, so it never
    /// waits for the disk.
    RolledBack,
}

impl Enclosing {
    /// The commands before and after the questions.
    const fn commands(self) -> Option<(&'static str, &'static str)> {
        match self {
            Enclosing::None => None,
            Enclosing::Snapshot => Some(("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "COMMIT")),
            Enclosing::RolledBack => Some(("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "ROLLBACK")),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Readers {
    shared: Arc<Shared>,
    idle: Mutex<Vec<Session>>,
    free: Semaphore,
}

impl Readers {
    pub(crate) fn new(shared: Arc<Shared>) -> Readers {
        let free = Semaphore::new(shared.options.readers.max(1));
        Readers { shared, idle: Mutex::default(), free }
    }

    /// The answers to all questions, from one snapshot.
    pub(crate) async fn ask(&self, questions: Vec<Question<'_>>) -> Result<Vec<Vec<Row>>, ReadError> {
        let enclosing = if questions.len() > 1 { Enclosing::Snapshot } else { Enclosing::None };
        self.ask_within(enclosing, questions).await
    }

    async fn ask_within(
        &self,
        enclosing: Enclosing,
        questions: Vec<Question<'_>>,
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        self.shared.history.is_whole().map_err(|lost| ReadError(lost.to_string()))?;
        let waiting = tokio::time::timeout(FREE_WITHIN, self.free.acquire());
        let Ok(Ok(_permit)) = waiting.await else {
            return Err(ReadError("all connections for reads are busy".to_owned()));
        };
        let asking = async {
            // A pooled connection may have ended. The second attempt uses a new one.
            match self.try_ask(self.pooled(), enclosing, &questions).await {
                Err(ReadFailure::Lost(_)) => {
                    self.idle().clear();
                    self.try_ask(None, enclosing, &questions).await
                }
                answered => answered,
            }
        };
        // Boxed to keep the futures of callers small. A round trip costs far more than an
        // allocation.
        match tokio::time::timeout(ANSWER_WITHIN, Box::pin(asking)).await {
            Ok(Ok(answers)) => Ok(answers),
            Ok(Err(ReadFailure::Lost(why) | ReadFailure::Reported(why))) => Err(ReadError(why)),
            Err(_) => Err(ReadError("the server does not answer".to_owned())),
        }
    }

    pub(crate) async fn ask_one(
        &self,
        sql: &'static str,
        parameters: Vec<&(dyn ToSql + Sync)>,
    ) -> Result<Vec<Row>, ReadError> {
        self.ask_one_within(Enclosing::None, sql, parameters).await
    }

    pub(crate) async fn ask_one_within(
        &self,
        enclosing: Enclosing,
        sql: &'static str,
        parameters: Vec<&(dyn ToSql + Sync)>,
    ) -> Result<Vec<Row>, ReadError> {
        let answers = self.ask_within(enclosing, vec![Question { sql, parameters }]).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Reads the server's clock.
    pub(crate) async fn read_clock(&self) {
        let begun = monotonic();
        if let Ok(rows) = self.ask_one(CLOCK, Vec::new()).await
            && let Some(Ok(server_us)) = rows.first().map(|row| row.try_get(0))
        {
            self.shared.clock.observe_server(server_us, monotonic().saturating_sub(begun));
        }
    }

    async fn try_ask(
        &self,
        pooled: Option<Session>,
        enclosing: Enclosing,
        questions: &[Question<'_>],
    ) -> Result<Vec<Vec<Row>>, ReadFailure> {
        let session = match pooled {
            Some(session) => session,
            None => self
                .shared
                .connect(Purpose::Read)
                .await
                .map_err(|error| ReadFailure::Reported(error.to_string()))?,
        };
        let wanted: Vec<&'static str> = questions.iter().map(|question| question.sql).collect();
        session.prepare(&wanted).await?;
        let mut steps: Vec<Step<'_>> = Vec::with_capacity(questions.len().saturating_add(2));
        let commands = enclosing.commands();
        steps.extend(commands.map(|(before, _)| session.command(before)));
        steps.extend(
            questions.iter().map(|question| session.query(question.sql, question.parameters.clone())),
        );
        steps.extend(commands.map(|(_, after)| session.command(after)));
        let answers: Result<Vec<Vec<Row>>, Error> = all(steps).await.into_iter().collect();
        let mut answers = answers?;
        if commands.is_some() {
            answers.pop();
            answers.remove(0);
        }
        // Only a connection that answered everything returns to the pool.
        self.idle().push(session);
        Ok(answers)
    }

    fn pooled(&self) -> Option<Session> {
        let mut idle = self.idle();
        while let Some(session) = idle.pop() {
            if !session.is_closed() {
                return Some(session);
            }
        }
        None
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum ReadFailure {
    /// The connection is lost.
    Lost(String),
    /// The server reported an error.
    Reported(String),
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> ReadFailure {
        let why = reason(&error);
        if blame(&error) == Blame::Connection { ReadFailure::Lost(why) } else { ReadFailure::Reported(why) }
    }
}
