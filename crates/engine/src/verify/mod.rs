//! Verification: checks the invariants of a whole store from its rows. A live store is read in
//! consistent snapshots. Verification shares no state with the engine and changes nothing.

mod answers;
mod charges;
mod claims;
mod feed;
mod ledger;
mod operations;
mod payouts;
mod report;
mod rows;
mod timelines;
mod work;

pub use report::{Finding, VerifyReport};

use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::reference::References;
use counterfoil_store::{ReadError, Store};

/// Checks every invariant. `progress` receives the number of rows or commits checked so far.
pub async fn verify<S: Store>(store: &S, progress: impl Fn(u64)) -> Result<VerifyReport, ReadError> {
    let references = References::new(MacKey::new(store.secret().reveal()));
    let mut report = VerifyReport::default();
    let claims = claims::Makers::list(store, &mut report).await?;
    let tallies = operations::check(store, &claims, &references, &mut report).await?;
    let captured = charges::check(store, (&claims, &tallies), &references, &mut report, &progress).await?;
    payouts::check(store, &claims, &references, &mut report).await?;
    claims.check_orphans(store, &mut report).await?;
    work::check(store, &references, &mut report).await?;
    // Determined after the charges were read, so that all postings lie before the head.
    let head = feed::head(store).await?;
    let mut order = feed::Order::default();
    let mut walk = ledger::Walk::new(captured, references);
    loop {
        let mut page = store.feed(order.last(), SCAN_MAX).await?;
        page.retain(|commit| commit.receipt.position <= head);
        if page.is_empty() {
            break;
        }
        for commit in &page {
            order.see(commit, &mut report);
        }
        walk.take(store, &page, &mut report).await?;
        progress(order.last().0);
    }
    walk.finish(store, head, &mut report).await?;
    Ok(report)
}
