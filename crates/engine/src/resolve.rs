//! Dead letters: work only a human can go on with. It is listed with its evidence and settled as the human decides, by
//! the same decision that settles everything else, under a higher fence, and audited.

use crate::commit::NotCommitted;
use crate::conclude::{Concluded, Conclusion};
use crate::detach::DetachOnDrop;
use crate::engine::Inner;
use crate::refuse::{Kept, Refused};
use crate::service::{DeadLetter, Resolution, Submitted, Unresolved};
use crate::submit::Met;
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
use counterfoil_core::payments::follow::{Follow, follow, give_up, unpark};
use counterfoil_core::payments::provider::{
    Approval, Cause, LookupResult, ProviderOutcome, ProviderStep, Stands,
};
use counterfoil_core::payments::{Work, flow, turn_after};
use counterfoil_core::saga::progress::Direction;
use counterfoil_core::types::id::{SetId, SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, ReadError, Row, RowKey, Scan, Store};
use std::sync::Arc;

/// What came of one try.
enum Tried {
    Done(Arc<Claim>),
    Found(Box<Claim>),
    Unresolved(Unresolved),
    Failed(String),
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
            letters.extend(self.work(&outbox).await?.map(letter));
        }
        Ok(letters)
    }

    pub(crate) async fn dead_letter(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> Result<Option<DeadLetter>, ReadError> {
        Ok(self.parked(tenant, id).await?.map(letter))
    }

    async fn parked(&self, tenant: TenantId, id: SubjectId) -> Result<Option<Work>, ReadError> {
        let rows = self.store.read(vec![RowKey::Outbox(tenant, id)]).await?;
        let Some(Some(Row::Outbox(outbox))) = rows.into_iter().next() else { return Ok(None) };
        if outbox.parked.is_none() {
            return Ok(None);
        }
        Ok(self.work(&outbox).await?.filter(|work| work.outbox.parked.is_some()))
    }

    /// Resolves to the end: a human who hangs up leaves nothing half done.
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
        if let Some(submitted) = self.remembered(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return self.only_replay(&request).await;
        }
        let _active = self.enter();
        let mut expired = None;
        for _ in 0..crate::submit::ROUNDS_MAX {
            let rows = self.store.read(vec![RowKey::Claim(request.tenant, request.claim)]).await;
            let Ok(rows) = rows else { return Submitted::StoreUnavailable };
            if let Some(Some(Row::Claim(claim))) = rows.into_iter().next() {
                match self.settled(&claim, &request) {
                    Met::Answered(submitted) => return submitted,
                    Met::Unsettled => return self.wait(&request).await,
                    Met::Free => expired = Some(claim),
                }
            }
            let work = match self.parked(request.tenant, id).await {
                Ok(Some(work)) => work,
                Ok(None) => return self.unless_kept(&request, Submitted::NotFound).await,
                Err(_) => return Submitted::StoreUnavailable,
            };
            let tried = self.try_resolution(&request, work.clone(), &resolution, expired.as_ref()).await;
            match tried {
                Tried::Done(claim) => return self.won(&request, claim),
                Tried::Found(claim) => expired = Some(*claim),
                Tried::Failed(why) => return self.failed_closed(&why),
                Tried::Unresolved(why) => {
                    let reply = self.present.resolved(&letter(work.clone()), Err(why), request.id);
                    let about =
                        Some((work.outbox.payment.subject(), turn_after(work.subject.revision(), 15)));
                    let refused = Refused {
                        makes: Resource::Transaction,
                        about,
                        reply,
                        error: "dead_letter_unresolved",
                    };
                    match self.keep_refusal(&request, refused, expired.as_ref()).await {
                        Kept::Settled(claim) => return self.won(&request, claim),
                        Kept::Found(claim) => expired = Some(*claim),
                        Kept::Gone => expired = None,
                        Kept::Failed(why) => return self.failed_closed(&why),
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
    ) -> Tried {
        let mut work = match self.take_in_hand(work).await {
            Ok(Some(work)) => work,
            Ok(None) => return Tried::Unresolved(Unresolved::Busy),
            Err(why) => return Tried::Failed(why),
        };
        let follow = match self.decide_letter(&mut work, resolution).await {
            Ok(follow) => follow,
            Err(why) => {
                self.put_back(&work).await;
                return Tried::Unresolved(why);
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
            Ok(Err(illegal)) => return Tried::Failed(format!("{illegal:?} is a defect to report")),
            Err(error) => return Tried::Failed(format!("{error:?}")),
        };
        let claim = self.resolution_claim(request, &conclusion.work, resolution, expired, now).await;
        let Some(claim) = claim else { return Tried::Failed("no id can be minted".into()) };
        conclusion = Conclusion { set: with_claim(conclusion.set, &claim, expired), ..conclusion };
        match self.settle_ledger(conclusion, now).await {
            Ok(Concluded::Told(id, news)) => {
                if let News::Settled(claim) = &news {
                    self.remember(Arc::clone(claim));
                }
                self.waiters.tell(id, &news);
                Tried::Done(claim)
            }
            Ok(Concluded::Onward(next)) => {
                // The rest of the saga goes on as always; whoever waits for it is told.
                let _ = self.drive(next, &InterimNews::default()).await;
                Tried::Done(claim)
            }
            Err(NotCommitted::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) if found.id == request.claim => Tried::Found(Box::new(found)),
                _ => Tried::Unresolved(Unresolved::Busy),
            },
            Err(NotCommitted::Unavailable(why)) => Tried::Failed(why),
            Err(NotCommitted::InDoubt) => {
                Tried::Failed("its commit is in doubt; the key has the answer once the store is back".into())
            }
        }
    }

    /// Takes parked work over under a higher fence. It stays parked: if this process dies, it is still a dead letter.
    async fn take_in_hand(&self, work: Work) -> Result<Option<Work>, String> {
        if self.is_held_by_the_living(&work.claim) {
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
            Err(NotCommitted::InDoubt) => Err("a take-over's commit is in doubt".into()),
        }
    }

    /// Leaves the letter to whoever comes next. If that cannot be stored, they wait for the lease to end.
    async fn put_back(&self, work: &Work) {
        let claim = work.claim.on(ClaimEvent::Doubted { not_before: Time::MAX });
        if let (Ok(claim), Some(id)) = (claim, self.next_id(self.store.now()).await) {
            let set = ChangeSet::new(SetId::from_i64(id)).replace(claim, work.claim.revision);
            let _ = self.commit(set).await;
        }
    }

    async fn decide_letter(&self, work: &mut Work, resolution: &Resolution) -> Result<Follow, Unresolved> {
        let step = flow::step(work.outbox.saga).ok_or(Unresolved::NoEvidence)?;
        let undoing = work.outbox.saga.progress.way == Direction::Back;
        let verdict = match resolution {
            Resolution::Retry => return Ok(unpark(work, self.store.now())),
            // It is being undone already, and that goes on.
            Resolution::Void if undoing => return Ok(unpark(work, self.store.now())),
            Resolution::Void => {
                let held = self.held(work).await?;
                return give_up(work, &held, self.store.now()).ok_or(Unresolved::NothingToUndo);
            }
            Resolution::Adopt => {
                let (found, asked_at) = self.found(work, step).await?;
                let rules = self.gateway.rules(&work.outbox.provider).of(step);
                let declined = matches!(found, LookupResult::Payment(ProviderOutcome::Declined(_)));
                // What is to be undone was taken instead, or may yet be: there is nothing to take the provider's word for.
                if declined && (undoing || decline_is_one_of_several(&work.outbox.history, &rules, asked_at))
                {
                    return Err(Unresolved::NoEvidence);
                }
                adopted(work, step, found, &work.outbox.payment.reference(&self.references).to_string())?
            }
            Resolution::Fail { .. } => match self.found(work, step).await?.0 {
                // On its way back, a refusal says that what was to be given up has been taken.
                LookupResult::Payment(ProviderOutcome::Declined(_)) if undoing => {
                    return Err(Unresolved::Executed);
                }
                LookupResult::Payment(ProviderOutcome::Approved(_)) => return Err(Unresolved::Executed),
                LookupResult::Several => return Err(Unresolved::Several),
                // A peer can always say, once it answers.
                LookupResult::Unclear(cause)
                    if work.outbox.provider.peer().is_some() && cause != Cause::Unreadable =>
                {
                    return Err(Unresolved::NoEvidence);
                }
                // The provider knows of nothing, or cannot say: then the human's word counts.
                LookupResult::Payment(_) | LookupResult::Nothing | LookupResult::Unclear(_) => given_up(work),
            },
        };
        follow(work, &verdict, self.store.now()).ok_or(Unresolved::NoEvidence)
    }

    /// Asks the provider whether the step was done, and when that was asked.
    async fn found(&self, work: &mut Work, step: ProviderStep) -> Result<(LookupResult, Time), Unresolved> {
        // A human's word weighs more than silence, but not more than a question that nobody could put.
        if !self.gateway.serves(&work.outbox.provider) {
            return Err(Unresolved::NotSetUp);
        }
        let reference = work.outbox.payment.reference(&self.references).to_string();
        self.ask(work, step, &reference).await.ok_or(Unresolved::Busy)
    }

    /// What the provider holds for the work. It is given up by the saga's own undoing; money that was taken is adopted and
    /// refunded.
    async fn held(&self, work: &mut Work) -> Result<Approval, Unresolved> {
        let saga = work.outbox.saga;
        let back = flow::give_up(saga).ok_or(Unresolved::NothingToUndo)?;
        let (found, asked_at) = self.found(work, ProviderStep::Authorize).await?;
        match found {
            LookupResult::Payment(ProviderOutcome::Approved(held)) if held.stands == Stands::Held => {
                // A capture that was asked for since may be on its way, or done and not seen yet.
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

    /// The claim of the resolution itself, with its answer.
    async fn resolution_claim(
        &self,
        request: &Request,
        after: &Work,
        resolution: &Resolution,
        expired: Option<&Claim>,
        now: Time,
    ) -> Option<Arc<Claim>> {
        let subject = SubjectId::from_i64(self.next_id(now).await?);
        let reply = self.present.resolved(&letter(after.clone()), Ok(resolution), request.id);
        let settled = Settled { reply, windows: self.policy.windows.windows(request.claim, now) };
        Some(Arc::new(request.settled(subject, Resource::Resolution, Ended::Done(settled), now, expired)))
    }
}

fn letter(work: Work) -> DeadLetter {
    DeadLetter { outbox: work.outbox, subject: work.subject }
}

fn with_claim(set: ChangeSet, claim: &Arc<Claim>, expired: Option<&Claim>) -> ChangeSet {
    match expired {
        Some(old) => set.replace(Claim::clone(claim), old.revision),
        None => set.insert(Claim::clone(claim)),
    }
}

/// The provider's word, taken even if it differs from what we asked for: how much is what it says. Another currency or
/// another payment is not ours to take, nor is another amount of a payout, whose own amount is reserved.
fn adopted(
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

/// A human says that nothing happened. Where something was to be undone, that is that nothing is left to undo.
fn given_up(work: &Work) -> AttemptVerdict {
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
