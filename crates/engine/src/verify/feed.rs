//! The order of commits.

use super::report::Report;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Time;
use counterfoil_store::{Position, ReadError, Store};

pub(super) async fn check<S: Store>(
    store: &S,
    report: &mut Report,
    progress: &impl Fn(u64),
) -> Result<(), ReadError> {
    let (mut last, mut at) = (Position(0), Time::EPOCH);
    loop {
        let page = store.feed(last, SCAN_MAX).await?;
        if page.is_empty() {
            return Ok(());
        }
        for commit in page {
            let Position(position) = commit.receipt.position;
            let dense = position == last.0.saturating_add(1);
            let ordered = commit.receipt.at >= at;
            let broken = (!dense || !ordered).then(|| format!("commit {position} follows commit {}", last.0));
            report.note("commits_are_dense", broken);
            (last, at) = (commit.receipt.position, commit.receipt.at);
        }
        progress(last.0);
    }
}
