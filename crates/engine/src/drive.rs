//! Driving one attempt: ask the core what to do, do it, and commit what follows. Start and resume run the same
//! path; only committed state is ever told to anybody.

use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::signal::Signal;
use crate::waiters::News;
use crate::world::World;
use counterfoil_core::audit::{Kind, Record, record_id};
use counterfoil_core::idempotency::claim::{Claim, Event, Settled, State};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::next::{Next, next};
use counterfoil_core::payments::charge::settle::{self, Attempt, Verdict};
use counterfoil_core::payments::provider::{Found, Outcome, Rules, Step, downstream_key};
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::reference::Kind as ReferenceKind;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::breaker::State as BreakerState;
use counterfoil_gateway::{Call, Gateway, Lookup, Profile};
use counterfoil_store::{ChangeSet, RowKey, Store};
use std::future::Future;
use std::sync::PoisonError;
use std::time::Duration;

/// A charge this process holds the lease of.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) claim: Claim,
    pub(crate) charge: Charge,
    pub(crate) outbox: Outbox,
}

/// What an attempt taught, in words for the audit.
struct Lesson {
    kind: Kind,
    detail: String,
    verdict: Verdict,
}

/// While the store cannot take an outcome that is known, it is offered again and again until the lease's ceiling.
const OFFER: Backoff = Backoff {
    base: Span::from_ms(100),
    cap: Span::from_ms(2_000),
};

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Drives one attempt and tells the news. `None`: the lease was lost, and somebody else will tell it.
    pub(crate) async fn drive(&self, mut work: Work) -> Option<News> {
        let rules = self.gateway.rules(&work.outbox.provider);
        let reference = self
            .references
            .seal(ReferenceKind::Charge, work.charge.id.to_i64())
            .to_string();
        let lesson = match next(&rules, &work.outbox, work.claim.attempts, self.store.now()) {
            Next::Call => self.call(&mut work, &rules, &reference).await?,
            Next::Query => self.query(&mut work, &rules, &reference).await?,
            Next::Wait(until) => Lesson {
                kind: Kind::Pending,
                detail: "reason=quiescence".into(),
                verdict: Verdict::Doubt {
                    not_before: until,
                    outbox: work.outbox.clone(),
                },
            },
            Next::Park(reason) => {
                let verdict = settle::give_to_a_human(self.attempt(&work, &reference), reason);
                Lesson {
                    kind: Kind::Pending,
                    detail: format!("reason={}", reason.name()),
                    verdict,
                }
            }
        };
        let news = self.conclude(work.claim.clone(), &work, lesson).await?;
        self.waiters.tell(work.claim.id, &news);
        Some(news)
    }

    fn attempt<'a>(&self, work: &'a Work, reference: &'a str) -> Attempt<'a> {
        Attempt {
            charge: &work.charge,
            outbox: &work.outbox,
            reference,
            attempts_max: self.policy.attempts_max,
            now: self.store.now(),
        }
    }

    async fn call(&self, work: &mut Work, rules: &Rules, reference: &str) -> Option<Lesson> {
        let step = if work.charge.order.capture {
            Step::Charge
        } else {
            Step::Authorize
        };
        if let Err(wait) = self.permit() {
            let verdict = settle::held_back(self.attempt(work, reference), wait);
            return Some(Lesson {
                kind: Kind::Pending,
                detail: "reason=breaker_open".into(),
                verdict,
            });
        }
        // The last look before the request leaves: a lease that is over belongs to somebody else.
        if work
            .claim
            .state
            .lease()
            .is_none_or(|lease| lease.is_over(self.store.now()))
        {
            return None;
        }
        let call = Call {
            pinned: work.outbox.provider.clone(),
            step,
            key: downstream_key(
                &self.mac,
                work.charge.id,
                step,
                work.outbox.history.generation,
                rules,
            ),
            payment: reference.to_owned(),
            amount: work.charge.order.amount,
            payment_method: work.charge.order.payment_method.clone(),
        };
        let begun = self.world.elapsed();
        let outcome = self.with_heartbeat(work, self.gateway.call(call)).await?;
        self.learn(&outcome);
        self.count(work, step.name(), outcome.name(), begun);
        if let Outcome::Rejected(rejection) = &outcome {
            tracing::error!(
                charge = reference,
                code = rejection.code,
                "the provider rejects our request; look at its account and ours"
            );
        }
        let mut detail = format!(
            "step={} outcome={} generation={}",
            step.name(),
            outcome.name(),
            work.outbox.history.generation
        );
        if let Outcome::Approved(approval) = &outcome {
            detail.push_str(" reference=");
            detail.push_str(&approval.reference);
        }
        let verdict = settle::judge_outcome(self.attempt(work, reference), &outcome);
        Some(Lesson {
            kind: Kind::ProviderAnswered,
            detail,
            verdict,
        })
    }

    async fn query(&self, work: &mut Work, rules: &Rules, reference: &str) -> Option<Lesson> {
        let lookup = Lookup {
            pinned: work.outbox.provider.clone(),
            payment: reference.to_owned(),
        };
        let begun = self.world.elapsed();
        let found = self.with_heartbeat(work, self.gateway.lookup(lookup)).await?;
        let outcome = match &found {
            Found::Payment(outcome) => outcome.name(),
            Found::Several => "several",
            Found::Nothing => "nothing",
            Found::Unclear(cause) => cause.name(),
        };
        self.count(work, "query", outcome, begun);
        let verdict = settle::judge_query(self.attempt(work, reference), rules, &found);
        Some(Lesson {
            kind: Kind::ProviderQueried,
            detail: format!("outcome={outcome}"),
            verdict,
        })
    }

    /// Runs `call` while renewing the lease. `None`: the lease was lost to somebody else.
    async fn with_heartbeat<T>(&self, work: &mut Work, call: impl Future<Output = T>) -> Option<T> {
        let beat = Duration::from_millis(self.policy.heartbeat.ms());
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return Some(answer),
                () = self.world.sleep(beat) => {}
            }
            let now = self.store.now();
            let until = now.plus(self.policy.lease.lease);
            let (Ok(claim), Ok(id)) = (work.claim.on(Event::Renewed { until }), self.ids.next(now)) else {
                continue;
            };
            let Some(lease) = claim.state.lease() else {
                continue;
            };
            let outbox = Outbox {
                due_at: lease.until,
                revision: work.outbox.revision.saturating_add(1),
                ..work.outbox.clone()
            };
            let set = ChangeSet::new(SetId::from_i64(id))
                .replace(claim.clone(), work.claim.revision)
                .replace(outbox.clone(), work.outbox.revision);
            match self.commit(set).await {
                Ok(_) => (work.claim, work.outbox) = (claim, outbox),
                Err(NotCommitted::Refused(_)) => {
                    tracing::warn!(
                        fence = work.claim.fence,
                        "the lease was lost to a higher fence; this attempt stops"
                    );
                    return None;
                }
                // The next beat tries again; until then the lease simply runs on.
                Err(NotCommitted::Unavailable(_) | NotCommitted::InDoubt) => {}
            }
        }
    }

    /// Commits what follows from an attempt. `None`: somebody with a higher fence was faster, and nothing changed.
    async fn conclude(&self, claim: Claim, work: &Work, lesson: Lesson) -> Option<News> {
        let ceiling = claim.state.lease().map_or(Time::EPOCH, |lease| lease.ceiling);
        let mut told = false;
        for offer in 1_u32.. {
            let now = self.store.now();
            let Ok(id) = self.ids.next(now) else { return None };
            let (set, news) = self.conclusion(SetId::from_i64(id), &claim, work, &lesson, now)?;
            match self.commit(set).await {
                Ok(_) => return Some(news),
                Err(NotCommitted::Refused(refusal)) => {
                    tracing::warn!(fence = claim.fence, ?refusal.reason, "a late writer was refused; nothing changed");
                    return None;
                }
                Err(NotCommitted::Unavailable(why)) => {
                    tracing::error!(why, "an outcome could not be stored yet")
                }
                Err(NotCommitted::InDoubt) => tracing::error!("the commit of an outcome is in doubt"),
            }
            if !told {
                let pending = News::Pending {
                    charge: work.charge.id,
                    retry_after: Span::from_ms(1_000),
                };
                self.waiters.tell(claim.id, &pending);
                told = true;
            }
            if now >= ceiling || self.is_stopped() {
                break;
            }
            self.pause(OFFER, offer).await;
        }
        None
    }

    fn conclusion(
        &self,
        id: SetId,
        claim: &Claim,
        work: &Work,
        lesson: &Lesson,
        now: Time,
    ) -> Option<(ChangeSet, News)> {
        let set = ChangeSet::new(id);
        let learnt = self.record(claim, now, lesson.kind, lesson.detail.clone());
        let settle = |charge: &Charge, settled: Settled, event: Event| {
            let claim_after = claim.on(event).ok()?;
            let detail = format!("status={} answer={}", charge.status.name(), settled.reply.status);
            let concluded = Record {
                id: learnt.id.after(1),
                kind: Kind::Settled,
                detail,
                ..learnt.clone()
            };
            let set = ChangeSet::new(id)
                .replace(claim_after, claim.revision)
                .replace(charge.clone(), work.charge.revision)
                .remove(RowKey::Outbox(work.outbox.charge), work.outbox.revision)
                .insert(learnt.clone())
                .insert(concluded);
            Some((set, News::Settled(settled)))
        };
        match &lesson.verdict {
            Verdict::Complete(charge) => {
                let windows = self.policy.windows.windows(claim.id, now);
                let settled = Settled {
                    reply: self.present.charge(charge),
                    windows,
                };
                settle(charge, settled.clone(), Event::Completed(settled))
            }
            Verdict::Fail(charge) => {
                let windows = self.policy.windows.windows(claim.id, now);
                let settled = Settled {
                    reply: self.present.failure(charge, claim.request),
                    windows,
                };
                settle(charge, settled.clone(), Event::Failed(settled))
            }
            Verdict::Retry { at_least, outbox } => {
                let wait = self
                    .policy
                    .backoff
                    .wait_at_least(*at_least, claim.attempts, self.dice());
                let not_before = now.plus(wait);
                let event = match claim.state {
                    // What was doubted once stays so until there is evidence.
                    State::Uncertain(_) => Event::Doubted { not_before },
                    State::InFlight(_)
                    | State::FailedRetry { .. }
                    | State::Completed(_)
                    | State::FailedTerminal(_)
                    | State::Expired { .. } => Event::PutOff { not_before },
                };
                self.put_off(set, claim, outbox, event, not_before, learnt, now)
            }
            Verdict::Doubt { not_before, outbox } => {
                let wait = self.policy.backoff.wait(claim.attempts, self.dice());
                let not_before = (*not_before).max(now.plus(wait));
                self.put_off(
                    set,
                    claim,
                    outbox,
                    Event::Doubted { not_before },
                    not_before,
                    learnt,
                    now,
                )
            }
            Verdict::Park { charge, outbox } => {
                let claim_after = claim
                    .on(Event::Doubted {
                        not_before: Time::MAX,
                    })
                    .ok()?;
                let outbox = Outbox {
                    revision: work.outbox.revision.saturating_add(1),
                    ..outbox.clone()
                };
                let reason = outbox
                    .parked
                    .map_or("unknown", counterfoil_core::outbox::Park::name);
                tracing::error!(reason, "a payment is parked and needs a human");
                let parked = Record {
                    id: learnt.id.after(1),
                    kind: Kind::Parked,
                    detail: format!("reason={reason}"),
                    ..learnt.clone()
                };
                let set = set
                    .replace(claim_after, claim.revision)
                    .replace(charge.clone(), work.charge.revision)
                    .replace(outbox, work.outbox.revision)
                    .insert(learnt)
                    .insert(parked);
                Some((
                    set,
                    News::Pending {
                        charge: work.charge.id,
                        retry_after: Span::from_ms(60_000),
                    },
                ))
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one conclusion in two spellings; a struct would only rename it"
    )]
    fn put_off(
        &self,
        set: ChangeSet,
        claim: &Claim,
        outbox: &Outbox,
        event: Event,
        not_before: Time,
        learnt: Record,
        now: Time,
    ) -> Option<(ChangeSet, News)> {
        let claim_after = claim.on(event).ok()?;
        let after = Outbox {
            due_at: not_before,
            revision: outbox.revision.saturating_add(1),
            ..outbox.clone()
        };
        let wait = not_before.since(now);
        let detail = format!("state={} wait_ms={}", claim_after.state.name(), wait.ms());
        let pending = Record {
            id: learnt.id.after(1),
            kind: Kind::Pending,
            detail,
            ..learnt.clone()
        };
        let charge = claim.subject;
        let set = set
            .replace(claim_after, claim.revision)
            .replace(after, outbox.revision)
            .insert(learnt)
            .insert(pending);
        Some((
            set,
            News::Pending {
                charge,
                retry_after: wait,
            },
        ))
    }

    fn record(&self, claim: &Claim, now: Time, kind: Kind, detail: String) -> Record {
        let id = record_id(now, claim.revision.saturating_add(1), self.world.chance());
        Record {
            id,
            tenant: claim.tenant,
            subject: claim.subject,
            at: now,
            fence: claim.fence,
            kind,
            detail,
        }
    }

    fn permit(&self) -> Result<(), Span> {
        self.breaker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .permit(self.store.now())
    }

    fn learn(&self, outcome: &Outcome) {
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let before = breaker.state();
        breaker.learn(outcome, self.store.now());
        let after = breaker.state();
        drop(breaker);
        let number = |state| match state {
            BreakerState::Closed { .. } => 0,
            BreakerState::Probing { .. } => 1,
            BreakerState::Open { .. } => 2,
        };
        if number(before) != number(after) {
            let provider = profile_name(&self.gateway.pinned().profile);
            self.watch.saw(Signal::Breaker {
                provider,
                state: number(after),
            });
            tracing::warn!(
                provider,
                from = number(before),
                to = number(after),
                "the circuit breaker moved (0 closed, 1 probing, 2 open)"
            );
        }
    }

    fn count(&self, work: &Work, step: &'static str, outcome: &'static str, begun: Duration) {
        let took = self.world.elapsed().saturating_sub(begun);
        let provider = profile_name(&work.outbox.provider.profile);
        self.watch.saw(Signal::Gateway {
            provider,
            step,
            outcome,
            took,
        });
    }
}

fn profile_name(name: &str) -> &'static str {
    Profile::named(name).map_or("unknown", |profile| profile.name)
}
