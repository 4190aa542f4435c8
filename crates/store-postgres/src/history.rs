//! What this process knows of the history of commits. A server that comes back without it, or with another one, is not served; and once no
//! host is left that might have it, none is trusted again: what was confirmed is gone, whatever is added there.

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

    /// Why no host serves. If all of them lack what was confirmed, none is trusted any more; one that could not be asked may have it.
    pub(crate) fn why(&self, refused: Vec<OpenError>) -> OpenError {
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
    /// Whether a server has it; it has commits up to `found`.
    pub(crate) async fn is_in(self, session: &Session, found: u64, log: Log) -> Result<(), OpenError> {
        let known = self.position;
        if found < known {
            return Err(OpenError::Lost { known, found });
        }
        let (Some(set), Ok(at)) = (self.set, i64::try_from(known)) else { return Ok(()) };
        let questions: &[&str] = match log {
            Log::BySet => &[IS_SET],
            Log::ByGroup => &[IS_IN_GROUP, IS_SET],
        };
        for sql in questions {
            if !session.ask(sql, &[&at, &set.to_i64()]).await?.is_empty() {
                return Ok(());
            }
        }
        Err(OpenError::Rewritten { known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> OpenError {
        OpenError::Lost { known: 9, found: 8 }
    }

    #[test]
    fn nobody_is_trusted_again_once_no_host_has_what_was_confirmed() {
        let history = History::new(9);
        // One that is away may have it: the next look may find it.
        let away = OpenError::Unreachable("no answer".to_owned());
        assert_eq!(history.why(vec![away.clone(), lost()]), lost());
        assert_eq!(history.is_whole(), Ok(()));
        assert_eq!(history.why(vec![away.clone(), OpenError::Standby]), away);
        assert_eq!(history.is_whole(), Ok(()));
        let rewritten = OpenError::Rewritten { known: 9 };
        assert_eq!(history.why(vec![rewritten.clone(), lost()]), rewritten);
        assert_eq!(history.is_whole(), Err(rewritten));
    }
}
