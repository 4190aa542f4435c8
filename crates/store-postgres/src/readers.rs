//! Connections that only read: opened as they are needed, kept, never more than allowed.

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

/// How long a read waits for a free connection.
const FREE_WITHIN: Duration = Duration::from_secs(5);
/// How long a read may take in all; the server ends its own part sooner.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// A statement with its parameters.
pub(crate) struct Question<'a> {
    pub(crate) sql: &'static str,
    pub(crate) parameters: Vec<&'a (dyn ToSql + Sync)>,
}

/// What stands around questions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Around {
    /// Nothing: one statement has one moment by itself.
    Nothing,
    /// A transaction that has one moment for several.
    OneMoment,
    /// A transaction that may lock rows for as long as the question takes. Nothing comes of it: rolled back, it waits for no disk.
    Passing,
}

impl Around {
    /// Before and after.
    const fn commands(self) -> Option<(&'static str, &'static str)> {
        match self {
            Around::Nothing => None,
            Around::OneMoment => Some(("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "COMMIT")),
            Around::Passing => Some(("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "ROLLBACK")),
        }
    }
}

/// The connections.
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

    /// The answers to all questions, from one moment.
    pub(crate) async fn ask(&self, questions: Vec<Question<'_>>) -> Result<Vec<Vec<Row>>, ReadError> {
        let around = if questions.len() > 1 { Around::OneMoment } else { Around::Nothing };
        self.ask_within(around, questions).await
    }

    async fn ask_within(
        &self,
        around: Around,
        questions: Vec<Question<'_>>,
    ) -> Result<Vec<Vec<Row>>, ReadError> {
        self.shared.history.is_whole().map_err(|lost| ReadError(lost.to_string()))?;
        let waiting = tokio::time::timeout(FREE_WITHIN, self.free.acquire());
        let Ok(Ok(_permit)) = waiting.await else {
            return Err(ReadError("all connections for reads are busy".to_owned()));
        };
        let asking = async {
            // A connection that was kept may have ended meanwhile: the second try is on a new one.
            match self.try_ask(self.kept(), around, &questions).await {
                Err(Trouble::Lost(_)) => {
                    self.idle().clear();
                    self.try_ask(None, around, &questions).await
                }
                answered => answered,
            }
        };
        // Boxed: who may have to read carries the room for it, and a round trip costs far more.
        match tokio::time::timeout(ANSWER_WITHIN, Box::pin(asking)).await {
            Ok(Ok(answers)) => Ok(answers),
            Ok(Err(Trouble::Lost(why) | Trouble::Said(why))) => Err(ReadError(why)),
            Err(_) => Err(ReadError("the server does not answer".to_owned())),
        }
    }

    /// The answer to one question.
    pub(crate) async fn ask_one(
        &self,
        sql: &'static str,
        parameters: Vec<&(dyn ToSql + Sync)>,
    ) -> Result<Vec<Row>, ReadError> {
        self.ask_one_within(Around::Nothing, sql, parameters).await
    }

    pub(crate) async fn ask_one_within(
        &self,
        around: Around,
        sql: &'static str,
        parameters: Vec<&(dyn ToSql + Sync)>,
    ) -> Result<Vec<Row>, ReadError> {
        let answers = self.ask_within(around, vec![Question { sql, parameters }]).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Looks at the server's clock.
    pub(crate) async fn look_at_clock(&self) {
        let begun = monotonic();
        if let Ok(rows) = self.ask_one(CLOCK, Vec::new()).await
            && let Some(Ok(server_us)) = rows.first().map(|row| row.try_get(0))
        {
            self.shared.clock.looked(server_us, monotonic().saturating_sub(begun));
        }
    }

    async fn try_ask(
        &self,
        kept: Option<Session>,
        around: Around,
        questions: &[Question<'_>],
    ) -> Result<Vec<Vec<Row>>, Trouble> {
        let session = match kept {
            Some(session) => session,
            None => {
                self.shared.connect(Purpose::Read).await.map_err(|error| Trouble::Said(error.to_string()))?
            }
        };
        let wanted: Vec<&'static str> = questions.iter().map(|question| question.sql).collect();
        session.prepare(&wanted).await?;
        let mut steps: Vec<Step<'_>> = Vec::with_capacity(questions.len().saturating_add(2));
        let commands = around.commands();
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
        // Only a connection that answered everything is kept: one that was left in the middle is not.
        self.idle().push(session);
        Ok(answers)
    }

    fn kept(&self) -> Option<Session> {
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

enum Trouble {
    /// The connection is gone.
    Lost(String),
    /// The server said why.
    Said(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        let why = reason(&error);
        if blame(&error) == Blame::Connection { Trouble::Lost(why) } else { Trouble::Said(why) }
    }
}
