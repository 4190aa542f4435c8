//! Invariants of a whole store, checked from its rows: on a stopped store, or on a live one from consistent
//! snapshots. It shares no state with the engine and changes nothing.

mod charges;
mod feed;
mod report;

pub use report::{Finding, Report};

use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::reference::References;
use counterfoil_store::{ReadError, Store};

/// Checks every invariant. `progress` is told how many rows were looked at so far.
pub async fn verify<S: Store>(store: &S, progress: impl Fn(u64)) -> Result<Report, ReadError> {
    let references = References::new(MacKey::new(store.secret().reveal()));
    let mut report = Report::default();
    charges::check(store, &references, &mut report, &progress).await?;
    feed::check(store, &mut report, &progress).await?;
    Ok(report)
}
