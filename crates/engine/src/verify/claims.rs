//! Claims: the subjects they made, claims without a subject, and keys with two claims.

use super::report::VerifyReport;
use super::rows::Rows;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Resource};
use counterfoil_core::types::id::{ChargeId, OperationId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::{HashMap, HashSet};

/// A claim and its tenant.
type Maker = (TenantId, ClaimId);

/// The listed claims of charges, operations and payouts. Claims made later are found by their work.
#[derive(Default)]
pub(super) struct Makers {
    charges: HashMap<ChargeId, Maker>,
    operations: HashMap<OperationId, Maker>,
    payouts: HashMap<PayoutId, Maker>,
}

impl Makers {
    /// Lists all claims, and checks that no key has two.
    pub(super) async fn list<S: Store>(store: &S, report: &mut VerifyReport) -> Result<Makers, ReadError> {
        let (mut all, mut keys) = (Makers::default(), Vec::new());
        each(store, |claim| {
            all.note(claim.subject, claim.makes, (claim.tenant, claim.id));
            keys.push((key_prefix(claim.id), claim.subject));
            report.note("key_has_one_record", None);
        })
        .await?;
        keys.sort_unstable();
        let twins: HashSet<SubjectId> = keys
            .array_windows()
            .filter(|[(one, _), (other, _)]| one == other)
            .flat_map(|[(_, one), (_, other)]| [*one, *other])
            .collect();
        if !twins.is_empty() {
            check_again(store, &twins, report).await?;
        }
        Ok(all)
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

    /// Checks that every claim has its charge, operation or payout. A refused operation has only
    /// its settled claim.
    pub(super) async fn check_orphans<S: Store>(
        &self,
        store: &S,
        report: &mut VerifyReport,
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

/// Lists the keys again that had two claims. On a live store a key may have been claimed again
/// meanwhile; then only one claim is left.
async fn check_again<S: Store>(
    store: &S,
    twins: &HashSet<SubjectId>,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let mut there = HashMap::new();
    each(store, |claim| {
        if !twins.contains(&claim.subject) {
            return;
        }
        let broken = there
            .insert(claim.id, claim.subject)
            .map(|other| format!("the key of {} is that of {} too", claim.subject.to_i64(), other.to_i64()));
        report.note("key_has_one_record", broken);
    })
    .await
}

async fn each<S: Store>(store: &S, mut see: impl FnMut(&Claim)) -> Result<(), ReadError> {
    let mut after = None;
    loop {
        let page = store.scan(Scan::Claims { after, limit: SCAN_MAX }).await?;
        let last = after;
        for row in page {
            if let Row::Claim(claim) = row {
                after = Some((claim.tenant, claim.id, claim.subject));
                see(&claim);
            }
        }
        if after == last {
            return Ok(());
        }
    }
}

/// A prefix of the key that is long enough to find twins.
fn key_prefix(id: ClaimId) -> u64 {
    id.digest().as_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

pub(super) fn is_open(state: &ClaimState) -> bool {
    match state {
        ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } | ClaimState::Uncertain(_) => true,
        ClaimState::Completed(_) | ClaimState::FailedTerminal(_) | ClaimState::Expired { .. } => false,
    }
}
