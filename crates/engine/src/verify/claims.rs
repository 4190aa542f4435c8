//! Which claim made what, and claims that made nothing.

use super::report::Report;
use super::rows::Rows;
use counterfoil_core::idempotency::claim::{ClaimId, Resource, State};
use counterfoil_core::types::id::{ChargeId, OperationId, PayoutId, SubjectId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::HashMap;

/// The claims behind charges, operations and payouts, as they were listed. Later ones are found by their work.
#[derive(Default)]
pub(super) struct Makers {
    charges: HashMap<ChargeId, ClaimId>,
    operations: HashMap<OperationId, ClaimId>,
    payouts: HashMap<PayoutId, ClaimId>,
}

impl Makers {
    pub(super) async fn list<S: Store>(store: &S) -> Result<Makers, ReadError> {
        let (mut all, mut after) = (Makers::default(), None);
        loop {
            let page = store.scan(Scan::Claims { after, limit: SCAN_MAX }).await?;
            let claims = page
                .into_iter()
                .filter_map(|row| if let Row::Claim(claim) = row { Some(claim) } else { None });
            let last = after;
            for claim in claims {
                after = Some(claim.subject);
                all.note(claim.subject, claim.makes, claim.id);
            }
            if after == last {
                return Ok(all);
            }
        }
    }

    fn note(&mut self, subject: SubjectId, makes: Resource, claim: ClaimId) {
        match makes {
            Resource::Charge => {
                self.charges.insert(subject.into(), claim);
            }
            Resource::Capture | Resource::Void | Resource::Refund => {
                self.operations.insert(subject.into(), claim);
            }
            Resource::Payout => {
                self.payouts.insert(subject.into(), claim);
            }
            Resource::Account
            | Resource::Asset
            | Resource::Transfer
            | Resource::Transaction
            | Resource::Bulk
            | Resource::Shards
            | Resource::Resolution => {}
        }
    }

    pub(super) fn of_charge(&self, charge: ChargeId) -> Option<ClaimId> {
        self.charges.get(&charge).copied()
    }

    pub(super) fn of_operation(&self, operation: OperationId) -> Option<ClaimId> {
        self.operations.get(&operation).copied()
    }

    pub(super) fn of_payout(&self, payout: PayoutId) -> Option<ClaimId> {
        self.payouts.get(&payout).copied()
    }

    /// Claims whose charge, operation or payout is not there at all. An operation that was refused has only its settled claim.
    pub(super) async fn check_orphans<S: Store>(
        &self,
        store: &S,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        let charges: Vec<ChargeId> = self.charges.keys().copied().collect();
        for chunk in charges.chunks(SCAN_MAX) {
            let rows = Rows::read(store, chunk.iter().map(|id| RowKey::Charge(*id)).collect()).await?;
            for id in chunk.iter().filter(|id| rows.charge(**id).is_none()) {
                let broken = format!("a claim made charge {} which is not there", id.to_i64());
                report.note("claim_has_work", Some(broken));
            }
        }
        let payouts: Vec<PayoutId> = self.payouts.keys().copied().collect();
        for chunk in payouts.chunks(SCAN_MAX) {
            let rows = Rows::read(store, chunk.iter().map(|id| RowKey::Payout(*id)).collect()).await?;
            for id in chunk.iter().filter(|id| rows.payout(**id).is_none()) {
                let broken = format!("a claim made payout {} which is not there", id.to_i64());
                report.note("claim_has_work", Some(broken));
            }
        }
        let operations: Vec<(OperationId, ClaimId)> =
            self.operations.iter().map(|(operation, claim)| (*operation, *claim)).collect();
        for chunk in operations.chunks(SCAN_MAX / 2) {
            let keys = chunk
                .iter()
                .flat_map(|(id, claim)| [RowKey::Operation(*id), RowKey::Claim(*claim)])
                .collect();
            let rows = Rows::read(store, keys).await?;
            for (id, claim) in chunk.iter().filter(|(id, _)| rows.operation(*id).is_none()) {
                let unsettled = rows.claim(*claim, (*id).into()).is_some_and(|claim| is_open(&claim.state));
                let broken = unsettled
                    .then(|| format!("a claim works on operation {} which is not there", id.to_i64()));
                report.note("claim_has_work", broken);
            }
        }
        Ok(())
    }
}

/// Whether a claim is still to be settled.
pub(super) fn is_open(state: &State) -> bool {
    match state {
        State::InFlight(_) | State::FailedRetry { .. } | State::Uncertain(_) => true,
        State::Completed(_) | State::FailedTerminal(_) | State::Expired { .. } => false,
    }
}
