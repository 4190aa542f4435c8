//! The cluster: processes with the real engine, and their clients.

use super::frontend;
use super::operator::Operator;
use crate::bank::Bug;
use crate::chance::{Chance, FixedHasher};
use crate::client::{ClientCall, ClientKnowledge, ClientRequest, PlainPresenter, Response, request_id};
use crate::executor::{Executor, Group, OUTSIDE, Step, TaskId, lock};
use crate::faults::{Fault, Faults, Site};
use crate::provider::{Connector, Provider};
use crate::script::{Ask, FaultSource, Script, Setup};
use crate::store::{Machine, StoreClient};
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
use counterfoil_engine::signal::NoWatch;
use counterfoil_engine::{Engine, Parts};
use counterfoil_gateway::breaker;
use counterfoil_store::{Row, RowKey};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

pub type SimEngine = Engine<StoreClient, Connector, SimWorld>;

struct Process {
    group: Group,
    engine: Arc<Mutex<Option<SimEngine>>>,
    /// Time at which a dead process comes back.
    back_at: Option<u64>,
}

/// The whole simulated system.
pub struct Cluster {
    pub executor: Executor,
    pub machine: Arc<Mutex<Machine>>,
    pub provider: Arc<Mutex<Provider>>,
    pub faults: Arc<Mutex<Faults>>,
    /// Requests of clients and their answers.
    pub calls: Arc<Mutex<Vec<ClientCall>>>,
    /// The clients' knowledge from earlier answers.
    pub known: Arc<Mutex<ClientKnowledge>>,
    /// Pieces of work brought forward by hints.
    pub hinted: Arc<Mutex<u64>>,
    pub setup: Setup,
    /// The planted bug, if any.
    pub bug: Option<Bug>,
    processes: Vec<Process>,
    groups: Group,
    hang_ups: Vec<(u64, TaskId)>,
    /// Number of crashes.
    pub crashes: u64,
}

impl Cluster {
    /// A cluster without running processes.
    pub fn new(script: &Script, bug: Option<Bug>) -> Cluster {
        let setup = script.setup;
        let executor = Executor::new(setup.seed, setup.in_order);
        let faults = match &script.faults {
            FaultSource::Drawn(odds) => Faults::drawn(setup.seed, odds.clone()),
            FaultSource::Listed(listed) => Faults::listed(setup.seed, listed.clone()),
        };
        let provider = Provider::new(setup.profile, setup.seed);
        Cluster {
            executor,
            machine: Arc::new(Mutex::new(Machine::new(bug))),
            provider: Arc::new(Mutex::new(provider)),
            faults: Arc::new(Mutex::new(faults)),
            calls: Arc::default(),
            known: Arc::default(),
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
                let store = StoreClient::new(
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
                    present: Arc::new(PlainPresenter(references())),
                    watch: Arc::new(NoWatch),
                };
                match Engine::start(parts).await {
                    Ok(started) => {
                        *lock(&slot) = Some(started);
                        return;
                    }
                    // The supervisor restarts the process.
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

    /// Kills a process, which comes back later.
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

    /// Pauses a process.
    pub fn pause(&self, number: u64, ms: u64) {
        if let Some(process) = usize::try_from(number).ok().and_then(|place| self.processes.get(place)) {
            self.executor.pause(process.group, self.executor.now().saturating_add(ms));
        }
    }

    /// Pauses all processes until an instant, and postpones restarts.
    pub fn freeze(&mut self, until: u64) {
        for process in &mut self.processes {
            self.executor.pause(process.group, until);
            process.back_at = process.back_at.map(|at| at.max(until));
        }
    }

    /// Starts the graceful shutdown of a process.
    pub fn drain(&self, number: u64) {
        if let (Some(engine), Some(process)) =
            (self.engine(number), usize::try_from(number).ok().and_then(|place| self.processes.get(place)))
        {
            self.executor.spawn(process.group, async move {
                engine.drain(Span::from_ms(5_000)).await;
            });
        }
    }

    /// Restarts the dead processes whose time has come, or all of them.
    pub fn bring_back(&mut self, all: bool) {
        for place in 0..self.processes.len() {
            let due = self
                .processes
                .get(place)
                .and_then(|process| process.back_at)
                .is_some_and(|at| all || at <= self.executor.now());
            if due {
                let process = self.boot(u64::try_from(place).unwrap_or(0));
                if let Some(old) = self.processes.get_mut(place) {
                    *old = process;
                }
            }
        }
    }

    /// Time of the next restart or hang-up.
    fn next_own(&self) -> Option<u64> {
        let backs = self.processes.iter().filter_map(|process| process.back_at);
        backs.chain(self.hang_ups.iter().map(|(at, _)| *at)).min()
    }

    /// Runs until an instant or until `done`.
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

    /// Sends a client's request to a process. Returns the index of the call.
    pub fn ask(&mut self, number: u64, ask: Ask, patience: Option<u64>) -> usize {
        let asked = {
            let id = request_id(lock(&self.calls).len());
            ask.asked(&lock(&self.known), id)
        };
        self.hand(number, ask, asked, patience)
    }

    /// Sends a prepared request to a process. Returns the index of the call.
    pub fn hand(
        &mut self,
        number: u64,
        ask: Ask,
        asked: Option<ClientRequest>,
        patience: Option<u64>,
    ) -> usize {
        let place = lock(&self.calls).len();
        let commits = lock(&self.machine).store.history().len();
        let mut call = ClientCall {
            ask,
            process: number,
            invoked: self.executor.now(),
            commits,
            returned: None,
            response: None,
        };
        let Some(engine) = self.engine(number) else {
            call.returned = Some(call.invoked);
            call.response = Some(Response::NobodyThere);
            lock(&self.calls).push(call);
            return place;
        };
        lock(&self.calls).push(call);
        let group =
            self.processes.get(usize::try_from(number).unwrap_or(0)).map_or(OUTSIDE, |process| process.group);
        let (log, known, executor, bug) =
            (Arc::clone(&self.calls), Arc::clone(&self.known), self.executor.clone(), self.bug);
        let machine = Arc::clone(&self.machine);
        let look = if let Ask::Look { number } = ask { self.look(number) } else { None };
        let operator = self.operator();
        let task = self.executor.spawn(group, async move {
            let response = match (asked, look) {
                (Some(asked), _) => {
                    Some(Response::Submitted(frontend::submit(&engine, asked, ask, bug).await))
                }
                (None, Some(look)) => Some(frontend::look(&engine, look, bug).await),
                (None, None) => match ask {
                    Ask::Resolve { tenant, letter, how } => {
                        frontend::resolve(&engine, (tenant, letter), place, |letter| {
                            operator.decides(letter, how)
                        })
                        .await
                    }
                    _ => None,
                },
            };
            if let Some(response) = &response {
                learn(&mut lock(&known), ask, response);
                learn_charge(&mut lock(&known), &lock(&machine), ask, response);
                executor.note(&[4, u64::try_from(place).unwrap_or(0), digest(response)]);
            }
            if let Some(call) = lock(&log).get_mut(place) {
                call.returned = Some(executor.now());
                call.response = response.or(Some(Response::NobodyThere));
            }
        });
        if let Some(patience) = patience {
            self.hang_ups.push((self.executor.now().saturating_add(patience), task));
        }
        place
    }

    /// Sends a hint about a payment with pending work, mostly one that the provider may have
    /// executed.
    pub fn hint(&mut self, number: u64, which: u64) {
        let open: Vec<Payment> = {
            let machine = lock(&self.machine);
            let work = machine.store.rows().values().filter_map(|row| match row.as_ref() {
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
            // A failed hint counts as one that never came.
            let moved = engine.hint(payment).await.unwrap_or(0);
            *lock(&hinted) += u64::try_from(moved).unwrap_or(0);
        });
    }

    /// An operator, who also sees the provider's effects.
    fn operator(&self) -> Operator {
        Operator {
            provider: Arc::clone(&self.provider),
            executor: self.executor.clone(),
            is_quiet: lock(&self.faults).are_over(),
        }
    }

    /// The object of a read.
    fn look(&self, number: u64) -> Option<frontend::Look> {
        let known = lock(&self.known);
        if number.is_multiple_of(3) {
            let place = usize::try_from(number / 3).ok()? % known.accounts.len().max(1);
            return known.accounts.keys().nth(place).map(|code| frontend::Look::Balance(code.clone()));
        }
        let machine = lock(&self.machine);
        let (charges, payouts) = (machine.store.charges(), machine.store.payouts());
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
        Some(frontend::Look::Payment { id, owner: owner.to_i64(), asking: i64::try_from(number % 3).ok()? })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.executor.end();
    }
}

/// Stores the ids of an answer for later requests.
fn learn(known: &mut ClientKnowledge, ask: Ask, response: &Response) {
    let (Ask::Ledger { key, .. }, Response::Submitted(Submitted::Answer { settled, .. })) = (ask, response)
    else {
        return;
    };
    let body = String::from_utf8_lossy(&settled.reply.body).into_owned();
    let number = body.strip_prefix(r#"{"n":""#).and_then(|rest| rest.split('"').next()?.parse::<i64>().ok());
    let Some(number) = number else { return };
    match key % 12 {
        2 => drop(known.holds.insert(key, HoldId::from_i64(number))),
        0 | 5 => drop(known.transactions.insert(key, TransactionId::from_i64(number))),
        _ => {}
    }
}

/// Stores the charge of a key. After `pending`, the client reads whether the charge exists.
fn learn_charge(known: &mut ClientKnowledge, machine: &Machine, ask: Ask, response: &Response) {
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
    if let Some(charge) =
        charge.filter(|id| machine.store.find_row(|tenant| RowKey::Charge(tenant, *id)).is_some())
    {
        known.charges.entry((tenant, key)).or_insert(charge);
    }
}

/// A hash of the response.
fn digest(response: &Response) -> u64 {
    let mut sum = FixedHasher::default();
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
