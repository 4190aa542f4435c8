//! The possible actions and their consequences. Actions are atomic: between two actions, any worker
//! may crash or sleep.

use crate::provider::{Answer, Message, RequestFate};
use crate::state::{LEASE, NOW, State, Stored};
use crate::worker::{AttemptResult, Held, Worker};
use crate::{Bug, Protocol};
use counterfoil_core::idempotency::claim::{Claim, ClaimEvent, ClaimId, ClaimState, LeasePolicy, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::outbox::{Outbox, ProviderBinding};
use counterfoil_core::payments::attempt::judge::{Attempt, AttemptVerdict, judge_outcome, judge_query};
use counterfoil_core::payments::attempt::next::{NextCall, next};
use counterfoil_core::payments::attempt::resume::take_over;
use counterfoil_core::payments::charge::create::{ChargeIds, CreateCharge, NewCharge, decide};
use counterfoil_core::payments::follow::{self, follow};
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderOutcome, ProviderStep, Stands,
};
use counterfoil_core::payments::{Opening, Work};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, ChargeId, Holder, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, ChangeSet, Row, RowKey};
use std::collections::BTreeMap;

/// An action of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A client's request reaches an idle worker, which claims its key.
    Submit { key: usize, worker: usize },
    /// An idle worker takes over work that is due.
    TakeOver { key: usize, worker: usize },
    /// A worker with a lease does the core's next action.
    Act { worker: usize },
    /// The provider receives a request. A request without this action is lost.
    Deliver { place: usize, fate: RequestFate },
    /// A worker stops waiting for an answer.
    GiveUp { worker: usize },
    /// A waiting worker renews its lease.
    Renew { worker: usize },
    /// A worker commits the result of its attempt.
    Conclude { worker: usize },
    /// A worker dies and is replaced.
    Crash { worker: usize },
    /// The time of a lease passes.
    Tick,
}

impl Action {
    pub(crate) fn is_tick(self) -> bool {
        self == Action::Tick
    }
}

/// Attempts per key. A bound is necessary, because the state space would be infinite without it.
const ATTEMPTS_MAX: u32 = 4;
const POLICY: LeasePolicy = LeasePolicy { lease: LEASE, ceiling: Span::from_ms(LEASE.ms() * 2) };

impl Protocol {
    pub(crate) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        let now = NOW;
        // Idle workers are interchangeable, so the first stands for all.
        let idle = state.workers.iter().position(|worker| *worker == Worker::Idle);
        for (key, stored) in state.stored.iter().enumerate() {
            let Some(worker) = idle else { break };
            match (&stored.claim, &stored.outbox) {
                (None, _) => actions.push(Action::Submit { key, worker }),
                (Some(claim), Some(outbox)) if self.is_due(claim, outbox, now) => {
                    actions.push(Action::TakeOver { key, worker });
                }
                (Some(_), _) => {}
            }
        }
        for (worker, doing) in state.workers.iter().enumerate() {
            match doing {
                Worker::Idle => continue,
                Worker::Holding(_) => actions.push(Action::Act { worker }),
                Worker::Waiting(held) => {
                    actions.push(Action::GiveUp { worker });
                    if held
                        .claim
                        .state
                        .lease()
                        .is_some_and(|lease| lease.until < lease.ceiling && lease.until <= now)
                    {
                        actions.push(Action::Renew { worker });
                    }
                }
                Worker::Knowing(..) => actions.push(Action::Conclude { worker }),
            }
            actions.push(Action::Crash { worker });
        }
        for place in 0..state.wire.len() {
            for fate in
                [RequestFate::Approve, RequestFate::Decline, RequestFate::ApproveThenFail, RequestFate::Fail]
            {
                actions.push(Action::Deliver { place, fate });
            }
        }
        actions.push(Action::Tick);
    }

    fn is_due(&self, claim: &Claim, outbox: &Outbox, now: Time) -> bool {
        let lease_over = claim.state.lease().is_none_or(|lease| lease.is_over(now));
        let ignored = self.bug == Some(Bug::LeaseIgnored);
        outbox.parked.is_none()
            && claim.attempts < ATTEMPTS_MAX
            && (ignored || (lease_over && outbox.due_at <= now))
    }

    pub(crate) fn after(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Submit { key, worker } => self.submit(&mut next, key, worker),
            Action::TakeOver { key, worker } => self.take_over(&mut next, key, worker)?,
            Action::Act { worker } => self.act(&mut next, worker)?,
            Action::Deliver { place, fate } => self.deliver(&mut next, place, fate),
            Action::GiveUp { worker } => {
                let Worker::Waiting(held) = next.workers.get(worker)?.clone() else { return None };
                *next.workers.get_mut(worker)? = Worker::Knowing(held, AttemptResult::Silence);
            }
            Action::Renew { worker } => self.renew(&mut next, worker)?,
            Action::Conclude { worker } => self.conclude(&mut next, worker)?,
            Action::Crash { worker } => {
                *next.workers.get_mut(worker)? = Worker::Idle;
            }
            Action::Tick => next.pass(&self.profile.rules),
        }
        next.reduce(self);
        Some(next)
    }

    fn submit(&self, state: &mut State, key: usize, worker: usize) {
        let Work { claim, outbox, .. } = opening(NOW).work;
        let held = Held { key, claim: claim.clone(), outbox: outbox.clone() };
        let set = set().insert(claim).insert(outbox);
        if self.commit(state, key, &set) {
            place(state, worker, Worker::Holding(held));
        }
    }

    fn take_over(&self, state: &mut State, key: usize, worker: usize) -> Option<()> {
        let Stored { claim: Some(claim), outbox: Some(outbox), .. } = state.stored.get(key)?.clone() else {
            return None;
        };
        let mut taken = take_over(&claim, &outbox, POLICY, HOLDER, NOW, 0).ok()?;
        if self.bug == Some(Bug::LeaseIgnored) {
            taken.outbox.history = outbox.history;
        }
        if self.bug == Some(Bug::FreshKeyPerAttempt) {
            taken.outbox.history.generation = taken.outbox.history.generation.saturating_add(1);
        }
        let set =
            set().replace(taken.claim.clone(), claim.revision).replace(taken.outbox.clone(), outbox.revision);
        if self.commit(state, key, &set) {
            let held = Held { key, claim: taken.claim, outbox: taken.outbox };
            place(state, worker, Worker::Holding(held));
        }
        Some(())
    }

    fn act(&self, state: &mut State, worker: usize) -> Option<()> {
        let Worker::Holding(held) = state.workers.get(worker)?.clone() else { return None };
        let now = NOW;
        let rules = &self.profile.rules;
        let what = match self.bug {
            Some(Bug::BlindRepetition) => NextCall::Call,
            Some(Bug::HastyProof) if held.outbox.history.unknown => NextCall::Query,
            _ => next(rules, &held.outbox, held.claim.attempts, now),
        };
        let then = match what {
            // The last check of the lease before the request leaves.
            NextCall::Call if held.claim.state.lease().is_none_or(|lease| lease.is_over(now)) => Worker::Idle,
            NextCall::Call => {
                let generation = held.outbox.history.generation;
                state.wire.push(Message { key: held.key, generation, sent_at: now, worker: Some(worker) });
                Worker::Waiting(held)
            }
            NextCall::Query => {
                let asked = NOW;
                let result = match state.provider.effects(held.key) {
                    0 if state.provider.has_declined(held.key) => AttemptResult::FoundDeclined(asked),
                    0 => AttemptResult::FoundNothing(asked),
                    1 => AttemptResult::FoundApproved(asked),
                    _ => AttemptResult::FoundSeveral(asked),
                };
                Worker::Knowing(held, result)
            }
            NextCall::Wait(until) => {
                let verdict = AttemptVerdict::Doubt { not_before: until, history: held.outbox.history };
                self.settle(state, &held, &verdict);
                Worker::Idle
            }
            NextCall::Park(reason) => {
                self.settle(state, &held, &AttemptVerdict::Park { reason, reference: None });
                Worker::Idle
            }
        };
        place(state, worker, then);
        Some(())
    }

    fn deliver(&self, state: &mut State, place_on_wire: usize, fate: RequestFate) {
        let message = state.wire.remove(place_on_wire);
        let now = NOW;
        let answer = state.provider.receive(&message, fate, &self.profile.rules, now);
        if let Some(worker) = message.worker
            && let Some(Worker::Waiting(held)) = state.workers.get(worker).cloned()
            && held.key == message.key
            && held.outbox.history.generation == message.generation
        {
            place(state, worker, Worker::Knowing(held, AttemptResult::Answered(answer)));
        }
    }

    fn renew(&self, state: &mut State, worker: usize) -> Option<()> {
        let Worker::Waiting(held) = state.workers.get(worker)?.clone() else { return None };
        let claim = held.claim.on(ClaimEvent::Renewed { until: NOW.plus(LEASE) }).ok()?;
        let outbox = Outbox {
            due_at: claim.state.lease()?.until,
            revision: held.outbox.revision.saturating_add(1),
            ..held.outbox.clone()
        };
        let set =
            set().replace(claim.clone(), held.claim.revision).replace(outbox.clone(), held.outbox.revision);
        let then = if self.commit(state, held.key, &set) {
            Worker::Waiting(Held { key: held.key, claim, outbox })
        } else {
            // Lost to a higher fence: this attempt stops. Its request may still arrive.
            Worker::Idle
        };
        place(state, worker, then);
        Some(())
    }

    fn conclude(&self, state: &mut State, worker: usize) -> Option<()> {
        let Worker::Knowing(held, result) = state.workers.get(worker)?.clone() else { return None };
        let now = NOW;
        let reference = REFERENCE;
        let rules = &self.profile.rules;
        let unknown_fails = self.bug == Some(Bug::UnknownIsFailure);
        let approved = || ProviderOutcome::Approved(approval());
        let declined =
            || ProviderOutcome::Declined(Decline { code: "no".into(), decline_code: None, reference: None });
        let called =
            |outcome: &ProviderOutcome| judge_outcome(attempt(&held, reference, now), rules, outcome);
        let asked = |found: &LookupResult, at: Time| {
            if self.bug == Some(Bug::HastyProof) && *found == LookupResult::Nothing {
                let mut history = held.outbox.history;
                history.generation = history.generation.saturating_add(1);
                history.unknown = false;
                return AttemptVerdict::Doubt { not_before: now, history };
            }
            judge_query(attempt(&held, reference, at), rules, found)
        };
        let verdict = match result {
            AttemptResult::Answered(Answer::Approved) => called(&approved()),
            AttemptResult::Answered(Answer::Declined) => called(&declined()),
            AttemptResult::Answered(Answer::ServerError) | AttemptResult::Silence if unknown_fails => {
                called(&declined())
            }
            AttemptResult::Answered(Answer::ServerError) => {
                called(&ProviderOutcome::Unknown(Cause::ServerError))
            }
            AttemptResult::Silence => called(&ProviderOutcome::Unknown(Cause::Timeout)),
            AttemptResult::FoundApproved(at) => asked(&LookupResult::Payment(approved()), at),
            AttemptResult::FoundDeclined(at) => asked(&LookupResult::Payment(declined()), at),
            AttemptResult::FoundNothing(at) => asked(&LookupResult::Nothing, at),
            AttemptResult::FoundSeveral(at) => asked(&LookupResult::Several, at),
        };
        self.settle(state, &held, &verdict);
        place(state, worker, Worker::Idle);
        Some(())
    }

    /// Commits the consequences of a verdict. A late writer changes nothing.
    fn settle(&self, state: &mut State, held: &Held, verdict: &AttemptVerdict) {
        let now = NOW;
        let made = opening(now).work;
        let work = Work { claim: held.claim.clone(), outbox: held.outbox.clone(), ..made };
        let Some(follows) = follow(&work, verdict, now) else { return };
        let (event, outbox) = match follows.next_step {
            follow::NextStep::Completed => (ClaimEvent::Completed(answer()), None),
            follow::NextStep::Failed(_) => (ClaimEvent::Failed(answer()), None),
            // A charge has a single provider step.
            follow::NextStep::CallProvider(_) => return,
            follow::NextStep::Retry { outbox, .. }
                if matches!(held.claim.state, ClaimState::Uncertain(_)) =>
            {
                (ClaimEvent::Doubted { not_before: now }, Some((outbox, now)))
            }
            follow::NextStep::Retry { outbox, .. } => {
                (ClaimEvent::PutOff { not_before: now }, Some((outbox, now)))
            }
            follow::NextStep::Doubt { not_before, outbox } => {
                let not_before = not_before.max(now);
                (ClaimEvent::Doubted { not_before }, Some((outbox, not_before)))
            }
            follow::NextStep::Parked(outbox) => {
                (ClaimEvent::Doubted { not_before: Time::MAX }, Some((outbox, Time::MAX)))
            }
        };
        let Ok(claim) = held.claim.on(event) else { return };
        let set = set().replace(claim, held.claim.revision);
        let set = match outbox {
            Some((outbox, due_at)) => set.replace(Outbox { due_at, ..outbox }, held.outbox.revision),
            None => set.remove(RowKey::Outbox(held.outbox.tenant, held.outbox.id), held.outbox.revision),
        };
        self.commit(state, held.key, &set);
    }

    /// Commits like every store: through the judge.
    fn commit(&self, state: &mut State, key: usize, set: &ChangeSet) -> bool {
        let Some(stored) = state.stored.get_mut(key) else { return false };
        let (claim_key, outbox_key) = (
            RowKey::Claim(TenantId::from_i64(1), claim_id()),
            RowKey::Outbox(TenantId::from_i64(1), CHARGE.into()),
        );
        if self.bug == Some(Bug::NoCompareAndSwap) {
            for change in set.changes() {
                match change {
                    Change::Insert(row) | Change::Replace { row, .. } => match &**row {
                        Row::Claim(claim) => stored.claim = Some(claim.clone()),
                        Row::Outbox(outbox) => stored.outbox = Some(outbox.clone()),
                        _ => {}
                    },
                    Change::Remove { .. } => stored.outbox = None,
                    Change::Move(_) => {}
                }
            }
            stored.note();
            return true;
        }
        let mut image = Image::default();
        image.bring(claim_key.clone(), stored.claim.clone().map(Row::Claim));
        image.bring(outbox_key.clone(), stored.outbox.clone().map(Row::Outbox));
        if image.admit(set).is_err() {
            return false;
        }
        stored.claim = match image.get(&claim_key) {
            Some(Row::Claim(claim)) => Some(claim.clone()),
            _ => None,
        };
        stored.outbox = match image.get(&outbox_key) {
            Some(Row::Outbox(outbox)) => Some(outbox.clone()),
            _ => None,
        };
        stored.note();
        true
    }
}

impl Stored {
    fn note(&mut self) {
        self.answered |= self.claim.as_ref().is_some_and(|claim| claim.state.settled().is_some());
    }
}

fn place(state: &mut State, worker: usize, doing: Worker) {
    if let Some(place) = state.workers.get_mut(worker) {
        *place = doing;
    }
}

fn set() -> ChangeSet {
    ChangeSet::new(SetId::from_i64(1))
}

/// All keys use the same ids, because each key has its own rows in the model. Keys in the same
/// state therefore compare as equal.
const CHARGE: ChargeId = ChargeId::from_i64(1);
/// The fence identifies the holder.
const HOLDER: Holder = Holder { slot: 1, epoch: 1 };
const REFERENCE: &str = "ch_1";

fn claim_id() -> ClaimId {
    ClaimId::from_digest(Digest::from_bytes([1; 32]))
}

fn binding() -> ProviderBinding {
    ProviderBinding { profile: "model".into(), endpoint: "model".into() }
}

#[expect(clippy::expect_used, reason = "the model's own constants")]
fn amount() -> Money {
    Money::new(1, Asset::currency("USD").expect("a currency")).expect("an amount")
}

fn command() -> CreateCharge {
    CreateCharge {
        request: Request {
            tenant: TenantId::from_i64(1),
            claim: claim_id(),
            fingerprint: Fingerprint::from_digest(Digest::of("model", &[])),
            id: Ulid::new(Time::EPOCH, 0),
        },
        wanted: NewCharge {
            amount: amount(),
            payment_method: Masked::new("pm".into()),
            capture: true,
            destination: None,
            wallet: None,
            description: None,
            metadata: BTreeMap::new(),
        },
    }
}

#[expect(clippy::expect_used, reason = "a test of the flows says that each begins with a call")]
fn opening(now: Time) -> Opening {
    let minted = ChargeIds {
        charge: CHARGE,
        hold: None,
        now,
        chance: 0,
        holder: HOLDER,
        destination: AccountId::from_i64(1),
    };
    decide(command(), binding(), POLICY, &minted, None).expect("a flow that begins")
}

fn approval() -> Approval {
    Approval {
        reference: "pi_1".into(),
        stands: Stands::Captured,
        amount_minor: amount().minor(),
        asset: Some(amount().asset()),
        payment: Some(REFERENCE.into()),
    }
}

fn attempt<'a>(held: &'a Held, reference: &'a str, now: Time) -> Attempt<'a> {
    Attempt {
        step: ProviderStep::Charge,
        amount_minor: amount().minor(),
        asset: amount().asset(),
        history: &held.outbox.history,
        reference,
        attempts_max: 8,
        now,
    }
}

fn answer() -> Settled {
    Settled {
        reply: Reply { status: 201, media: ReplyMedia::Json, location: None, body: Vec::new().into() },
        windows: Windows { replay_until: Time::MAX, tombstone_until: Time::MAX },
    }
}
