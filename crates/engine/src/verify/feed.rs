//! The order of commits.

use super::report::VerifyReport;
use counterfoil_core::types::time::Time;
use counterfoil_store::{CommitReceipt, Committed, Position, ReadError, Store};

/// The last commit at this moment, found by bisection.
pub(super) async fn head<S: Store>(store: &S) -> Result<Position, ReadError> {
    let (mut behind, mut beyond) = (Position::START, None);
    loop {
        let probe = match beyond {
            None => behind.0.saturating_mul(2).max(1),
            Some(Position(beyond)) => behind.0.midpoint(beyond),
        };
        if probe <= behind.0 {
            return Ok(behind);
        }
        // The first commit from `probe` on. Its position is higher if positions are missing.
        let found = store.feed(Position(probe.saturating_sub(1)), 1).await?;
        match found.first() {
            Some(commit) => behind = commit.receipt.position,
            None => beyond = Some(Position(probe)),
        }
    }
}

/// The last commit of the walk.
pub(super) struct Order(CommitReceipt);

impl Default for Order {
    fn default() -> Order {
        Order(CommitReceipt { position: Position::START, at: Time::EPOCH })
    }
}

impl Order {
    pub(super) fn last(&self) -> Position {
        self.0.position
    }

    pub(super) fn see(&mut self, commit: &Committed, report: &mut VerifyReport) {
        let (Position(before), Position(position)) = (self.0.position, commit.receipt.position);
        let dense = position == before.saturating_add(1);
        let ordered = commit.receipt.at >= self.0.at;
        let broken = (!dense || !ordered).then(|| format!("commit {position} follows commit {before}"));
        report.note("commits_are_dense", broken);
        self.0 = commit.receipt;
    }
}
