//! Concluding an attempt: the core's decision becomes one change set. The engine offers the set
//! until the store commits or refuses it, or the lease ends.

use crate::commit::NotCommitted;
use crate::drive::AttemptResult;
use crate::engine::Inner;
use crate::ledger::payments::{Booking, Credit};
use crate::ledger::spread::{Blocked, scatter};
use crate::present::Made;
use crate::waiters::{InterimNews, News};
use crate::world::World;
use counterfoil_core::audit::{AuditKind, AuditRecord, record_id};
use counterfoil_core::idempotency::claim::{Claim, ClaimEvent, ClaimId, ClaimState, IllegalMove, Settled};
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::outbox::{Outbox, ParkReason};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::follow::{Consequences, NextStep, follow};
use counterfoil_core::payments::operation;
use counterfoil_core::payments::{PaymentSubject, Work};
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, CommitRefusal, RefusalReason, Row, RowKey, Store};
use std::sync::Arc;

/// Backoff between offers of a known outcome. Offers end at the lease's ceiling.
const OFFER: Backoff = Backoff { base: Span::from_ms(100), cap: Span::from_ms(2_000) };
/// `Retry-After` of a parked payment.
const PARKED_RETRY: Span = Span::from_ms(60_000);

/// Result of a conclusion.
pub(crate) enum Concluded {
    /// News for the requests that wait for the claim.
    News(ClaimId, News),
    /// The next step is due, under the same lease.
    NextStep(Box<Work>),
}

/// A change set to commit, and its consequence.
pub(crate) struct Conclusion {
    pub(crate) set: ChangeSet,
    pub(crate) ledger: Vec<SagaAction>,
    /// The work as it stands after the commit.
    pub(crate) work: Box<Work>,
    pub(crate) concluded: Concluded,
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Commits the consequences of an attempt. `None`: a writer with a higher fencing token was
    /// faster, or the store did not take the set. Recovery continues the work.
    pub(crate) async fn conclude(
        &self,
        mut work: Box<Work>,
        result: &AttemptResult,
        interim: &InterimNews,
    ) -> Option<Concluded> {
        let ceiling = work.claim.state.lease().map_or(Time::EPOCH, |lease| lease.ceiling);
        let mut offer: u32 = 0;
        loop {
            let now = self.store.now();
            match self.offer(&work, result, now).await {
                Ok(concluded) => {
                    if let Concluded::News(_, News::Settled(claim)) = &concluded {
                        self.cache_answer(Arc::clone(claim));
                    }
                    return Some(concluded);
                }
                Err(NotCommitted::Refused(refusal)) => match changed_by_sibling(&work, refusal) {
                    Ok(subject) => {
                        work.subject = subject;
                        continue;
                    }
                    Err(refusal) => {
                        tracing::warn!(fence = work.claim.fence, ?refusal.reason, "the write of a former lease holder was refused; nothing changed");
                        return None;
                    }
                },
                Err(NotCommitted::Unavailable(why)) => {
                    tracing::error!(why, "an outcome could not be stored yet");
                }
                Err(NotCommitted::InDoubt) => tracing::error!("the commit of an outcome is in doubt"),
            }
            let pending = pending(&work, Span::from_ms(1_000));
            self.waiters.tell(work.claim.id, &pending);
            interim.tell(pending);
            if now >= ceiling || self.is_stopped() {
                return None;
            }
            offer = offer.saturating_add(1);
            self.pause(OFFER, offer).await;
        }
    }

    async fn offer(&self, work: &Work, result: &AttemptResult, now: Time) -> Result<Concluded, NotCommitted> {
        let defect = |what: &str| NotCommitted::Unavailable(format!("{what} is a defect to report"));
        let follow = follow(work, &result.verdict, now).ok_or_else(|| defect("a saga without definition"))?;
        let conclusion = self
            .conclusion(work, (result.kind, &result.detail), follow, now)
            .await?
            .map_err(|illegal| defect(&format!("{illegal:?}")))?;
        self.settle_ledger(conclusion, now).await
    }

    /// Commits a conclusion with the ledger entries. Money that the provider has taken is always
    /// posted: to suspense if the destination cannot take it.
    pub(crate) async fn settle_ledger(
        &self,
        conclusion: Conclusion,
        now: Time,
    ) -> Result<Concluded, NotCommitted> {
        let Conclusion { set, ledger, work, concluded } = conclusion;
        if ledger.is_empty() {
            return self.commit(set).await.map(|_| concluded);
        }
        // A reservation's end moves the same shards as its beginning.
        let seed = work.outbox.hold.map_or_else(|| self.world.chance(), |hold| scatter(hold.to_i64()));
        for credit in [Credit::Destination, Credit::Suspense] {
            let booking = self.book(&ledger, &work, credit, now).await;
            let Booking { changes, deltas } = booking.map_err(NotCommitted::Unavailable)?;
            if deltas.is_empty() {
                // No guarded balance moves, so none can refuse.
                let set = changes.into_iter().fold(set, ChangeSet::with);
                return self.commit(set).await.map(|_| concluded);
            }
            let set = changes.into_iter().fold(set.clone(), ChangeSet::with);
            match self.commit_moving(&set, &deltas, seed).await {
                Ok(_) => return Ok(concluded),
                Err(Blocked::Unfit(unfit)) => {
                    let payment = work.outbox.payment.reference(&self.references);
                    tracing::error!(%payment, ?unfit, "a captured charge does not fit its account and goes to suspense");
                }
                Err(Blocked::Refused(refusal)) => return Err(NotCommitted::Refused(refusal)),
                Err(Blocked::Failed(error)) => return Err(error),
            }
        }
        let why = "the suspense account does not take the charge, which is a defect to report";
        Err(NotCommitted::Unavailable(why.into()))
    }

    /// Builds the set for `follow`.
    pub(crate) async fn conclusion(
        &self,
        work: &Work,
        (kind, detail): (AuditKind, &str),
        follow: Consequences,
        now: Time,
    ) -> Result<Result<Conclusion, IllegalMove>, NotCommitted> {
        let Some(id) = self.next_id(now).await else {
            return Err(NotCommitted::Unavailable("no id can be minted".into()));
        };
        let claim = &work.claim;
        let learned = AuditRecord {
            id: record_id(now, work.audit_order().saturating_add(1), self.world.chance()),
            tenant: claim.tenant,
            subject: work.outbox.payment.subject(),
            at: now,
            fence: claim.fence,
            kind,
            detail: detail.to_owned(),
        };
        let Consequences { subject, ledger, next_step } = follow;
        let after = Box::new(Work { subject, claim: claim.clone(), outbox: work.outbox.clone() });
        let draft = Draft { id: SetId::from_i64(id), before: work, after, ledger, learned };
        Ok(self.draft(draft, next_step, now))
    }

    fn draft(&self, draft: Draft<'_>, next_step: NextStep, now: Time) -> Result<Conclusion, IllegalMove> {
        let claim = &draft.before.claim;
        let windows = || self.policy.windows.windows(claim.id, now);
        match next_step {
            NextStep::Completed => {
                let settled = Settled { reply: self.done(&draft.after.subject), windows: windows() };
                draft.settle(ClaimEvent::Completed(settled))
            }
            NextStep::Failed(failure) => {
                let reply = self.present.failure(&draft.after.subject, &failure, claim.request);
                let settled = Settled { reply, windows: windows() };
                draft.settle(ClaimEvent::Failed(settled))
            }
            NextStep::CallProvider(outbox) => {
                let until = now.plus(self.policy.lease.lease);
                draft.next_step(outbox, until)
            }
            NextStep::Retry { at_least, outbox } => {
                let wait = self.policy.backoff.wait_at_least(at_least, claim.attempts, self.dice());
                let not_before = now.plus(wait);
                // An uncertain claim stays uncertain until there is evidence.
                let doubted = matches!(claim.state, ClaimState::Uncertain(_));
                let event = if doubted {
                    ClaimEvent::Doubted { not_before }
                } else {
                    ClaimEvent::PutOff { not_before }
                };
                draft.postpone(outbox, event, not_before)
            }
            NextStep::Doubt { not_before, outbox } => {
                let wait = self.policy.backoff.wait(claim.attempts, self.dice());
                let not_before = not_before.max(now.plus(wait));
                draft.postpone(outbox, ClaimEvent::Doubted { not_before }, not_before)
            }
            NextStep::Parked(outbox) => {
                let payment = outbox.payment.reference(&self.references);
                let reason = outbox.parked.map_or("unknown", ParkReason::name);
                let flow = outbox.saga.flow.name();
                tracing::error!(%payment, flow, reason, "a payment is parked and needs a human");
                draft.park(outbox)
            }
        }
    }

    /// The answer to completed work.
    fn done(&self, subject: &PaymentSubject) -> Reply {
        match subject {
            PaymentSubject::Charge(charge, None) => self.present.charge(charge, Made::Created),
            PaymentSubject::Charge(charge, Some(operation)) => match operation.kind {
                operation::OperationKind::Capture | operation::OperationKind::Void => {
                    self.present.charge(charge, Made::Changed)
                }
                operation::OperationKind::Refund => self.present.refund(operation, charge),
            },
            PaymentSubject::Payout(payout) => self.present.payout(payout),
        }
    }
}

/// News that the outcome is not known yet.
pub(crate) fn pending(work: &Work, retry_after: Span) -> News {
    News::Pending { payment: work.outbox.payment, retry_after }
}

/// The subject to decide again on, if another refund has changed the charge meanwhile: refunds of
/// one charge run concurrently. All other work locks the charge, so a changed charge means a lost
/// lease.
fn changed_by_sibling(
    work: &Work,
    refusal: Box<CommitRefusal>,
) -> Result<PaymentSubject, Box<CommitRefusal>> {
    match (work.subject.operation(), *refusal) {
        (
            Some(refund),
            CommitRefusal { reason: RefusalReason::Stale, found: Some(Row::Charge(charge)), .. },
        ) if refund.kind == operation::OperationKind::Refund => {
            Ok(PaymentSubject::Charge(charge, Some(refund.clone())))
        }
        (_, other) => Err(Box::new(other)),
    }
}

/// Adds the rows of the subject that changed.
fn with_changed(set: ChangeSet, before: &PaymentSubject, after: &PaymentSubject) -> ChangeSet {
    match (before, after) {
        (PaymentSubject::Charge(was, had), PaymentSubject::Charge(charge, operation)) => {
            let set = if was == charge { set } else { set.replace(charge.clone(), was.revision) };
            match (had, operation) {
                (Some(had), Some(operation)) if had != operation => {
                    set.replace(operation.clone(), had.revision)
                }
                _ => set,
            }
        }
        (PaymentSubject::Payout(was), PaymentSubject::Payout(payout)) if was != payout => {
            set.replace(payout.clone(), was.revision)
        }
        _ => set,
    }
}

/// The parts that all conclusions share.
struct Draft<'a> {
    id: SetId,
    before: &'a Work,
    /// The work after the commit.
    after: Box<Work>,
    ledger: Vec<SagaAction>,
    learned: AuditRecord,
}

impl Draft<'_> {
    fn settle(mut self, event: ClaimEvent) -> Result<Conclusion, IllegalMove> {
        let claim = self.before.claim.on(event)?;
        let answer = claim.state.settled().map_or(0, |settled| settled.reply.status);
        let detail = format!("status={} answer={answer}", self.after.subject.status());
        let work = &self.before.outbox;
        let done = (RowKey::Outbox(work.tenant, work.id), work.revision);
        let set = self.changed(&claim).remove(done.0, done.1);
        let set = self.audited(set, Some((AuditKind::Settled, detail)));
        self.after.claim = claim.clone();
        let news = Concluded::News(claim.id, News::Settled(Arc::new(claim)));
        Ok(self.conclusion(set, news))
    }

    fn next_step(mut self, outbox: Outbox, until: Time) -> Result<Conclusion, IllegalMove> {
        let claim = self.before.claim.on(ClaimEvent::Renewed { until })?;
        let due_at = claim.state.lease().map_or(until, |lease| lease.until);
        let outbox = Outbox { due_at, ..outbox };
        let set = self.changed(&claim).replace(outbox.clone(), self.before.outbox.revision);
        let set = self.audited(set, None);
        (self.after.claim, self.after.outbox) = (claim, outbox);
        let next = Concluded::NextStep(self.after.clone());
        Ok(self.conclusion(set, next))
    }

    fn postpone(
        mut self,
        outbox: Outbox,
        event: ClaimEvent,
        not_before: Time,
    ) -> Result<Conclusion, IllegalMove> {
        let wait = not_before.since(self.learned.at);
        let claim = self.before.claim.on(event)?;
        let outbox = Outbox { due_at: not_before, ..outbox };
        let set = self.changed(&claim).replace(outbox, self.before.outbox.revision);
        let set = self.audited(set, Some((AuditKind::Pending, format!("wait_ms={}", wait.ms()))));
        let news = Concluded::News(claim.id, pending(self.before, wait));
        Ok(self.conclusion(set, news))
    }

    fn park(mut self, outbox: Outbox) -> Result<Conclusion, IllegalMove> {
        let reason = outbox.parked.map_or("unknown", ParkReason::name);
        let detail = format!("reason={reason}");
        let claim = self.before.claim.on(ClaimEvent::Doubted { not_before: Time::MAX })?;
        let set = self.changed(&claim).replace(outbox, self.before.outbox.revision);
        let set = self.audited(set, Some((AuditKind::Parked, detail)));
        let news = Concluded::News(claim.id, pending(self.before, PARKED_RETRY));
        Ok(self.conclusion(set, news))
    }

    /// A set with the claim first, so that a lost lease is the first reason for a refusal.
    /// Unchanged rows stay out.
    fn changed(&self, claim: &Claim) -> ChangeSet {
        let set = ChangeSet::new(self.id).replace(claim.clone(), self.before.claim.revision);
        with_changed(set, &self.before.subject, &self.after.subject)
    }

    /// Adds the record of the attempt, then the record of the consequence.
    fn audited(&mut self, set: ChangeSet, follows: Option<(AuditKind, String)>) -> ChangeSet {
        let detail = std::mem::take(&mut self.learned.detail);
        let set = set.insert(AuditRecord { detail, ..self.learned.clone() });
        match follows {
            Some((kind, detail)) => {
                set.insert(AuditRecord { id: self.learned.id.after(1), kind, detail, ..self.learned.clone() })
            }
            None => set,
        }
    }

    fn conclusion(self, set: ChangeSet, concluded: Concluded) -> Conclusion {
        Conclusion { set, ledger: self.ledger, work: self.after, concluded }
    }
}
