//! Dead letters: parked work that needs a human decision. A dead letter is listed with the
//! evidence. Its resolution uses the same decision as every other settlement, with a higher fencing
//! token, and is audited.

use crate::commit::NotCommitted;
use crate::conclude::{Concluded, Conclusion};
use crate::detach::DetachOnDrop;
use crate::engine::Inner;
use crate::refuse::{NewRefusal, RefusalResult, refusal_audit_order};
use crate::service::{DeadLetter, Resolution, Submitted, Unresolved};
use crate::submit::KeyState;
use crate::waiters::{InterimNews, News};
use crate::world::World;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::idempotency::claim::{Claim, ClaimEvent, Resource, Settled};
use counterfoil_core::idempotency::request::{Outcome as Ended, Request};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::attempt::judge::{AttemptVerdict, decline_is_one_of_several};
use counterfoil_core::payments::attempt::next::quiescent_at;
use counterfoil_core::payments::attempt::resume::take_over;
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::follow::{Consequences, follow, give_up, unpark};
use counterfoil_core::payments::provider::{
    Approval, Cause, LookupResult, ProviderOutcome, ProviderStep, Stands,
};
use counterfoil_core::payments::{Work, flow};
use counterfoil_core::saga::progress::Direction;
use counterfoil_core::types::id::{SetId, SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, ReadError, Row, RowKey, Scan, Store};
use std::sync::Arc;

/// Result of one attempt to resolve a dead letter.
enum ResolveResult {
    Done(Arc<Claim>),
    /// Another request holds the key.
    Taken(Box<Claim>),
    Unresolved(Unresolved),
    StoreFailed(String),
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn dead_letters(
        &self,
        tenant: TenantId,
        before: Option<SubjectId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, ReadError> {
        let rows = self.store.scan(Scan::ParkedOf { tenant, before, limit }).await?;
        let mut letters = Vec::with_capacity(rows.len());
        for row in rows {
            let Row::Outbox(outbox) = row else { continue };
            letters.extend(self.work(&outbox).await?.map(dead_letter));
        }
        Ok(letters)
    }

    pub(crate) async fn dead_letter(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> Result<Option<DeadLetter>, ReadError> {
        Ok(self.parked_work(tenant, id).await?.map(dead_letter))
    }

    async fn parked_work(&self, tenant: TenantId, id: SubjectId) -> Result<Option<Work>, ReadError> {
        let rows = self.store.read(vec![RowKey::Outbox(tenant, id)]).await?;
        let Some(Some(Row::Outbox(outbox))) = rows.into_iter().next() else { return Ok(None) };
        if outbox.parked.is_none() {
            return Ok(None);
        }
        Ok(self.work(&outbox).await?.filter(|work| work.outbox.parked.is_some()))
    }

    /// Resolves a dead letter. An operator who hangs up cancels nothing.
    pub(crate) async fn resolve_letter(
        self: &Arc<Self>,
        request: Request,
        id: SubjectId,
        resolution: Resolution,
    ) -> Submitted {
        let inner = Arc::clone(self);
        let resolving = async move { inner.resolve_now(request, id, resolution).await };
        DetachOnDrop::new(&self.world, resolving).await.unwrap_or(Submitted::InUse)
    }

    async fn resolve_now(
        self: &Arc<Self>,
        request: Request,
        id: SubjectId,
        resolution: Resolution,
    ) -> Submitted {
        if let Some(submitted) = self.cached_answer(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return self.replay_only(&request).await;
        }
        let _active = self.enter();
        let mut expired = None;
        for _ in 0..crate::submit::ROUNDS_MAX {
            let rows = self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await;
            let Ok(rows) = rows else { return Submitted::StoreUnavailable };
            if let Some(Some(Row::Claim(claim))) = rows.into_iter().next() {
                match self.key_state(&claim, &request) {
                    KeyState::Answered(submitted) => return submitted,
                    KeyState::Unsettled => return self.wait(&request).await,
                    KeyState::Free => expired = Some(claim),
                }
            }
            let work = match self.parked_work(request.tenant, id).await {
                Ok(Some(work)) => work,
                Ok(None) => return self.stored_answer_or(&request, Submitted::NotFound).await,
                Err(_) => return Submitted::StoreUnavailable,
            };
            let result = self.try_resolution(&request, work.clone(), &resolution, expired.as_ref()).await;
            match result {
                ResolveResult::Done(claim) => return self.answer_first_request(&request, claim),
                ResolveResult::Taken(claim) => expired = Some(*claim),
                ResolveResult::StoreFailed(why) => return self.failed_closed(&why),
                ResolveResult::Unresolved(why) => {
                    let reply = self.present.resolved(&dead_letter(work.clone()), Err(why), request.id);
                    let about =
                        Some((work.outbox.payment.subject(), refusal_audit_order(work.subject.revision())));
                    let refusal = NewRefusal {
                        makes: Resource::Transaction,
                        about,
                        reply,
                        error: "dead_letter_unresolved",
                    };
                    match self.store_refusal(&request, refusal, expired.as_ref()).await {
                        RefusalResult::Stored(claim) => return self.answer_first_request(&request, claim),
                        RefusalResult::Taken(claim) => expired = Some(*claim),
                        RefusalResult::KeyFree => expired = None,
                        RefusalResult::StoreFailed(why) => return self.failed_closed(&why),
                    }
                }
            }
        }
        Submitted::InUse
    }

    async fn try_resolution(
        &self,
        request: &Request,
        work: Work,
        resolution: &Resolution,
        expired: Option<&Claim>,
    ) -> ResolveResult {
        let mut work = match self.lease_dead_letter(work).await {
            Ok(Some(work)) => work,
            Ok(None) => return ResolveResult::Unresolved(Unresolved::Busy),
            Err(why) => return ResolveResult::StoreFailed(why),
        };
        let follow = match self.decide_resolution(&mut work, resolution).await {
            Ok(follow) => follow,
            Err(why) => {
                self.release_dead_letter(&work).await;
                return ResolveResult::Unresolved(why);
            }
        };
        let now = self.store.now();
        let detail = match resolution {
            Resolution::Fail { reason } => format!(
                "request=req_{} resolution=fail reason={}",
                request.id,
                reason.split_whitespace().collect::<Vec<_>>().join("_")
            ),
            Resolution::Adopt | Resolution::Void | Resolution::Retry => {
                format!("request=req_{} resolution={}", request.id, resolution.name())
            }
        };
        let mut conclusion = match self.conclusion(&work, (AuditKind::Resolved, &detail), follow, now).await {
            Ok(Ok(conclusion)) => conclusion,
            Ok(Err(illegal)) => {
                return ResolveResult::StoreFailed(format!("{illegal:?} is a defect to report"));
            }
            Err(error) => return ResolveResult::StoreFailed(format!("{error:?}")),
        };
        let claim = self.resolution_claim(request, &conclusion.work, resolution, expired, now).await;
        let Some(claim) = claim else { return ResolveResult::StoreFailed("no id can be minted".into()) };
        conclusion = Conclusion { set: with_claim(conclusion.set, &claim, expired), ..conclusion };
        match self.settle_ledger(conclusion, now).await {
            Ok(Concluded::News(id, news)) => {
                if let News::Settled(claim) = &news {
                    self.cache_answer(Arc::clone(claim));
                }
                self.waiters.tell(id, &news);
                ResolveResult::Done(claim)
            }
            Ok(Concluded::NextStep(next)) => {
                // The rest of the saga runs as usual and sends news to the waiters.
                let _ = self.drive(next, &InterimNews::default()).await;
                ResolveResult::Done(claim)
            }
            Err(NotCommitted::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) if found.id == request.claim => ResolveResult::Taken(Box::new(found)),
                _ => ResolveResult::Unresolved(Unresolved::Busy),
            },
            Err(NotCommitted::Unavailable(why)) => ResolveResult::StoreFailed(why),
            Err(NotCommitted::InDoubt) => ResolveResult::StoreFailed(
                "its commit is in doubt; the key has the answer once the store is back".into(),
            ),
        }
    }

    /// Leases parked work with a higher fencing token. The work stays parked, so it is still a dead
    /// letter if this process dies.
    async fn lease_dead_letter(&self, work: Work) -> Result<Option<Work>, String> {
        if self.has_live_lease(&work.claim) {
            return Ok(None);
        }
        let now = self.store.now();
        let lease = self.policy.lease;
        let taken = take_over(&work.claim, &work.outbox, lease, self.ids.holder(), now, self.world.chance());
        let (Ok(taken), Some(id)) = (taken, self.next_id(now).await) else { return Ok(None) };
        let outbox = Outbox { due_at: Time::MAX, ..taken.outbox };
        let set = ChangeSet::new(SetId::from_i64(id))
            .replace(taken.claim.clone(), work.claim.revision)
            .replace(outbox.clone(), work.outbox.revision)
            .insert(taken.audit);
        match self.commit(set).await {
            Ok(_) => Ok(Some(Work { claim: taken.claim, outbox, ..work })),
            Err(NotCommitted::Refused(_)) => Ok(None),
            Err(NotCommitted::Unavailable(why)) => Err(why),
            Err(NotCommitted::InDoubt) => Err("the commit of a takeover is in doubt".into()),
        }
    }

    /// Gives the lease back. If that cannot be stored, the next resolution waits for the lease to
    /// end.
    async fn release_dead_letter(&self, work: &Work) {
        let claim = work.claim.on(ClaimEvent::Doubted { not_before: Time::MAX });
        if let (Ok(claim), Some(id)) = (claim, self.next_id(self.store.now()).await) {
            let set = ChangeSet::new(SetId::from_i64(id)).replace(claim, work.claim.revision);
            let _ = self.commit(set).await;
        }
    }

    async fn decide_resolution(
        &self,
        work: &mut Work,
        resolution: &Resolution,
    ) -> Result<Consequences, Unresolved> {
        let step = flow::step(work.outbox.saga).ok_or(Unresolved::NoEvidence)?;
        let compensating = work.outbox.saga.progress.way == Direction::Back;
        let verdict = match resolution {
            Resolution::Retry => return Ok(unpark(work, self.store.now())),
            // The compensation already runs and continues.
            Resolution::Void if compensating => return Ok(unpark(work, self.store.now())),
            Resolution::Void => {
                let held = self.provider_hold(work).await?;
                return give_up(work, &held, self.store.now()).ok_or(Unresolved::NothingToUndo);
            }
            Resolution::Adopt => {
                let (found, asked_at) = self.look_up(work, step).await?;
                let rules = self.gateway.rules(&work.outbox.provider).of(step);
                let declined = matches!(found, LookupResult::Payment(ProviderOutcome::Declined(_)));
                // The step to undo was executed, or may still be: the decline is no evidence.
                if declined
                    && (compensating || decline_is_one_of_several(&work.outbox.history, &rules, asked_at))
                {
                    return Err(Unresolved::NoEvidence);
                }
                adopt(work, step, found, &work.outbox.payment.reference(&self.references).to_string())?
            }
            Resolution::Fail { .. } => match self.look_up(work, step).await?.0 {
                // A declined compensation means that the money to be given up has been taken.
                LookupResult::Payment(ProviderOutcome::Declined(_)) if compensating => {
                    return Err(Unresolved::Executed);
                }
                LookupResult::Payment(ProviderOutcome::Approved(_)) => return Err(Unresolved::Executed),
                LookupResult::Several => return Err(Unresolved::Several),
                // A reachable peer can always tell, so wait for an answer.
                LookupResult::Unclear(cause)
                    if work.outbox.provider.peer().is_some() && cause != Cause::Unreadable =>
                {
                    return Err(Unresolved::NoEvidence);
                }
                // The provider found nothing or cannot tell: the operator's word counts.
                LookupResult::Payment(_) | LookupResult::Nothing | LookupResult::Unclear(_) => {
                    marked_failed(work)
                }
            },
        };
        follow(work, &verdict, self.store.now()).ok_or(Unresolved::NoEvidence)
    }

    /// Looks the step up at the provider. Returns the result and the time of the question.
    async fn look_up(&self, work: &mut Work, step: ProviderStep) -> Result<(LookupResult, Time), Unresolved> {
        // The operator's word counts only after the provider was asked.
        if !self.gateway.serves(&work.outbox.provider) {
            return Err(Unresolved::NotSetUp);
        }
        let reference = work.outbox.payment.reference(&self.references).to_string();
        self.ask(work, step, &reference).await.ok_or(Unresolved::Busy)
    }

    /// The authorization the provider holds for the work. The saga's compensation gives it up.
    /// Captured money is adopted and refunded instead.
    async fn provider_hold(&self, work: &mut Work) -> Result<Approval, Unresolved> {
        let saga = work.outbox.saga;
        let back = flow::give_up(saga).ok_or(Unresolved::NothingToUndo)?;
        let (found, asked_at) = self.look_up(work, ProviderStep::Authorize).await?;
        match found {
            LookupResult::Payment(ProviderOutcome::Approved(held)) if held.stands == Stands::Held => {
                // A later capture may still be on its way, or executed and not visible yet.
                let rules = self.gateway.rules(&work.outbox.provider);
                let is_quiet = asked_at >= quiescent_at(&rules, &work.outbox.history);
                let alone = back.progress.step == saga.progress.step;
                if alone || is_quiet { Ok(held) } else { Err(Unresolved::NoEvidence) }
            }
            LookupResult::Payment(_) | LookupResult::Nothing => Err(Unresolved::NothingToUndo),
            LookupResult::Several => Err(Unresolved::Several),
            LookupResult::Unclear(_) => Err(Unresolved::NoEvidence),
        }
    }

    /// The settled claim of the resolution request itself.
    async fn resolution_claim(
        &self,
        request: &Request,
        after: &Work,
        resolution: &Resolution,
        expired: Option<&Claim>,
        now: Time,
    ) -> Option<Arc<Claim>> {
        let subject = SubjectId::from_i64(self.next_id(now).await?);
        let reply = self.present.resolved(&dead_letter(after.clone()), Ok(resolution), request.id);
        let settled = Settled { reply, windows: self.policy.windows.windows(request.claim, now) };
        Some(Arc::new(request.settled(subject, Resource::Resolution, Ended::Done(settled), now, expired)))
    }
}

fn dead_letter(work: Work) -> DeadLetter {
    DeadLetter { outbox: work.outbox, subject: work.subject }
}

fn with_claim(set: ChangeSet, claim: &Arc<Claim>, expired: Option<&Claim>) -> ChangeSet {
    match expired {
        Some(old) => set.replace(Claim::clone(claim), old.revision),
        None => set.insert(Claim::clone(claim)),
    }
}

/// Accepts the provider's result, even with another amount than requested. A result in another
/// currency or for another payment is no evidence. Neither is another amount of a payout, because
/// the ordered amount is reserved.
fn adopt(
    work: &Work,
    step: ProviderStep,
    found: LookupResult,
    payment: &str,
) -> Result<AttemptVerdict, Unresolved> {
    match found {
        LookupResult::Payment(ProviderOutcome::Approved(approval)) => {
            let asked = work.subject.amount();
            let ours = approval.stands == step.leads_to()
                && (step == ProviderStep::Void || approval.asset == Some(asked.asset()))
                && (step != ProviderStep::Payout || approval.amount_minor == asked.minor())
                && approval.payment.as_deref().is_none_or(|named| named == payment)
                && approval.amount_minor > 0;
            if ours { Ok(AttemptVerdict::Done(approval)) } else { Err(Unresolved::NoEvidence) }
        }
        LookupResult::Payment(ProviderOutcome::Declined(decline)) => Ok(AttemptVerdict::Failed {
            failure: PaymentFailure { code: step.declined(), decline_code: decline.decline_code },
            reference: decline.reference,
        }),
        LookupResult::Several => Err(Unresolved::Several),
        LookupResult::Payment(
            ProviderOutcome::Rejected(_)
            | ProviderOutcome::Busy { .. }
            | ProviderOutcome::NotSent
            | ProviderOutcome::Unknown(_),
        )
        | LookupResult::Nothing
        | LookupResult::Unclear(_) => Err(Unresolved::NoEvidence),
    }
}

/// The verdict if an operator says that nothing happened at the provider. For a compensation it
/// means that nothing is left to undo.
fn marked_failed(work: &Work) -> AttemptVerdict {
    match work.outbox.saga.progress.way {
        Direction::Forward => AttemptVerdict::Failed {
            failure: PaymentFailure { code: FailureCode::MarkedFailed, decline_code: None },
            reference: None,
        },
        Direction::Back => AttemptVerdict::Done(Approval {
            reference: work.subject.provider_reference().cloned().unwrap_or_default(),
            stands: Stands::Canceled,
            amount_minor: work.subject.amount().minor(),
            asset: Some(work.subject.amount().asset()),
            payment: None,
        }),
    }
}
