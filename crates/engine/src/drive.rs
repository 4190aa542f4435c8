//! Driving a saga: ask the core for the next call, make the call, commit its consequences, repeat.
//! Start and resume run the same path. Only committed state is ever announced.

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

/// Delay of work without a configured peer: only a restart with new settings can help.
const UNSERVED_WAIT: Span = Span::from_ms(5 * 60_000);

/// Result of an attempt, with the words for the audit.
pub(crate) struct AttemptResult {
    pub(crate) kind: AuditKind,
    pub(crate) detail: String,
    pub(crate) verdict: AttemptVerdict,
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Drives the saga as far as possible now and sends the news to the waiters. `None`: the lease
    /// was lost, and another process will send the news. `interim` receives news from before the
    /// end.
    pub(crate) async fn drive(&self, mut work: Box<Work>, interim: &InterimNews) -> Option<News> {
        loop {
            let result = self.attempt_step(&mut work).await?;
            match self.conclude(work, &result, interim).await? {
                Concluded::News(claim, news) => {
                    self.waiters.tell(claim, &news);
                    return Some(news);
                }
                Concluded::NextStep(next) => work = next,
            }
        }
    }

    /// Makes one attempt at the saga's current step.
    async fn attempt_step(&self, work: &mut Work) -> Option<AttemptResult> {
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

    /// This server cannot work on the payment's provider: the work waits for an operator and is
    /// sent nowhere else.
    fn not_served(&self, work: &Work, step: ProviderStep, reference: &str) -> AttemptResult {
        let peer = work.outbox.provider.peer().unwrap_or_default();
        tracing::error!(
            payment = reference,
            peer,
            bound_to = &*work.outbox.provider.endpoint,
            "a payment waits for a peer that is not set up here any more; set it up again under [peers]"
        );
        let verdict = judge::judge_held_back(self.attempt(work, step, reference), UNSERVED_WAIT);
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
            let verdict = judge::judge_held_back(self.attempt(work, step, reference), wait);
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
        // The connector's deadline counts from here, before the lease is checked below. Nothing is
        // sent until it is polled.
        let sending = pin!(self.gateway.call(call));
        // Last check before the request leaves: another process may have taken over an ended lease.
        if work.claim.state.lease().is_none_or(|lease| lease.is_over(self.store.now())) {
            return None;
        }
        let begun = self.world.elapsed();
        let outcome = self.with_heartbeat(work, sending).await?;
        self.update_breaker(&work.outbox.provider, &outcome);
        self.count(work, step.name(), outcome.name(), begun);
        if let ProviderOutcome::Rejected(rejection) = &outcome {
            tracing::error!(
                payment = reference,
                step = step.name(),
                code = rejection.code,
                "the provider rejects our request; compare the settings of both accounts"
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

    /// Looks the step up at the provider. Returns the result and the time of the question: a
    /// missing payment is proof only for that moment, not for the time of the answer.
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

    /// Runs `call` while renewing the lease. `None`: the lease was lost.
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
            // Boxed, because most calls end before the first beat.
            if Box::pin(self.renew(work)).await.is_none() {
                tracing::warn!(
                    fence = work.claim.fence,
                    "the lease was lost to a higher fence; this attempt stops"
                );
                return None;
            }
        }
    }

    /// Renews the lease. If the store fails, the lease runs on until the next beat. `None`: the
    /// lease was lost.
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

    /// The provider's idempotency key of the step's current generation.
    fn key(&self, work: &Work, step: ProviderStep, rules: &Rules) -> String {
        downstream_key(&self.mac, work.outbox.id, step, work.outbox.history.generation, rules)
    }

    fn update_breaker(&self, binding: &ProviderBinding, outcome: &ProviderOutcome) {
        if let Some(moved) = self.lanes.learn(binding, outcome, self.store.now()) {
            // A payment bound under another profile still counts for the one provider.
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

    /// Reports the closed breaker at start: alert rules need the zero.
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
