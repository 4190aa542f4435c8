//! Which claim made what, and claims that made nothing.

use super::report::Report;
use super::rows::Rows;
use counterfoil_core::idempotency::claim::{ClaimId, Resource, State};
use counterfoil_core::types::id::{ChargeId, OperationId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::HashMap;

/// A claim, and whose it is.
type Maker = (TenantId, ClaimId);

/// The claims behind charges, operations and payouts, as they were listed. Later ones are found by their work.
#[derive(Default)]
pub(super) struct Makers {
    charges: HashMap<ChargeId, Maker>,
    operations: HashMap<OperationId, Maker>,
    payouts: HashMap<PayoutId, Maker>,
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
                after = Some((claim.tenant, claim.id, claim.subject));
                all.note(claim.subject, claim.makes, (claim.tenant, claim.id));
            }
            if after == last {
                return Ok(all);
            }
        }
    }

    fn note(&mut self, subject: SubjectId, makes: Resource, claim: Maker) {
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
        self.charges.get(&charge).map(|(_, claim)| *claim)
    }

    pub(super) fn of_operation(&self, operation: OperationId) -> Option<ClaimId> {
        self.operations.get(&operation).map(|(_, claim)| *claim)
    }

    pub(super) fn of_payout(&self, payout: PayoutId) -> Option<ClaimId> {
        self.payouts.get(&payout).map(|(_, claim)| *claim)
    }

    /// Claims whose charge, operation or payout is not there at all. An operation that was refused has only its settled claim.
    pub(super) async fn check_orphans<S: Store>(
        &self,
        store: &S,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        let charges: Vec<(ChargeId, TenantId)> =
            self.charges.iter().map(|(id, (of, _))| (*id, *of)).collect();
        for chunk in charges.chunks(SCAN_MAX) {
            let keys = chunk.iter().map(|(id, of)| RowKey::Charge(*of, *id));
            let rows = Rows::read(store, keys.collect()).await?;
            for (id, _) in chunk.iter().filter(|(id, _)| rows.charge(*id).is_none()) {
                let broken = format!("a claim made charge {} which is not there", id.to_i64());
                report.note("claim_has_work", Some(broken));
            }
        }
        let payouts: Vec<(PayoutId, TenantId)> =
            self.payouts.iter().map(|(id, (of, _))| (*id, *of)).collect();
        for chunk in payouts.chunks(SCAN_MAX) {
            let keys = chunk.iter().map(|(id, of)| RowKey::Payout(*of, *id));
            let rows = Rows::read(store, keys.collect()).await?;
            for (id, _) in chunk.iter().filter(|(id, _)| rows.payout(*id).is_none()) {
                let broken = format!("a claim made payout {} which is not there", id.to_i64());
                report.note("claim_has_work", Some(broken));
            }
        }
        let operations: Vec<(OperationId, Maker)> =
            self.operations.iter().map(|(operation, claim)| (*operation, *claim)).collect();
        for chunk in operations.chunks(SCAN_MAX / 2) {
            let keys = chunk
                .iter()
                .flat_map(|(id, (of, claim))| [RowKey::Operation(*of, *id), RowKey::Claim(*of, *claim)])
                .collect();
            let rows = Rows::read(store, keys).await?;
            for (id, (_, claim)) in chunk.iter().filter(|(id, _)| rows.operation(*id).is_none()) {
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
