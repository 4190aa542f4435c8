//! The history of commits as this process knows it.
//!
//! A server without this history is not used. If all hosts lack the history, the process never
//! trusts a host again: confirmed commits are lost.

use crate::error::OpenError;
use crate::session::Session;
use crate::tables::commits::SET_IS_AT;
use counterfoil_core::types::id::SetId;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

#[derive(Debug)]
pub(crate) struct History {
    last: Mutex<Last>,
    lost: OnceLock<OpenError>,
}

/// The last known commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) position: u64,
    /// The set at that position, if known.
    set: Option<SetId>,
}

impl History {
    /// The history as found when the store was opened.
    pub(crate) fn new(position: u64) -> History {
        History { last: Mutex::new(Last { position, set: None }), lost: OnceLock::new() }
    }

    /// Records a known commit.
    pub(crate) fn observe_commit(&self, position: u64, set: SetId) {
        let mut last = self.lock();
        if position > last.position {
            *last = Last { position, set: Some(set) };
        }
    }

    pub(crate) fn last(&self) -> Last {
        *self.lock()
    }

    /// Fails for the rest of the process once confirmed commits were found to be lost.
    pub(crate) fn is_whole(&self) -> Result<(), OpenError> {
        self.lost.get().map_or(Ok(()), |lost| Err(lost.clone()))
    }

    /// Explains why no host can be used. If all hosts lack confirmed commits, none is trusted any
    /// more. A host that was not reachable may still have them.
    pub(crate) fn explain(&self, refused: Vec<OpenError>) -> OpenError {
        let is_lost =
            |error: &OpenError| matches!(error, OpenError::Lost { .. } | OpenError::Rewritten { .. });
        let everywhere = refused.iter().all(is_lost);
        let (lost, other): (Vec<_>, Vec<_>) = refused.into_iter().partition(is_lost);
        match (lost.into_iter().next(), other.into_iter().next()) {
            (Some(lost), _) => {
                tracing::error!(reason = %lost, everywhere, "the database is not trusted");
                if everywhere { self.lost.get_or_init(|| lost).clone() } else { lost }
            }
            (None, Some(other)) => other,
            (None, None) => OpenError::Unreachable("there is no host".to_owned()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Last {
    /// Verifies that a server with commits up to `found` has this commit.
    pub(crate) async fn is_in(self, session: &Session, found: u64) -> Result<(), OpenError> {
        let known = self.position;
        if found < known {
            return Err(OpenError::Lost { known, found });
        }
        let (Some(set), Ok(at)) = (self.set, i64::try_from(known)) else { return Ok(()) };
        let rows = session.query_once(SET_IS_AT, &[&at, &set.to_i64()]).await?;
        if rows.is_empty() { Err(OpenError::Rewritten { known }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> OpenError {
        OpenError::Lost { known: 9, found: 8 }
    }

    #[test]
    fn hosts_are_never_trusted_again_once_all_lack_confirmed_commits() {
        let history = History::new(9);
        // An unreachable host may have the commits: the next attempt may find them.
        let away = OpenError::Unreachable("no answer".to_owned());
        assert_eq!(history.explain(vec![away.clone(), lost()]), lost());
        assert_eq!(history.is_whole(), Ok(()));
        assert_eq!(history.explain(vec![away.clone(), OpenError::Standby]), away);
        assert_eq!(history.is_whole(), Ok(()));
        let rewritten = OpenError::Rewritten { known: 9 };
        assert_eq!(history.explain(vec![rewritten.clone(), lost()]), rewritten);
        assert_eq!(history.is_whole(), Err(rewritten));
    }
}
