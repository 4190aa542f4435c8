//! Driving a saga: ask the core what to do, do it, commit what follows, and go on. Start and resume run the same
//! path; only committed state is ever told to anybody.

use crate::commit::NotCommitted;
use crate::conclude::Concluded;
use crate::engine::Inner;
use crate::signal::Signal;
use crate::waiters::{InterimNews, News};
use crate::world::World;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::idempotency::claim::ClaimEvent;
use counterfoil_core::outbox::{Outbox, ProviderBinding};
use counterfoil_core::payments::attempt::judge::{self, Attempt, AttemptVerdict};
use counterfoil_core::payments::attempt::next::{NextCall, next};
use counterfoil_core::payments::provider::{
    LookupResult, ProviderOutcome, ProviderStep, Rules, downstream_key,
};
use counterfoil_core::payments::{Work, flow};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::profile::PEER;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile};
use counterfoil_store::{ChangeSet, Store};
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

/// How long work that nobody here can do is left alone: nothing but a new start can change that.
const UNSERVED_WAIT: Span = Span::from_ms(5 * 60_000);

/// What an attempt taught, in words for the audit.
pub(crate) struct AttemptResult {
    pub(crate) kind: AuditKind,
    pub(crate) detail: String,
    pub(crate) verdict: AttemptVerdict,
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Drives the saga as far as it goes now and tells the news. `None`: the lease was lost, and somebody else will tell
    /// it. `meanwhile` hears what there is to tell before the end.
    pub(crate) async fn drive(&self, mut work: Box<Work>, meanwhile: &InterimNews) -> Option<News> {
        loop {
            let result = self.learn_next(&mut work).await?;
            match self.conclude(work, &result, meanwhile).await? {
                Concluded::Told(claim, news) => {
                    self.waiters.tell(claim, &news);
                    return Some(news);
                }
                Concluded::Onward(next) => work = next,
            }
        }
    }

    /// One attempt at the step the saga stands at.
    async fn learn_next(&self, work: &mut Work) -> Option<AttemptResult> {
        let Some(step) = flow::step(work.outbox.saga) else {
            let saga = work.outbox.saga;
            tracing::error!(
                flow = saga.flow.name(),
                version = saga.version,
                "this build does not know the saga's definition; the work is left to one that does"
            );
            return None;
        };
        let reference = work.outbox.payment.reference(&self.references);
        let reference = reference.as_str();
        if !self.gateway.serves(&work.outbox.provider) {
            return Some(self.not_served(work, step, reference));
        }
        let rules = self.gateway.rules(&work.outbox.provider).of(step);
        match next(&rules, &work.outbox, work.claim.attempts, self.store.now()) {
            NextCall::Call => self.call(work, step, &rules, reference).await,
            NextCall::Query => self.query(work, step, &rules, reference).await,
            NextCall::Wait(until) => Some(AttemptResult {
                kind: AuditKind::Pending,
                detail: "reason=quiescence".into(),
                verdict: AttemptVerdict::Doubt { not_before: until, history: work.outbox.history },
            }),
            NextCall::Park(reason) => Some(AttemptResult {
                kind: AuditKind::Pending,
                detail: format!("reason={}", reason.name()),
                verdict: AttemptVerdict::Park { reason, reference: None },
            }),
        }
    }

    /// Nobody here can work on it: it waits for an operator, and is sent nowhere else.
    fn not_served(&self, work: &Work, step: ProviderStep, reference: &str) -> AttemptResult {
        let peer = work.outbox.provider.peer().unwrap_or_default();
        tracing::error!(
            payment = reference,
            peer,
            bound_to = &*work.outbox.provider.endpoint,
            "a payment waits for a peer that is not set up here as it was; set it up again under [peers]"
        );
        let verdict = judge::held_back(self.attempt(work, step, reference), UNSERVED_WAIT);
        AttemptResult { kind: AuditKind::Pending, detail: "reason=peer_not_set_up".into(), verdict }
    }

    pub(crate) fn attempt<'a>(&self, work: &'a Work, step: ProviderStep, reference: &'a str) -> Attempt<'a> {
        let amount = work.subject.amount();
        Attempt {
            step,
            amount_minor: amount.minor(),
            asset: amount.asset(),
            history: &work.outbox.history,
            reference,
            attempts_max: self.policy.attempts_max,
            now: self.store.now(),
        }
    }

    async fn call(
        &self,
        work: &mut Work,
        step: ProviderStep,
        rules: &Rules,
        reference: &str,
    ) -> Option<AttemptResult> {
        if let Err(wait) = self.lanes.permit(&work.outbox.provider, self.store.now()) {
            let verdict = judge::held_back(self.attempt(work, step, reference), wait);
            return Some(AttemptResult {
                kind: AuditKind::Pending,
                detail: "reason=breaker_open".into(),
                verdict,
            });
        }
        let call = ProviderCall {
            binding: work.outbox.provider.clone(),
            step,
            key: self.key(work, step, rules),
            payment: reference.to_owned(),
            reference: work.subject.provider_reference().cloned(),
            amount: work.subject.amount(),
            instrument: work.subject.instrument().cloned(),
        };
        // The connector's time runs from here, so the look at the lease below is never older than what it counts from.
        // Nothing is sent before it is waited for.
        let sending = pin!(self.gateway.call(call));
        // The last look before the request leaves: a lease that is over belongs to somebody else.
        if work.claim.state.lease().is_none_or(|lease| lease.is_over(self.store.now())) {
            return None;
        }
        let begun = self.world.elapsed();
        let outcome = self.with_heartbeat(work, sending).await?;
        self.learn(&work.outbox.provider, &outcome);
        self.count(work, step.name(), outcome.name(), begun);
        if let ProviderOutcome::Rejected(rejection) = &outcome {
            tracing::error!(
                payment = reference,
                step = step.name(),
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
        if let ProviderOutcome::Approved(approval) = &outcome {
            detail.push_str(" reference=");
            detail.push_str(&approval.reference);
        }
        let verdict = judge::judge_outcome(self.attempt(work, step, reference), rules, &outcome);
        Some(AttemptResult { kind: AuditKind::ProviderAnswered, detail, verdict })
    }

    async fn query(
        &self,
        work: &mut Work,
        step: ProviderStep,
        rules: &Rules,
        reference: &str,
    ) -> Option<AttemptResult> {
        let (found, asked_at) = self.ask(work, step, reference).await?;
        let attempt = Attempt { now: asked_at, ..self.attempt(work, step, reference) };
        let verdict = judge::judge_query(attempt, rules, &found);
        let detail = format!("step={} outcome={}", step.name(), found.name());
        Some(AttemptResult { kind: AuditKind::ProviderQueried, detail, verdict })
    }

    /// Asks the provider whether the step was done, and when that was asked: what was not there is proof only for the
    /// moment of the question, not for that of the answer.
    pub(crate) async fn ask(
        &self,
        work: &mut Work,
        step: ProviderStep,
        reference: &str,
    ) -> Option<(LookupResult, Time)> {
        let lookup = ProviderLookup {
            binding: work.outbox.provider.clone(),
            step,
            key: self.key(work, step, &self.gateway.rules(&work.outbox.provider)),
            payment: reference.to_owned(),
            reference: work.subject.provider_reference().cloned(),
            amount: work.subject.amount(),
        };
        let begun = self.world.elapsed();
        let asked_at = self.store.now();
        let asking = pin!(self.gateway.lookup(lookup));
        let found = self.with_heartbeat(work, asking).await?;
        self.count(work, "query", found.name(), begun);
        Some((found, asked_at))
    }

    /// Runs `call` while renewing the lease. `None`: the lease was lost to somebody else.
    async fn with_heartbeat<T>(
        &self,
        work: &mut Work,
        mut call: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let beat = Duration::from_millis(self.policy.heartbeat.ms());
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return Some(answer),
                () = self.world.sleep(beat) => {}
            }
            // Boxed: most calls are over before the first beat.
            if Box::pin(self.renew(work)).await.is_none() {
                tracing::warn!(
                    fence = work.claim.fence,
                    "the lease was lost to a higher fence; this attempt stops"
                );
                return None;
            }
        }
    }

    /// Renews the lease, if that can be done now: if not, it simply runs on until the next beat. `None`: it was lost.
    async fn renew(&self, work: &mut Work) -> Option<()> {
        let now = self.store.now();
        let until = now.plus(self.policy.lease.lease);
        let (Ok(claim), Ok(id)) = (work.claim.on(ClaimEvent::Renewed { until }), self.ids.next(now)) else {
            return Some(());
        };
        let Some(lease) = claim.state.lease() else {
            return Some(());
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
            Err(NotCommitted::Refused(_)) => return None,
            Err(NotCommitted::Unavailable(_) | NotCommitted::InDoubt) => {}
        }
        Some(())
    }

    /// The key under which the step is asked for now.
    fn key(&self, work: &Work, step: ProviderStep, rules: &Rules) -> String {
        downstream_key(&self.mac, work.outbox.id, step, work.outbox.history.generation, rules)
    }

    fn learn(&self, binding: &ProviderBinding, outcome: &ProviderOutcome) {
        if let Some(moved) = self.lanes.learn(binding, outcome, self.store.now()) {
            // What is bound to the provider under an older profile is the provider's all the same.
            let provider = match binding.peer() {
                None => profile_name(&self.gateway.binding().profile),
                Some(_) => PEER.name,
            };
            self.watch.saw(Signal::Breaker { provider, state: moved.worst });
            tracing::warn!(
                provider = binding.name(),
                from = moved.from,
                to = moved.to,
                "the circuit breaker moved (0 closed, 1 probing, 2 open)"
            );
        }
    }

    /// A closed breaker is worth a number too: rules about it need the zero.
    pub(crate) fn note_breaker(&self) {
        let provider = profile_name(&self.gateway.binding().profile);
        self.watch.saw(Signal::Breaker { provider, state: 0 });
        if !self.gateway.peers().is_empty() {
            self.watch.saw(Signal::Breaker { provider: PEER.name, state: 0 });
        }
    }

    fn count(&self, work: &Work, step: &'static str, outcome: &'static str, begun: Duration) {
        let took = self.world.elapsed().saturating_sub(begun);
        let provider = profile_name(&work.outbox.provider.profile);
        self.watch.saw(Signal::Gateway { provider, step, outcome, took });
    }
}

fn profile_name(name: &str) -> &'static str {
    ProviderProfile::named(name).map_or("unknown", |profile| profile.name)
}
