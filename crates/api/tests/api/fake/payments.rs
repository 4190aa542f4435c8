//! Small payments: every operation the core allows is executed at once, by a provider that approves
//! everything.

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::create::NewCharge;
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums};
use counterfoil_core::payments::operation::launch::{Operate, OperationRefusal, allowed};
use counterfoil_core::payments::operation::{self, Operation, OperationKind};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::saga::progress::SagaProgress;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, ChargeId, OperationId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::{Made, Present};
use counterfoil_engine::service::{DeadLetter, RefundView, Resolution, Submitted};
use counterfoil_wire::present::Presenter;
use std::sync::Arc;

/// All payments, oldest first.
#[derive(Default)]
pub(crate) struct Payments {
    charges: Vec<Charge>,
    operations: Vec<Operation>,
    payouts: Vec<Payout>,
    letters: Vec<DeadLetter>,
}

fn provider() -> ProviderBinding {
    ProviderBinding { profile: "stripe".into(), endpoint: "http://provider:80".into() }
}

impl Payments {
    pub(crate) fn make(
        &mut self,
        tenant: TenantId,
        wanted: NewCharge,
        now: Time,
        present: &Presenter,
    ) -> Reply {
        let id = i64::try_from(self.charges.len()).unwrap() + 1;
        let destination = wanted.destination.unwrap_or(AccountId::from_i64(100 + tenant.to_i64()));
        let order = Arc::new(wanted.order(destination));
        let (status, captured) = if order.capture {
            (ChargeStatus::Succeeded, order.card())
        } else {
            (ChargeStatus::RequiresCapture, 0)
        };
        let charge = Charge {
            id: ChargeId::from_i64(id),
            tenant,
            order,
            status,
            sums: ChargeSums { captured, ..ChargeSums::default() },
            working: None,
            provider: provider(),
            provider_reference: Some(format!("pi_{id}")),
            failure: None,
            created_at: now,
            revision: 2,
        };
        let reply = present.charge(&charge, Made::Created);
        self.charges.push(charge);
        reply
    }

    pub(crate) fn charge(&self, tenant: TenantId, id: ChargeId) -> Option<Charge> {
        self.charges.iter().find(|charge| charge.id == id && charge.tenant == tenant).cloned()
    }

    pub(crate) fn charges(&self, tenant: TenantId, before: Option<ChargeId>, limit: usize) -> Vec<Charge> {
        let own = self.charges.iter().rev().filter(|charge| charge.tenant == tenant);
        own.filter(|charge| before.is_none_or(|before| charge.id < before)).take(limit).cloned().collect()
    }

    /// Executes an operation or returns the refusal.
    pub(crate) fn operate(
        &mut self,
        command: Operate,
        now: Time,
        present: &Presenter,
    ) -> Result<Reply, Submitted> {
        let Operate { request, charge, kind, amount } = command;
        let mut charge = self.charge(request.tenant, charge).ok_or(Submitted::NotFound)?;
        let minor = match allowed(kind, amount, &charge) {
            Ok(minor) => minor,
            Err(OperationRefusal::Busy) => return Err(Submitted::InProgress),
            Err(why) => return Ok(present.impossible(&charge, kind, why, request.id)),
        };
        let number = i64::try_from(self.operations.len()).unwrap() + 5_001;
        let operation = Operation {
            id: OperationId::from_i64(number),
            tenant: request.tenant,
            charge: charge.id,
            kind,
            amount: Money::new(minor, charge.order.amount.asset()).unwrap(),
            status: operation::OperationStatus::Succeeded,
            provider_reference: Some(format!("re_{number}")),
            failure: None,
            created_at: now,
            revision: 2,
        };
        match kind {
            OperationKind::Capture => {
                (charge.status, charge.sums.captured) = (ChargeStatus::Succeeded, minor);
            }
            OperationKind::Void => charge.status = ChargeStatus::Voided,
            OperationKind::Refund => {
                charge.sums.refunded += minor;
                let whole = charge.sums.refundable() == 0;
                charge.status = if whole { ChargeStatus::Refunded } else { ChargeStatus::PartiallyRefunded };
            }
        }
        let reply = match kind {
            OperationKind::Capture | OperationKind::Void => present.charge(&charge, Made::Changed),
            OperationKind::Refund => present.refund(&operation, &charge),
        };
        self.charges.iter_mut().filter(|one| one.id == charge.id).for_each(|one| *one = charge.clone());
        self.operations.push(operation);
        Ok(reply)
    }

    pub(crate) fn refund(&self, tenant: TenantId, id: OperationId) -> Option<RefundView> {
        self.refunds(tenant, None, usize::MAX).into_iter().find(|(refund, _)| refund.id == id)
    }

    pub(crate) fn refunds(
        &self,
        tenant: TenantId,
        before: Option<OperationId>,
        limit: usize,
    ) -> Vec<RefundView> {
        let own = self.operations.iter().rev();
        own.filter(|one| one.tenant == tenant && one.kind == OperationKind::Refund)
            .filter(|one| before.is_none_or(|before| one.id < before))
            .take(limit)
            .map(|one| (one.clone(), self.charge(tenant, one.charge).unwrap()))
            .collect()
    }

    pub(crate) fn pay_out(
        &mut self,
        tenant: TenantId,
        wanted: payout::create::NewPayout,
        now: Time,
        present: &Presenter,
    ) -> Reply {
        let number = i64::try_from(self.payouts.len()).unwrap() + 7_001;
        let payout = Payout {
            id: PayoutId::from_i64(number),
            tenant,
            order: Arc::new(payout::PayoutOrder {
                amount: wanted.amount,
                account: wanted.account.unwrap_or(AccountId::from_i64(100 + tenant.to_i64())),
                destination: wanted.destination,
                description: wanted.description,
                metadata: wanted.metadata,
            }),
            status: payout::PayoutStatus::Paid,
            provider: provider(),
            provider_reference: Some(format!("po_{number}")),
            failure: None,
            created_at: now,
            revision: 2,
        };
        let reply = present.payout(&payout);
        self.payouts.push(payout);
        reply
    }

    pub(crate) fn payouts(&self, tenant: TenantId, before: Option<PayoutId>, limit: usize) -> Vec<Payout> {
        let own = self.payouts.iter().rev().filter(|payout| payout.tenant == tenant);
        own.filter(|payout| before.is_none_or(|before| payout.id < before)).take(limit).cloned().collect()
    }

    /// Parks the newest charge and returns the number of its dead letter.
    pub(crate) fn park(&mut self, now: Time) -> SubjectId {
        let charge = self.charges.last().unwrap().clone();
        let outbox = Outbox {
            id: charge.id.into(),
            payment: Payment::Charge(charge.id),
            saga: Saga { flow: Flow::Charge, version: 1, progress: SagaProgress::START },
            hold: None,
            claim: ClaimId::from_digest(Digest::from_bytes([7; 32])),
            tenant: charge.tenant,
            provider: provider(),
            due_at: now,
            created_at: now,
            history: History::begun(now),
            parked: Some(ParkReason::NoEvidence),
            revision: 3,
        };
        let id = outbox.id;
        self.letters.push(DeadLetter { outbox, subject: PaymentSubject::Charge(charge, None) });
        id
    }

    pub(crate) fn letters(
        &self,
        tenant: TenantId,
        before: Option<SubjectId>,
        limit: usize,
    ) -> Vec<DeadLetter> {
        let own = self.letters.iter().rev().filter(|letter| letter.outbox.tenant == tenant);
        own.filter(|letter| before.is_none_or(|before| letter.outbox.id < before))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(crate) fn resolve(
        &mut self,
        tenant: TenantId,
        id: SubjectId,
        resolution: &Resolution,
        present: (&Presenter, Ulid),
    ) -> Result<Reply, Submitted> {
        let place = self.letters.iter().position(|one| one.outbox.id == id && one.outbox.tenant == tenant);
        let letter = self.letters.remove(place.ok_or(Submitted::NotFound)?);
        Ok(present.0.resolved(&letter, Ok(resolution), present.1))
    }
}
