//! Operators resolve dead letters at any moment during the faults, and all remaining ones
//! afterwards.
//!
//! An operator never lies: `fail` is used only if the provider has not executed the step. Where the
//! engine cannot ask the provider, the operator's word counts, so a lie would be believed.

use super::cluster::Cluster;
use super::{answered, settle};
use crate::check::Violation;
use crate::executor::{Executor, lock};
use crate::provider::{Provider, TIMEOUT};
use crate::script::Ask;
use crate::store::START;
use counterfoil_core::payments::flow;
use counterfoil_core::saga::progress::Direction;
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::{DeadLetter, Resolution};
use std::sync::{Arc, Mutex};

/// Dead letters resolved after the faults, per run and tenant.
const LETTERS_MAX: u64 = 6;

pub(super) struct Operator {
    pub(super) provider: Arc<Mutex<Provider>>,
    pub(super) executor: Executor,
    /// Whether the faults are over.
    pub(super) is_quiet: bool,
}

impl Operator {
    /// Decides on a dead letter.
    pub(super) fn decides(&self, letter: &DeadLetter, how: u64) -> Resolution {
        match how {
            0 => Resolution::Adopt,
            1 => Resolution::Void,
            2 if self.is_quiet && self.has_not_happened(letter) => {
                Resolution::Fail { reason: "it is not at the provider".to_owned() }
            }
            _ => Resolution::Retry,
        }
    }

    /// Whether the step was not executed and no request for it can still arrive.
    fn has_not_happened(&self, letter: &DeadLetter) -> bool {
        let work = &letter.outbox;
        let Some(step) = flow::step(work.saga) else { return false };
        let payment = work.payment.reference(&super::references()).to_string();
        let provider = lock(&self.provider);
        let late = provider.profile().rules.late_delivery.ms().saturating_add(TIMEOUT.saturating_mul(2));
        let now = START.plus(Span::from_ms(self.executor.now()));
        let done = provider.effects.iter().any(|it| it.payment == payment && it.step == step);
        work.saga.progress.way == Direction::Forward
            && !done
            && now > work.history.last_sent_at.plus(Span::from_ms(late))
    }
}

/// After the faults: tries every resolution on each dead letter.
pub(super) fn settle_letters(cluster: &mut Cluster, violations: &mut Vec<Violation>) {
    for tenant in 1..=2 {
        let mut letter = 0;
        for _ in 0..LETTERS_MAX {
            let before = parked(cluster);
            if before == 0 {
                return;
            }
            for how in 0..super::frontend::RESOLUTIONS {
                let process = how % cluster.setup.processes.clamp(1, 3);
                let crashes = cluster.crashes;
                let place = cluster.ask(process, Ask::Resolve { tenant, letter, how }, None);
                // A listed fault may still kill or pause the process.
                let excused = |cluster: &Cluster| {
                    cluster.crashes > crashes || cluster.executor.paused_until().is_some()
                };
                if !answered(cluster, place) && !excused(cluster) {
                    let what = "an operator got no answer without faults".to_owned();
                    violations.push(Violation::new("liveness", "I9", what));
                    return;
                }
                settle::work_off(cluster, violations);
                if parked(cluster) < before || !violations.is_empty() {
                    break;
                }
            }
            // A dead letter that no resolution settles stays; try the next one.
            letter += u64::from(parked(cluster) >= before);
        }
    }
}

fn parked(cluster: &Cluster) -> u64 {
    lock(&cluster.machine).store.tally(START).parked
}
