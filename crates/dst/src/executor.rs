//! The executor: one thread, virtual time, and a seeded choice of the next task.
//!
//! Every task belongs to a group: one incarnation of a process, or the outside world. Killing a
//! group drops all its tasks at once, wherever they wait. Pausing a group stops its tasks for a
//! while; then they continue as if nothing had happened.

use crate::chance::{Chance, FixedHasher, mix};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::hash::BuildHasherDefault;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub type Group = u64;
pub type TaskId = u64;

/// The group that never dies: the network, and the machines of store and provider.
pub const OUTSIDE: Group = 0;

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Clone)]
pub struct Executor {
    core: Arc<Mutex<Core>>,
    /// Tasks woken since the last choice, in order.
    woken: Arc<Mutex<Vec<TaskId>>>,
}

struct Core {
    now: u64,
    tasks: HashMap<TaskId, Task, BuildHasherDefault<FixedHasher>>,
    /// Runnable tasks. Some may have ended since.
    ready: Vec<TaskId>,
    /// Runnable tasks of paused groups.
    held: Vec<TaskId>,
    next: TaskId,
    timers: BTreeMap<(u64, u64), Option<Waker>>,
    timer: u64,
    paused: BTreeMap<Group, u64>,
    /// Killed groups, in which nothing runs any more.
    gone: BTreeSet<Group>,
    chance: Chance,
    in_order: bool,
    polls: u64,
    trace: u64,
}

struct Task {
    group: Group,
    /// `None` while the future is polled.
    future: Option<Boxed>,
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    task: TaskId,
    /// Whether the task is already among the runnable ones.
    rung: AtomicBool,
    woken: Arc<Mutex<Vec<TaskId>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            lock(&self.woken).push(self.task);
        }
    }
}

/// Locks, also after a panic of an earlier holder: there is only one thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A task of this group ran.
    Ran(Group),
    /// Time advanced.
    Waited,
    /// Nothing is left to do before the limit.
    Idle,
}

impl Executor {
    /// An executor whose choices follow `seed`. With `in_order`, the oldest task always runs first.
    pub fn new(seed: u64, in_order: bool) -> Executor {
        let core = Core {
            now: 0,
            tasks: HashMap::default(),
            ready: Vec::new(),
            held: Vec::new(),
            next: 1,
            timers: BTreeMap::new(),
            timer: 0,
            paused: BTreeMap::new(),
            gone: BTreeSet::new(),
            chance: Chance::at(&[seed, 1]),
            in_order,
            polls: 0,
            trace: mix(&[seed]),
        };
        Executor { core: Arc::new(Mutex::new(core)), woken: Arc::default() }
    }

    /// Virtual milliseconds since the start.
    pub fn now(&self) -> u64 {
        lock(&self.core).now
    }

    /// Number of task polls so far.
    pub fn polls(&self) -> u64 {
        lock(&self.core).polls
    }

    /// A hash of everything that has happened so far.
    pub fn trace(&self) -> u64 {
        lock(&self.core).trace
    }

    /// Adds to the trace.
    pub fn note(&self, words: &[u64]) {
        let mut core = lock(&self.core);
        core.trace = mix(&[core.trace, core.now, mix(words)]);
    }

    /// Starts a task in a group. Killed groups start nothing: values dropped with the group may
    /// spawn.
    pub fn spawn(&self, group: Group, future: impl Future<Output = ()> + Send + 'static) -> TaskId {
        let mut core = lock(&self.core);
        let id = core.next;
        core.next = id.saturating_add(1);
        if core.gone.contains(&group) {
            drop(core);
            return id;
        }
        let bell = Bell { task: id, rung: AtomicBool::new(false), woken: Arc::clone(&self.woken) };
        let bell = Arc::new(bell);
        bell.wake_by_ref();
        let waker = Waker::from(Arc::clone(&bell));
        core.tasks.insert(id, Task { group, future: Some(Box::pin(future)), bell, waker });
        id
    }

    /// Waits `ms` virtual milliseconds, and yields at least once.
    pub fn sleep(&self, ms: u64) -> Sleep {
        let until = self.now().saturating_add(ms);
        Sleep { executor: self.clone(), until, id: None }
    }

    /// Drops all tasks of a group for good.
    pub fn kill(&self, group: Group) {
        let dropped: Vec<Task> = {
            let mut core = lock(&self.core);
            core.gone.insert(group);
            core.paused.remove(&group);
            core.release();
            let mut ids: Vec<TaskId> =
                core.tasks.iter().filter(|(_, task)| task.group == group).map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.iter().filter_map(|id| core.tasks.remove(id)).collect()
        };
        // Dropped outside the lock, because dropping a task may wake others.
        drop(dropped);
    }

    /// Drops every task. Otherwise the remaining tasks and the executor would keep each other
    /// alive.
    pub fn end(&self) {
        loop {
            let left = std::mem::take(&mut lock(&self.core).tasks);
            if left.is_empty() {
                return;
            }
            // Dropped outside the lock, because dropping a task may wake others.
            drop(left);
        }
    }

    /// Drops one task.
    pub fn cancel(&self, task: TaskId) -> bool {
        let dropped = lock(&self.core).tasks.remove(&task);
        dropped.is_some()
    }

    /// Runs no task of the group before `until`.
    pub fn pause(&self, group: Group, until: u64) {
        let mut core = lock(&self.core);
        core.timer = core.timer.saturating_add(1);
        let place = (until, core.timer);
        core.timers.insert(place, None);
        let end = core.paused.entry(group).or_default();
        *end = (*end).max(until);
    }

    /// The end of the last pause, if any group is paused.
    pub fn paused_until(&self) -> Option<u64> {
        lock(&self.core).paused.values().max().copied()
    }

    /// Ends every pause.
    pub fn resume_all(&self) {
        let mut core = lock(&self.core);
        core.paused.clear();
        core.release();
    }

    /// Runs one task, or advances time to the next timer at or before `limit`.
    pub fn step(&self, limit: u64) -> Step {
        if let Some((id, group, mut future, waker)) = self.choose() {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            let mut core = lock(&self.core);
            if polled.is_pending()
                && let Some(task) = core.tasks.get_mut(&id)
            {
                task.future = Some(future);
            } else {
                core.tasks.remove(&id);
                drop(core);
                drop(future);
            }
            return Step::Ran(group);
        }
        let mut core = lock(&self.core);
        let Some(next) = core.timers.keys().next().map(|(at, _)| *at).filter(|at| *at <= limit) else {
            core.now = core.now.max(limit);
            return Step::Idle;
        };
        core.now = core.now.max(next);
        let now = core.now;
        if !core.paused.is_empty() {
            core.paused.retain(|_, until| *until > now);
            core.release();
        }
        while let Some(first) = core.timers.first_entry().filter(|first| first.key().0 <= now) {
            if let Some(waker) = first.remove() {
                waker.wake();
            }
        }
        Step::Waited
    }

    /// Chooses a runnable task and takes its future out.
    fn choose(&self) -> Option<(TaskId, Group, Boxed, Waker)> {
        let mut core = lock(&self.core);
        let core = &mut *core;
        // Sorted by id, because one task may wake many in any order.
        let mut woken = lock(&self.woken);
        woken.sort_unstable();
        core.ready.append(&mut woken);
        drop(woken);
        loop {
            let place = core.place()?;
            let id = core.ready.swap_remove(place);
            let Some(task) = core.tasks.get_mut(&id) else { continue };
            if core.paused.contains_key(&task.group) {
                core.held.push(id);
                continue;
            }
            task.bell.rung.store(false, Ordering::Relaxed);
            let (group, future, waker) = (task.group, task.future.take()?, task.waker.clone());
            core.polls = core.polls.saturating_add(1);
            core.trace = mix(&[core.trace, core.now, id]);
            return Some((id, group, future, waker));
        }
    }
}

impl Core {
    /// The index of the next task among the runnable ones.
    fn place(&mut self) -> Option<usize> {
        if self.in_order {
            return self.ready.iter().enumerate().min_by_key(|(_, id)| **id).map(|(place, _)| place);
        }
        match self.ready.len() {
            0 => None,
            1 => Some(0),
            many => usize::try_from(self.chance.below(u64::try_from(many).unwrap_or(0))).ok(),
        }
    }

    /// Makes the tasks of paused groups runnable again; still paused ones are sorted out later.
    fn release(&mut self) {
        self.ready.append(&mut self.held);
    }
}

/// A wait in virtual time.
pub struct Sleep {
    executor: Executor,
    until: u64,
    id: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut core = lock(&self.executor.core);
        if let Some(place) = self.id {
            if core.now >= self.until {
                core.timers.remove(&place);
                return Poll::Ready(());
            }
            core.timers.insert(place, Some(context.waker().clone()));
            return Poll::Pending;
        }
        core.timer = core.timer.saturating_add(1);
        let place = (self.until.max(core.now), core.timer);
        core.timers.insert(place, Some(context.waker().clone()));
        drop(core);
        self.id = Some(place);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.id {
            let removed = lock(&self.executor.core).timers.remove(&place);
            drop(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn run(executor: &Executor, limit: u64) {
        while executor.step(limit) != Step::Idle {}
    }

    #[test]
    fn time_advances_only_when_no_task_can_run() {
        let executor = Executor::new(1, false);
        let seen = Arc::new(AtomicU64::new(0));
        let (at, clock) = (Arc::clone(&seen), executor.clone());
        executor.spawn(OUTSIDE, async move {
            clock.sleep(70).await;
            clock.sleep(7).await;
            at.store(clock.now(), Ordering::SeqCst);
        });
        run(&executor, 50);
        assert_eq!((executor.now(), seen.load(Ordering::SeqCst)), (50, 0));
        run(&executor, 100);
        assert_eq!((executor.now(), seen.load(Ordering::SeqCst)), (100, 77));
    }

    #[test]
    fn an_ended_run_leaves_no_task() {
        let executor = Executor::new(1, false);
        let (kept, clock) = (Arc::new(()), executor.clone());
        let held = Arc::clone(&kept);
        executor.spawn(OUTSIDE, async move {
            clock.sleep(1_000).await;
            drop(held);
        });
        run(&executor, 5);
        assert_eq!(Arc::strong_count(&kept), 2);
        executor.end();
        assert_eq!((Arc::strong_count(&kept), Arc::strong_count(&executor.core)), (1, 1));
    }

    #[test]
    fn a_killed_group_is_gone_and_a_paused_one_continues_later() {
        let executor = Executor::new(1, false);
        let (dead, late) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        for (group, seen) in [(1, &dead), (2, &late)] {
            let (seen, clock) = (Arc::clone(seen), executor.clone());
            executor.spawn(group, async move {
                clock.sleep(10).await;
                seen.store(clock.now(), Ordering::SeqCst);
            });
        }
        run(&executor, 5);
        executor.kill(1);
        executor.pause(2, 60);
        run(&executor, 100);
        assert_eq!((dead.load(Ordering::SeqCst), late.load(Ordering::SeqCst)), (0, 60));
    }

    /// A value dropped with a process may spawn a task, as the work of a client that hung up does.
    #[test]
    fn a_killed_group_starts_no_task() {
        struct Heir(Executor, Arc<AtomicU64>);
        impl Drop for Heir {
            fn drop(&mut self) {
                let ran = Arc::clone(&self.1);
                self.0.spawn(1, async move { ran.store(1, Ordering::SeqCst) });
            }
        }
        let (executor, ran) = (Executor::new(1, false), Arc::new(AtomicU64::new(0)));
        let heir = Heir(executor.clone(), Arc::clone(&ran));
        executor.spawn(1, async move {
            let _heir = heir;
            std::future::pending::<()>().await;
        });
        run(&executor, 5);
        executor.kill(1);
        run(&executor, 100);
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }
}
