//! Execution of a well-formed POST: claim its key, inject faults, execute, answer.
//!
//! From here on a request is executed even if its client disconnects; only faults decide.

use std::sync::Arc;

use crate::answer::{Answer, Reply};
use crate::faults::{After, Before};
use crate::idempotency::Claim;
use crate::intents::{Cancel, Capture, Create};
use crate::payouts::CreatePayout;
use crate::refunds::CreateRefund;
use crate::refusal::Refusal;
use crate::simulator::Simulator;
use crate::state::State;

/// Limit of pending late deliveries; above it a dropped request is lost.
const LATE_MAX: u32 = 100_000;

/// A well-formed request to change something.
#[derive(Debug)]
pub(crate) enum Command {
    Create(Create),
    Capture(Capture),
    Cancel(Cancel),
    Refund(CreateRefund),
    Payout(CreatePayout),
}

/// The parts of a request that its command may use.
pub(crate) struct Context<'a> {
    pub(crate) key: Option<&'a Arc<str>>,
    pub(crate) now_ms: u64,
    /// A bug of the provider: execute the effect twice.
    pub(crate) twice: bool,
}

/// A command and its idempotency key.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) fingerprint: u64,
}

/// The client's view of the result.
#[derive(Debug)]
pub(crate) enum Outcome {
    Reply(Reply),
    /// The connection is cut.
    Cut,
    /// The connection stays open and silent.
    Hang,
}

/// Executes a request from its claim to its outcome.
pub(crate) async fn post(sim: &Simulator, job: Job) -> Outcome {
    let (latency_ms, waiting) = {
        let mut state = sim.state();
        let begun = begin(&mut state, &job, sim.now_ms());
        let latency_ms = state.injector.faults().latency_ms;
        let waiting = match begun {
            Begun::Refused(refusal) => return Outcome::Reply(Reply::refused(&refusal)),
            Begun::Replay(reply) if latency_ms == 0 => return Outcome::Reply(reply),
            Begun::Claimed if latency_ms == 0 => return finish(sim, &mut state, job),
            Begun::Replay(reply) => Waiting::Replay(reply),
            Begun::Claimed => Waiting::Job(job, state.run),
        };
        (latency_ms, waiting)
    };
    let delay = sim.clock().wait(latency_ms);
    match waiting {
        Waiting::Replay(reply) => {
            delay.await;
            Outcome::Reply(reply)
        }
        Waiting::Job(job, run) => {
            let owner = sim.clone();
            // A separate task survives a client that disconnects.
            let task = detach(async move {
                delay.await;
                let mut state = owner.state();
                // A reset in between removed the claim; the client gets no answer.
                if state.run == run { finish(&owner, &mut state, job) } else { Outcome::Cut }
            });
            task.await.unwrap_or(Outcome::Cut)
        }
    }
}

enum Begun {
    Claimed,
    Replay(Reply),
    Refused(Refusal),
}

enum Waiting {
    Replay(Reply),
    Job(Job, u64),
}

fn begin(state: &mut State, job: &Job, now_ms: u64) -> Begun {
    let Some(key) = &job.key else {
        return Begun::Claimed;
    };
    let window_ms = state.injector.faults().dedup_window_ms;
    match state.keys.claim(key, job.fingerprint, now_ms, window_ms) {
        Claim::Won => Begun::Claimed,
        Claim::InUse => Begun::Refused(Refusal::key_in_use(key)),
        Claim::Mismatch => Begun::Refused(Refusal::key_reused(key)),
        Claim::Answered(answer) => {
            let reply = answer.render(state).replayed();
            Begun::Replay(if state.injector.replays_otherwise() { reply.unfinished() } else { reply })
        }
    }
}

fn finish(sim: &Simulator, state: &mut State, job: Job) -> Outcome {
    let plan = state.injector.plan();
    let faults = state.injector.faults();
    let (store_errors, forget_errors, late_ms) =
        (faults.store_errors, faults.forget_errors, faults.late_delivery_ms);
    match plan.before {
        Before::Execute => {}
        Before::Drop => {
            postpone(sim, state, job, late_ms);
            return Outcome::Cut;
        }
        Before::Error => {
            settle(state, job.key.as_ref(), store_errors.then_some(Answer::Failed), sim.now_ms());
            return Outcome::Reply(Reply::failed());
        }
    }
    if plan.after == After::Hang && late_ms > 0 {
        postpone(sim, state, job, late_ms);
        return Outcome::Hang;
    }
    let now_ms = sim.now_ms();
    let context = Context { key: job.key.as_ref(), now_ms, twice: plan.twice };
    let answer = match job.command.perform(state, &context) {
        Ok(answer) => answer,
        Err(refusal) => {
            settle(state, job.key.as_ref(), None, now_ms);
            return Outcome::Reply(Reply::refused(&refusal));
        }
    };
    let (outcome, stored) = match plan.after {
        After::Answer if plan.wrong_amount => {
            (Outcome::Reply(answer.render(state).of_another_amount()), Some(answer))
        }
        After::Answer => (Outcome::Reply(answer.render(state)), Some(answer)),
        After::Hang => (Outcome::Hang, Some(answer)),
        After::Drop => (Outcome::Cut, Some(answer)),
        After::Error if store_errors => (Outcome::Reply(Reply::failed()), Some(Answer::Failed)),
        After::Error if forget_errors => (Outcome::Reply(Reply::failed()), None),
        After::Error => (Outcome::Reply(Reply::failed()), Some(answer)),
    };
    settle(state, job.key.as_ref(), stored, now_ms);
    outcome
}

/// Stores the key's answer, or frees the key.
fn settle(state: &mut State, key: Option<&Arc<str>>, answer: Option<Answer>, now_ms: u64) {
    match (key, answer) {
        (Some(key), Some(answer)) => state.keys.settle(key, answer, now_ms),
        (Some(key), None) => state.keys.release(key),
        (None, _) => {}
    }
}

/// Frees the key and delivers the request later, as if it had been delayed on the network. It must
/// then claim its key like any other request, and its answer goes nowhere.
fn postpone(sim: &Simulator, state: &mut State, job: Job, late_ms: u64) {
    settle(state, job.key.as_ref(), None, sim.now_ms());
    if late_ms == 0 || state.late_pending >= LATE_MAX {
        return;
    }
    state.late_pending += 1;
    let (owner, run, delay) = (sim.clone(), state.run, sim.clock().wait(late_ms));
    detach(async move {
        delay.await;
        let mut state = owner.state();
        state.late_pending = state.late_pending.saturating_sub(1);
        if state.run == run {
            deliver(&owner, &mut state, job);
        }
    });
}

fn deliver(sim: &Simulator, state: &mut State, job: Job) {
    let now_ms = sim.now_ms();
    match begin(state, &job, now_ms) {
        Begun::Replay(_) | Begun::Refused(_) => {}
        Begun::Claimed => {
            let context = Context { key: job.key.as_ref(), now_ms, twice: false };
            let answer = job.command.perform(state, &context).ok();
            settle(state, job.key.as_ref(), answer, now_ms);
        }
    }
}

impl Command {
    /// Executes the command. On an error nothing was executed and the key stays free.
    fn perform(self, state: &mut State, context: &Context<'_>) -> Result<Answer, Refusal> {
        match self {
            Command::Create(create) => create.perform(state, context),
            Command::Capture(capture) => capture.perform(state, context),
            Command::Cancel(cancel) => cancel.perform(state, context),
            Command::Refund(refund) => refund.perform(state, context),
            Command::Payout(payout) => payout.perform(state, context),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a delayed request must outlive its connection")]
fn detach<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::spawn(work)
}
