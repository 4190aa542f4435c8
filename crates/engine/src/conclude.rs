//! Concluding an attempt: what the core decided becomes one change set, and the set is offered to the store until it
//! is taken, refused, or somebody else's to write.

use crate::books::charges::Credit;
use crate::books::spread::Blocked;
use crate::commit::NotCommitted;
use crate::drive::{Lesson, Work};
use crate::engine::Inner;
use crate::waiters::News;
use crate::world::World;
use counterfoil_core::audit::{Kind, Record, record_id};
use counterfoil_core::idempotency::claim::{Claim, Event, IllegalMove, Settled, State};
use counterfoil_core::outbox::{Outbox, Park};
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::settle::Verdict;
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::reference::Kind as ReferenceKind;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, RowKey, Store};
use std::sync::Arc;

/// While the store cannot take an outcome that is known, it is offered again and again until the lease's ceiling.
const OFFER: Backoff = Backoff { base: Span::from_ms(100), cap: Span::from_ms(2_000) };
/// When a parked payment is worth asking about again.
const PARKED_RETRY: Span = Span::from_ms(60_000);

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Commits what follows from an attempt. `None`: somebody with a higher fence was faster and nothing changed, or
    /// the store did not take it and the recovery worker will.
    pub(crate) async fn conclude(&self, work: &Work, lesson: &Lesson) -> Option<News> {
        let ceiling = work.claim.state.lease().map_or(Time::EPOCH, |lease| lease.ceiling);
        for offer in 1_u32.. {
            let now = self.store.now();
            match self.offer(work, lesson, now).await {
                Ok(news) => {
                    if let News::Settled(claim) = &news {
                        self.cache.keep(Arc::clone(claim));
                    }
                    return Some(news);
                }
                Err(NotCommitted::Refused(refusal)) => {
                    tracing::warn!(fence = work.claim.fence, ?refusal.reason, "a late writer was refused; nothing changed");
                    return None;
                }
                Err(NotCommitted::Unavailable(why)) => {
                    tracing::error!(why, "an outcome could not be stored yet");
                }
                Err(NotCommitted::InDoubt) => tracing::error!("the commit of an outcome is in doubt"),
            }
            let pending = News::Pending { charge: work.charge.id, retry_after: Span::from_ms(1_000) };
            self.waiters.tell(work.claim.id, &pending);
            if now >= ceiling || self.is_stopped() {
                return None;
            }
            self.pause(OFFER, offer).await;
        }
        None
    }

    /// Offers what follows to the store. Money the provider has taken is posted in the same set; if the account it is
    /// meant for cannot take it, to suspense.
    async fn offer(&self, work: &Work, lesson: &Lesson, now: Time) -> Result<News, NotCommitted> {
        let unavailable = NotCommitted::Unavailable;
        let Some(id) = self.next_id(now).await else {
            return Err(unavailable("no id can be minted".into()));
        };
        let (set, news) = self
            .conclusion(SetId::from_i64(id), work, lesson, now)
            .map_err(|illegal| unavailable(format!("{illegal:?} is a defect to report")))?;
        let Verdict::Complete(charge) = &lesson.verdict else {
            return self.commit(set).await.map(|_| news);
        };
        for credit in [Credit::Destination, Credit::Suspense] {
            let Some((transaction, deltas)) = self.posting(charge, credit, now).await.map_err(unavailable)?
            else {
                return self.commit(set).await.map(|_| news);
            };
            let set = set.clone().insert(transaction);
            match self.commit_moving(&set, &deltas, self.world.chance()).await {
                Ok(_) => return Ok(news),
                Err(Blocked::Unfit(unfit)) => {
                    let charge = self.references.seal(ReferenceKind::Charge, charge.id.to_i64());
                    tracing::error!(%charge, ?unfit, "a captured charge does not fit its account and goes to suspense");
                }
                Err(Blocked::Refused(refusal)) => return Err(NotCommitted::Refused(refusal)),
                Err(Blocked::Failed(error)) => return Err(error),
            }
        }
        Err(unavailable("the suspense account does not take the charge, which is a defect to report".into()))
    }

    fn conclusion(
        &self,
        id: SetId,
        work: &Work,
        lesson: &Lesson,
        now: Time,
    ) -> Result<(ChangeSet, News), IllegalMove> {
        let claim = &work.claim;
        let learnt = Record {
            id: record_id(now, claim.revision.saturating_add(1), self.world.chance()),
            tenant: claim.tenant,
            subject: claim.subject,
            at: now,
            fence: claim.fence,
            kind: lesson.kind,
            detail: lesson.detail.clone(),
        };
        let draft = Draft { id, work, learnt };
        let windows = || self.policy.windows.windows(claim.id, now);
        match &lesson.verdict {
            Verdict::Complete(charge) => {
                let settled = Settled { reply: self.present.charge(charge), windows: windows() };
                draft.settle(charge, Event::Completed(settled))
            }
            Verdict::Fail(charge) => {
                let reply = self.present.failure(charge, claim.request);
                let settled = Settled { reply, windows: windows() };
                draft.settle(charge, Event::Failed(settled))
            }
            Verdict::Retry { at_least, outbox } => {
                let wait = self.policy.backoff.wait_at_least(*at_least, claim.attempts, self.dice());
                let not_before = now.plus(wait);
                // What was doubted once stays so until there is evidence.
                let doubted = matches!(claim.state, State::Uncertain(_));
                let event =
                    if doubted { Event::Doubted { not_before } } else { Event::PutOff { not_before } };
                draft.put_off(outbox, event, not_before)
            }
            Verdict::Doubt { not_before, outbox } => {
                let wait = self.policy.backoff.wait(claim.attempts, self.dice());
                let not_before = (*not_before).max(now.plus(wait));
                draft.put_off(outbox, Event::Doubted { not_before }, not_before)
            }
            Verdict::Park { charge, outbox } => {
                let charge_reference = self.references.seal(ReferenceKind::Charge, charge.id.to_i64());
                let reason = outbox.parked.map_or("unknown", Park::name);
                tracing::error!(charge = %charge_reference, reason, "a payment is parked and needs a human");
                draft.park(charge, outbox)
            }
        }
    }
}

/// A conclusion in the making: what every kind of it shares.
struct Draft<'a> {
    id: SetId,
    work: &'a Work,
    learnt: Record,
}

impl Draft<'_> {
    fn settle(self, charge: &Charge, event: Event) -> Result<(ChangeSet, News), IllegalMove> {
        let claim = self.work.claim.on(event)?;
        let answer = claim.state.settled().map_or(0, |settled| settled.reply.status);
        let detail = format!("status={} answer={answer}", charge.status.name());
        let set = ChangeSet::new(self.id)
            .replace(claim.clone(), self.work.claim.revision)
            .replace(charge.clone(), self.work.charge.revision)
            .remove(RowKey::Outbox(self.work.outbox.charge), self.work.outbox.revision);
        Ok((self.audited(set, Kind::Settled, detail), News::Settled(Arc::new(claim))))
    }

    fn put_off(
        self,
        outbox: &Outbox,
        event: Event,
        not_before: Time,
    ) -> Result<(ChangeSet, News), IllegalMove> {
        let wait = not_before.since(self.learnt.at);
        let set = self.with_claim(event)?.replace(self.due(outbox, not_before), self.work.outbox.revision);
        let news = News::Pending { charge: self.work.charge.id, retry_after: wait };
        Ok((self.audited(set, Kind::Pending, format!("wait_ms={}", wait.ms())), news))
    }

    fn park(self, charge: &Charge, outbox: &Outbox) -> Result<(ChangeSet, News), IllegalMove> {
        let reason = outbox.parked.map_or("unknown", Park::name);
        let set = self
            .with_claim(Event::Doubted { not_before: Time::MAX })?
            .replace(charge.clone(), self.work.charge.revision)
            .replace(self.due(outbox, Time::MAX), self.work.outbox.revision);
        let news = News::Pending { charge: self.work.charge.id, retry_after: PARKED_RETRY };
        Ok((self.audited(set, Kind::Parked, format!("reason={reason}")), news))
    }

    fn with_claim(&self, event: Event) -> Result<ChangeSet, IllegalMove> {
        let claim: &Claim = &self.work.claim;
        Ok(ChangeSet::new(self.id).replace(claim.on(event)?, claim.revision))
    }

    fn due(&self, outbox: &Outbox, due_at: Time) -> Outbox {
        Outbox { due_at, revision: self.work.outbox.revision.saturating_add(1), ..outbox.clone() }
    }

    /// The lesson first, then what follows from it.
    fn audited(self, set: ChangeSet, kind: Kind, detail: String) -> ChangeSet {
        let follows = Record { id: self.learnt.id.after(1), kind, detail, ..self.learnt.clone() };
        set.insert(self.learnt).insert(follows)
    }
}
