//! The cluster: processes that run the real engine, and the clients that talk to them.

use super::door;
use super::operator::Operator;
use crate::bank::Bug;
use crate::chance::{Chance, Sum};
use crate::client::{Asked, Learnt, Plain, ProviderReply, Response, request_id};
use crate::executor::{Executor, Group, OUTSIDE, Step, TaskId, lock};
use crate::faults::{Fault, Faults, Site};
use crate::provider::{Connector, Provider};
use crate::script::{Ask, Script, Setup, Source};
use crate::store::{Machine, SimStore};
use crate::world::SimWorld;
use counterfoil_core::idempotency::claim::LeasePolicy;
use counterfoil_core::idempotency::window;
use counterfoil_core::outbox::Payment;
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::id::{ChargeId, HoldId, TenantId, TransactionId};
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_core::types::time::Span;
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{Service as _, Submitted};
use counterfoil_engine::signal::Deaf;
use counterfoil_engine::{Engine, Parts};
use counterfoil_gateway::breaker;
use counterfoil_store::{Row, RowKey, UNTOLD};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

/// The engine as it runs here.
pub type SimEngine = Engine<SimStore, Connector, SimWorld>;

/// A process.
struct Process {
    group: Group,
    engine: Arc<Mutex<Option<SimEngine>>>,
    /// Comes back at this instant.
    back_at: Option<u64>,
}

/// Everything that is simulated.
pub struct Cluster {
    /// Time and tasks.
    pub executor: Executor,
    /// The store's machine.
    pub machine: Arc<Mutex<Machine>>,
    /// The provider.
    pub provider: Arc<Mutex<Provider>>,
    /// Where faults strike.
    pub faults: Arc<Mutex<Faults>>,
    /// What was asked and heard.
    pub reply: Arc<Mutex<Vec<ProviderReply>>>,
    /// What clients know.
    pub learnt: Arc<Mutex<Learnt>>,
    /// Work that hints have brought forward.
    pub hinted: Arc<Mutex<u64>>,
    /// The run's settings.
    pub setup: Setup,
    /// What is broken on purpose.
    pub bug: Option<Bug>,
    processes: Vec<Process>,
    groups: Group,
    hang_ups: Vec<(u64, TaskId)>,
    /// Processes that died.
    pub crashes: u64,
}

impl Cluster {
    /// A cluster that is not started yet.
    pub fn new(script: &Script, bug: Option<Bug>) -> Cluster {
        let setup = script.setup;
        let executor = Executor::new(setup.seed, setup.in_order);
        let faults = match &script.faults {
            Source::Drawn(odds) => Faults::drawn(setup.seed, odds.clone()),
            Source::Listed(listed) => Faults::listed(setup.seed, listed.clone()),
        };
        let provider = Provider::new(setup.profile, setup.seed);
        Cluster {
            executor,
            machine: Arc::new(Mutex::new(Machine::new(bug))),
            provider: Arc::new(Mutex::new(provider)),
            faults: Arc::new(Mutex::new(faults)),
            reply: Arc::default(),
            learnt: Arc::default(),
            hinted: Arc::default(),
            setup,
            bug,
            processes: Vec::new(),
            groups: OUTSIDE,
            hang_ups: Vec::new(),
            crashes: 0,
        }
    }

    /// Starts all processes.
    pub fn boot_all(&mut self) {
        for number in 0..self.setup.processes.clamp(1, 3) {
            let process = self.boot(number);
            self.processes.push(process);
        }
    }

    fn boot(&mut self, number: u64) -> Process {
        self.groups = self.groups.saturating_add(1);
        let group = self.groups;
        let engine = Arc::new(Mutex::new(None));
        let place = usize::try_from(number).unwrap_or(0);
        let pace = self.setup.paces.get(place).copied().unwrap_or(1_000);
        let world = SimWorld::new(
            self.executor.clone(),
            group,
            Chance::at(&[self.setup.seed, 2, group]),
            pace,
            self.bug,
        );
        let (slot, parts, executor) =
            (Arc::clone(&engine), (self.clone_parts(), world), self.executor.clone());
        let numbered = (number, self.setup);
        self.executor.spawn(group, async move {
            let ((machine, faults, provider, bug), world) = parts;
            let (number, setup) = numbered;
            loop {
                let store = SimStore::new(
                    Arc::clone(&machine),
                    Arc::clone(&faults),
                    executor.clone(),
                    setup.latency,
                    setup.exclusive,
                    bug.map(|bug| (bug, number)),
                );
                let endpoint = format!("http://region-{}", number % 2);
                let gateway = Connector::new(
                    Arc::clone(&provider),
                    Arc::clone(&machine),
                    Arc::clone(&faults),
                    executor.clone(),
                    setup.latency,
                    endpoint,
                    (group, bug),
                );
                let parts = Parts {
                    store,
                    gateway,
                    world: world.clone(),
                    policy: policy(&setup),
                    present: Arc::new(Plain(references())),
                    watch: Arc::new(Deaf),
                };
                match Engine::start(parts).await {
                    Ok(started) => {
                        *lock(&slot) = Some(started);
                        return;
                    }
                    // The supervisor starts it again.
                    Err(_) => executor.sleep(500).await,
                }
            }
        });
        Process { group, engine, back_at: None }
    }

    #[expect(clippy::type_complexity, reason = "four shared things, taken apart at once")]
    fn clone_parts(&self) -> (Arc<Mutex<Machine>>, Arc<Mutex<Faults>>, Arc<Mutex<Provider>>, Option<Bug>) {
        (Arc::clone(&self.machine), Arc::clone(&self.faults), Arc::clone(&self.provider), self.bug)
    }

    /// The engine of a process, if it is up.
    pub fn engine(&self, number: u64) -> Option<SimEngine> {
        let process = self.processes.get(usize::try_from(number).ok()?)?;
        lock(&process.engine).clone()
    }

    /// Whether every process is up.
    pub fn all_up(&self) -> bool {
        (0..self.setup.processes.clamp(1, 3)).all(|number| self.engine(number).is_some())
    }

    /// A process dies at once and comes back later.
    pub fn crash(&mut self, number: u64, back: u64) {
        let at = self.executor.now().saturating_add(back);
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(process) = self.processes.get_mut(place)
            && process.back_at.is_none()
        {
            self.crashes = self.crashes.saturating_add(1);
            let group = process.group;
            *lock(&process.engine) = None;
            process.back_at = Some(at);
            self.executor.kill(group);
        }
    }

    /// A process is not run for a while.
    pub fn pause(&self, number: u64, ms: u64) {
        if let Some(process) = usize::try_from(number).ok().and_then(|place| self.processes.get(place)) {
            self.executor.pause(process.group, self.executor.now().saturating_add(ms));
        }
    }

    /// No process is run, or started, before an instant.
    pub fn freeze(&mut self, until: u64) {
        for process in &mut self.processes {
            self.executor.pause(process.group, until);
            process.back_at = process.back_at.map(|at| at.max(until));
        }
    }

    /// A process is asked to stop; it is gone a little later and comes back.
    pub fn drain(&self, number: u64) {
        if let (Some(engine), Some(process)) =
            (self.engine(number), usize::try_from(number).ok().and_then(|place| self.processes.get(place)))
        {
            self.executor.spawn(process.group, async move {
                engine.drain(Span::from_ms(5_000)).await;
            });
        }
    }

    /// Brings back whoever's time has come.
    pub fn bring_back(&mut self, everybody: bool) {
        for place in 0..self.processes.len() {
            let due = self
                .processes
                .get(place)
                .and_then(|process| process.back_at)
                .is_some_and(|at| everybody || at <= self.executor.now());
            if due {
                let process = self.boot(u64::try_from(place).unwrap_or(0));
                if let Some(old) = self.processes.get_mut(place) {
                    *old = process;
                }
            }
        }
    }

    /// When somebody comes back or hangs up next.
    fn next_own(&self) -> Option<u64> {
        let backs = self.processes.iter().filter_map(|process| process.back_at);
        backs.chain(self.hang_ups.iter().map(|(at, _)| *at)).min()
    }

    /// Runs until an instant, or until `done` says so.
    pub fn run(&mut self, until: u64, mut done: impl FnMut(&Cluster) -> bool) {
        while self.executor.now() < until && !done(self) {
            let limit = self.next_own().unwrap_or(until).clamp(self.executor.now(), until);
            match self.executor.step(limit) {
                Step::Ran(OUTSIDE) | Step::Waited | Step::Idle => {}
                Step::Ran(group) => self.maybe_crash(group),
            }
            self.bring_back(false);
            let now = self.executor.now();
            let due: Vec<TaskId> =
                self.hang_ups.iter().filter(|(at, _)| *at <= now).map(|(_, task)| *task).collect();
            self.hang_ups.retain(|(at, _)| *at > now);
            for task in due {
                self.executor.cancel(task);
            }
        }
    }

    fn maybe_crash(&mut self, group: Group) {
        let (fault, mut chance) = lock(&self.faults).at(Site::Poll);
        if fault == Some(Fault::Crash)
            && let Some(number) = self.processes.iter().position(|process| process.group == group)
        {
            self.crash(u64::try_from(number).unwrap_or(0), chance.between(50, 15_000));
        }
    }

    /// A client asks a process; the answer is noted when it comes. Says where.
    pub fn ask(&mut self, number: u64, ask: Ask, patience: Option<u64>) -> usize {
        let asked = {
            let id = request_id(lock(&self.reply).len());
            ask.asked(&lock(&self.learnt), id)
        };
        self.hand(number, ask, asked, patience)
    }

    /// Hands a request to a process.
    pub fn hand(&mut self, number: u64, ask: Ask, asked: Option<Asked>, patience: Option<u64>) -> usize {
        let place = lock(&self.reply).len();
        let commits = lock(&self.machine).shelf.history().len();
        let mut reply = ProviderReply {
            ask,
            process: number,
            invoked: self.executor.now(),
            commits,
            returned: None,
            response: None,
        };
        let Some(engine) = self.engine(number) else {
            reply.returned = Some(reply.invoked);
            reply.response = Some(Response::NobodyThere);
            lock(&self.reply).push(reply);
            return place;
        };
        lock(&self.reply).push(reply);
        let group =
            self.processes.get(usize::try_from(number).unwrap_or(0)).map_or(OUTSIDE, |process| process.group);
        let (log, learnt, executor, bug) =
            (Arc::clone(&self.reply), Arc::clone(&self.learnt), self.executor.clone(), self.bug);
        let machine = Arc::clone(&self.machine);
        let look = if let Ask::Look { number } = ask { self.look(number) } else { None };
        let operator = self.operator();
        let task = self.executor.spawn(group, async move {
            let response = match (asked, look) {
                (Some(asked), _) => Some(Response::Submitted(door::submit(&engine, asked, ask, bug).await)),
                (None, Some(look)) => Some(door::look(&engine, look, bug).await),
                (None, None) => match ask {
                    Ask::Resolve { tenant, letter, how } => {
                        door::resolve(&engine, (tenant, letter), place, |letter| {
                            operator.decides(letter, how)
                        })
                        .await
                    }
                    _ => None,
                },
            };
            if let Some(response) = &response {
                learn(&mut lock(&learnt), ask, response);
                learn_charge(&mut lock(&learnt), &lock(&machine), ask, response);
                executor.note(&[4, u64::try_from(place).unwrap_or(0), digest(response)]);
            }
            if let Some(reply) = lock(&log).get_mut(place) {
                reply.returned = Some(executor.now());
                reply.response = response.or(Some(Response::NobodyThere));
            }
        });
        if let Some(patience) = patience {
            self.hang_ups.push((self.executor.now().saturating_add(patience), task));
        }
        place
    }

    /// The provider hints at one of the payments that are under way; mostly at one it may have executed.
    pub fn hint(&mut self, number: u64, which: u64) {
        let open: Vec<Payment> = {
            let machine = lock(&self.machine);
            let work = machine.shelf.rows().values().filter_map(|row| match row.as_ref() {
                Row::Outbox(outbox) => Some(outbox),
                _ => None,
            });
            work.filter(|outbox| outbox.history.unknown || which == 0).map(|outbox| outbox.payment).collect()
        };
        let count = u64::try_from(open.len()).unwrap_or(0);
        let place = which.checked_rem(count).and_then(|place| usize::try_from(place).ok());
        let (Some(payment), Some(engine)) =
            (place.and_then(|place| open.get(place).copied()), self.engine(number))
        else {
            return;
        };
        let group =
            self.processes.get(usize::try_from(number).unwrap_or(0)).map_or(OUTSIDE, |process| process.group);
        let hinted = Arc::clone(&self.hinted);
        self.executor.spawn(group, async move {
            // A hint that is lost is one that never came.
            let moved = engine.hint(payment).await.unwrap_or(0);
            *lock(&hinted) += u64::try_from(moved).unwrap_or(0);
        });
    }

    /// An operator, who sees more than the engine does.
    fn operator(&self) -> Operator {
        Operator {
            provider: Arc::clone(&self.provider),
            executor: self.executor.clone(),
            is_quiet: lock(&self.faults).are_over(),
        }
    }

    /// What a look looks at.
    fn look(&self, number: u64) -> Option<door::Look> {
        let learnt = lock(&self.learnt);
        if number.is_multiple_of(3) {
            let place = usize::try_from(number / 3).ok()? % learnt.accounts.len().max(1);
            return learnt.accounts.keys().nth(place).map(|code| door::Look::Balance(code.clone()));
        }
        let machine = lock(&self.machine);
        let (charges, payouts) = (machine.shelf.charges(), machine.shelf.payouts());
        let payments: Vec<(Payment, TenantId)> = charges
            .chain(payouts)
            .filter_map(|row| match row {
                Row::Charge(charge) => Some((Payment::Charge(charge.id), charge.tenant)),
                Row::Payout(payout) => Some((Payment::Payout(payout.id), payout.tenant)),
                _ => None,
            })
            .collect();
        let place = usize::try_from(number / 3).ok()? % payments.len().max(1);
        let (id, owner) = payments.get(place).copied()?;
        Some(door::Look::Payment { id, owner: owner.to_i64(), asking: i64::try_from(number % 3).ok()? })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.executor.end();
    }
}

/// What a client remembers of an answer.
fn learn(learnt: &mut Learnt, ask: Ask, response: &Response) {
    let (Ask::Keep { key, .. }, Response::Submitted(Submitted::Answer { settled, .. })) = (ask, response)
    else {
        return;
    };
    let body = String::from_utf8_lossy(&settled.reply.body).into_owned();
    let number = body.strip_prefix(r#"{"n":""#).and_then(|rest| rest.split('"').next()?.parse::<i64>().ok());
    let Some(number) = number else { return };
    match key % 12 {
        2 => drop(learnt.holds.insert(key, HoldId::from_i64(number))),
        0 | 5 => drop(learnt.transactions.insert(key, TransactionId::from_i64(number))),
        _ => {}
    }
}

/// Which charge a key made: a client that was told `pending` looks whether it is there.
fn learn_charge(learnt: &mut Learnt, machine: &Machine, ask: Ask, response: &Response) {
    let (Ask::Charge { tenant, key, .. }, Response::Submitted(submitted)) = (ask, response) else { return };
    let charge = match submitted {
        Submitted::Answer { settled, .. } => {
            let body = String::from_utf8_lossy(&settled.reply.body).into_owned();
            let words = body.split('"').find_map(|word| references().open(ReferenceKind::Charge, word));
            words.map(ChargeId::from_i64)
        }
        Submitted::Pending { payment: Payment::Charge(charge), .. } => Some(*charge),
        _ => None,
    };
    if let Some(charge) = charge.filter(|id| machine.shelf.whose(&RowKey::Charge(UNTOLD, *id)).is_some()) {
        learnt.charges.entry((tenant, key)).or_insert(charge);
    }
}

/// What was heard, as one number.
fn digest(response: &Response) -> u64 {
    let mut sum = Sum::default();
    std::mem::discriminant(response).hash(&mut sum);
    match response {
        Response::Submitted(submitted) => {
            std::mem::discriminant(submitted).hash(&mut sum);
            match submitted {
                Submitted::Answer { settled, replayed } => (settled, replayed).hash(&mut sum),
                Submitted::Pending { payment, retry_after } => (payment, retry_after).hash(&mut sum),
                Submitted::Expired { original_request_at } => original_request_at.hash(&mut sum),
                Submitted::Invalid(flaws) => flaws.len().hash(&mut sum),
                Submitted::NotFound
                | Submitted::Mismatch
                | Submitted::InUse
                | Submitted::InProgress
                | Submitted::StoreUnavailable
                | Submitted::Draining => {}
            }
        }
        Response::Balance(account, balance) => {
            let view = balance.view;
            (account, view.posted, view.outgoing, view.incoming, balance.position.0).hash(&mut sum);
        }
        Response::Payment { own, shown } => (own, shown).hash(&mut sum),
        Response::Key(_) | Response::Unreadable | Response::NobodyThere => {}
    }
    sum.finish()
}

/// The references of the simulated store.
pub fn references() -> References {
    References::new(MacKey::new(&[7; 32]))
}

fn policy(setup: &Setup) -> EnginePolicy {
    EnginePolicy {
        lease: LeasePolicy { lease: Span::from_ms(setup.lease), ceiling: Span::from_ms(setup.ceiling) },
        heartbeat: Span::from_ms(setup.heartbeat),
        wait: Span::from_ms(setup.wait),
        windows: window::WindowPolicy {
            replay: Span::from_ms(setup.replay),
            tombstone: Span::from_ms(setup.tombstone),
            reuse: window::Reuse::AfterTombstone,
        },
        attempts_max: u32::try_from(setup.attempts).unwrap_or(3),
        backoff: Backoff { base: Span::from_ms(500), cap: Span::from_ms(30_000) },
        poll: Span::from_ms(setup.poll),
        batch: 64,
        breaker: breaker::BreakerPolicy {
            failures: u32::try_from(setup.breaker).unwrap_or(u32::MAX),
            open: Span::from_ms(1_000),
        },
    }
}
