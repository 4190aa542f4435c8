//! What this process knows of the history of commits. A server that comes back without it, or with another one, is not trusted again:
//! what was confirmed is gone there, whatever is added to it.

use crate::error::OpenError;
use crate::session::Session;
use crate::tables::commits::{IS_IN_GROUP, IS_SET, Log};
use counterfoil_core::types::id::SetId;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The history as far as it is known here.
#[derive(Debug)]
pub(crate) struct History {
    last: Mutex<Last>,
    lost: OnceLock<OpenError>,
}

/// The last commit this process was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) position: u64,
    /// What is there, if it is known.
    set: Option<SetId>,
}

impl History {
    /// As it was found when the store was opened.
    pub(crate) fn new(position: u64) -> History {
        History { last: Mutex::new(Last { position, set: None }), lost: OnceLock::new() }
    }

    /// A commit that this process was told of.
    pub(crate) fn saw(&self, position: u64, set: SetId) {
        let mut last = self.lock();
        if position > last.position {
            *last = Last { position, set: Some(set) };
        }
    }

    pub(crate) fn last(&self) -> Last {
        *self.lock()
    }

    /// Fails once a server was found without what it had confirmed, for as long as this process lives.
    pub(crate) fn is_whole(&self) -> Result<(), OpenError> {
        self.lost.get().map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// Compares what was known before the server was asked with what it has, up to `found`.
    pub(crate) async fn compare(
        &self,
        last: Last,
        session: &Session,
        found: u64,
        log: Log,
    ) -> Result<(), OpenError> {
        let known = last.position;
        if found < known {
            return Err(self.is_lost(OpenError::Lost { known, found }));
        }
        let (Some(set), Ok(at)) = (last.set, i64::try_from(known)) else { return Ok(()) };
        let questions: &[&str] = match log {
            Log::BySet => &[IS_SET],
            Log::ByGroup => &[IS_IN_GROUP, IS_SET],
        };
        for sql in questions {
            if !session.ask(sql, &[&at, &set.to_i64()]).await?.is_empty() {
                return Ok(());
            }
        }
        Err(self.is_lost(OpenError::Rewritten { known }))
    }

    fn is_lost(&self, how: OpenError) -> OpenError {
        tracing::error!(reason = %how, "the database is not trusted any more");
        self.lost.get_or_init(|| how).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
