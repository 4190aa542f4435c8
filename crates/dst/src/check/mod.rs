//! The checks: what clients heard, what the provider did and what the store keeps, held against each other. They share
//! no code with the engine; its own verification is run too, as one more witness.
//!
//! | check | invariants |
//! |---|---|
//! | [`effects`] | I1 one effect per payment and step; I5 no call without a claim in the caller's hands; I7 every success has its effect, every failure none, every decline was one, nothing is both captured and voided, no more is given back than taken |
//! | [`answers`] | I2 byte-identical replays; I13 another request under a key is never executed; I17 tenants apart; I19 what was acknowledged is there |
//! | [`ledger`] | I3, I4 sums are zero at every prefix; I6 floors and caps at every prefix; I7, I21 postings equal captures; I8, I20 balances equal the fold |
//! | `payouts` | I1 one effect per payout; I7 paid is paid, failed is not; with [`ledger`], I6 never more than was available |
//! | [`reserved`] | I7 what a wallet, a refund or a payout reserves ends as its payment does; I9 what is parked is a dead letter |
//! | [`waits`] | R26 waits are spread by chance |
//! | [`order`] | I10 lawful transitions, growing fences and revisions; I11 audit with its effect; I14 unique ids; dense positions; no work lost at any prefix |
//! | the run itself | I9 everything ends or is parked in sight; I22 same seed, same trace |
//!
//! I12 (proofs), I15 (regions), I16 (webhooks) and I18 (secrets in outputs) have nothing to look at here yet.

pub mod answers;
pub mod effects;
pub mod ledger;
pub mod order;
mod payouts;
pub mod reserved;
pub mod waits;

use crate::client::ClientCall;
use crate::executor::lock;
use crate::provider::{Effect, Sent};
use crate::run::Cluster;
use crate::store::{Applied, DirectStore, TENANTS};
use counterfoil_core::types::id::TenantId;
use counterfoil_store::{Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which check found it.
    pub check: &'static str,
    /// Which invariant it breaks.
    pub invariant: &'static str,
    /// What was found.
    pub what: String,
}

impl Violation {
    /// A violation.
    pub fn new(check: &'static str, invariant: &'static str, what: String) -> Violation {
        Violation { check, invariant, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.invariant, self.check, self.what)
    }
}

/// Checks that find a defect which is reported and not repaired yet. The list should be empty.
pub const OPEN: &[&str] = &[];

/// What the checks look at.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What clients asked and heard.
    pub calls: Vec<ClientCall>,
    /// What the provider did.
    pub effects: Vec<Effect>,
    /// What the provider refused: the payment and the step.
    pub declines: BTreeSet<(String, &'static str)>,
    /// Calls that were begun.
    pub sent: Vec<Sent>,
    /// Keys that were used for two things, and things that were done under two keys.
    pub misuses: Vec<String>,
    /// Every commit.
    pub history: Vec<Applied>,
    /// Every row at the end.
    pub rows: BTreeMap<RowKey, Arc<Row>>,
    /// Virtual milliseconds at the end.
    pub now: u64,
    /// What the engine's own verification finds.
    pub verified: Vec<String>,
}

impl Evidence {
    /// A row at the end.
    pub fn row(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key).map(Arc::as_ref)
    }

    /// The row with this key under whichever tenant has it; ids are unique over all tenants.
    pub fn find_row(&self, key: impl Fn(TenantId) -> RowKey) -> Option<&Row> {
        TENANTS.iter().find_map(|tenant| self.row(&key(*tenant)))
    }

    /// Every row at the end.
    pub fn each(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().map(Arc::as_ref)
    }

    /// The evidence of a run that has ended. It is taken out of the run: nothing is left there.
    pub fn of(cluster: &Cluster) -> Evidence {
        let still = DirectStore::new(Arc::clone(&cluster.machine));
        let verified = match poll_once(counterfoil_engine::verify::verify(&still, |_| {})) {
            Some(Ok(report)) => {
                let findings = report.findings().into_iter().filter(|finding| finding.violations > 0);
                findings.map(|finding| format!("{}: {:?}", finding.invariant, finding.examples)).collect()
            }
            Some(Err(error)) => vec![error.to_string()],
            None => vec!["verification waits for something".to_owned()],
        };
        let (rows, history) = lock(&cluster.machine).store.take();
        let mut provider = lock(&cluster.provider);
        Evidence {
            calls: std::mem::take(&mut lock(&cluster.calls)),
            effects: std::mem::take(&mut provider.effects),
            declines: std::mem::take(&mut provider.declines),
            sent: std::mem::take(&mut provider.sent),
            misuses: std::mem::take(&mut provider.misuses),
            history,
            rows,
            now: cluster.executor.now(),
            verified,
        }
    }
}

/// The answer of a future that never waits.
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// Everything that must not be.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    effects::check(evidence, &mut found);
    answers::check(evidence, &mut found);
    ledger::check(evidence, &mut found);
    reserved::check(evidence, &mut found);
    order::check(evidence, &mut found);
    waits::check(evidence, &mut found);
    found.extend(evidence.verified.iter().map(|what| Violation::new("verify", "I10", what.clone())));
    found
}
