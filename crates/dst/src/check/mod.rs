//! The checks compare the clients' answers, the provider's effects and the store's rows. They share
//! no code with the engine. The engine's own verification runs as well, as one more witness.
//!
//! | check | invariants |
//! |---|---|
//! | [`effects`] | I1 one effect per payment and step; I5 no call without a leased claim; I7 successes have effects, failures have none, reported declines happened, no charge is both captured and voided, refunds never exceed captures |
//! | [`answers`] | I2 byte-identical replays; I13 a different request under a key is never executed; I17 tenants are separate; I19 acknowledged writes are stored |
//! | [`ledger`] | I3, I4 sums are zero at every prefix; I6 floors and caps at every prefix; I7, I21 postings equal captures; I8, I20 balances equal the fold |
//! | `payouts` | I1 one effect per payout; I7 status equals effects; with [`ledger`], I6 never above the available balance |
//! | [`reserved`] | I7 reservations of wallets, refunds and payouts end as the payment does; I9 parked work is a dead letter |
//! | [`waits`] | R26 waits are random |
//! | [`order`] | I10 legal transitions, growing fencing tokens and revisions; I11 audit records with the effects; I14 unique ids; dense positions; no work lost at any prefix |
//! | the run itself | I9 all work ends or is a dead letter; I22 same seed, same trace |
//!
//! I12 (proofs), I15 (regions), I16 (webhooks) and I18 (secrets in outputs) have no evidence here
//! yet.

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

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub check: &'static str,
    pub invariant: &'static str,
    pub what: String,
}

impl Violation {
    pub fn new(check: &'static str, invariant: &'static str, what: String) -> Violation {
        Violation { check, invariant, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.invariant, self.check, self.what)
    }
}

/// Checks with a known defect that is not fixed yet. The list should be empty.
pub const OPEN: &[&str] = &[];

/// The evidence for the checks.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Requests of clients and their answers.
    pub calls: Vec<ClientCall>,
    /// Steps executed by the provider.
    pub effects: Vec<Effect>,
    /// Steps declined by the provider, by payment and step name.
    pub declines: BTreeSet<(String, &'static str)>,
    /// Started calls.
    pub sent: Vec<Sent>,
    /// Keys used for two requests, and steps repeated under another key.
    pub misuses: Vec<String>,
    /// Every commit.
    pub history: Vec<Applied>,
    /// Every row at the end.
    pub rows: BTreeMap<RowKey, Arc<Row>>,
    /// Time at the end, in virtual milliseconds.
    pub now: u64,
    /// Findings of the engine's own verification.
    pub verified: Vec<String>,
}

impl Evidence {
    pub fn row(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key).map(Arc::as_ref)
    }

    /// Finds a row by id. `key` builds the key for each tenant; ids are unique over all tenants.
    pub fn find_row(&self, key: impl Fn(TenantId) -> RowKey) -> Option<&Row> {
        TENANTS.iter().find_map(|tenant| self.row(&key(*tenant)))
    }

    /// Every row at the end.
    pub fn each(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().map(Arc::as_ref)
    }

    /// Takes the evidence out of a finished run.
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

/// Polls a future once; `None` if it waits.
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

/// Runs all checks.
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
