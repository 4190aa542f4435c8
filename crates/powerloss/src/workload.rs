//! Runs the real store on a recorded directory: several producers at once, so that groups form; a log so short that it
//! is copied and starts over all the time; clean ends and new beginnings in between.

use crate::chance::Chance;
use crate::media::Recorded;
use crate::record::Recorder;
use crate::rows::{self, ACCOUNTS};
use crate::story::{Acknowledged, Story};
use counterfoil_store::{ChangeSet, CommitError, CommitReceipt, Position, Store};
use counterfoil_store_embedded::{
    EmbeddedStore, Fault, FaultPoint, LogBounds, Options, RedoBounds, SystemTime, TimeSource,
};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// How often a set is offered to a store that cannot take it now.
const ATTEMPTS: usize = 40;
/// A page of the feed.
const PAGE: usize = 500;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How often the store is opened.
    pub sessions: usize,
    /// Keys that are claimed in each session.
    pub keys: i64,
    /// Who do it at the same time.
    pub producers: usize,
    /// The log's bounds.
    pub log: LogBounds,
    /// The redo log's bounds.
    pub redo: RedoBounds,
}

impl Size {
    /// A log of some dozens of frames.
    pub const SHORT_LOG: LogBounds = LogBounds { step: 12, long: 60, too_long: 90, kept: 90, rest: 30 };
    /// Segments of a few groups.
    pub const SHORT_REDO: RedoBounds = RedoBounds { segment: 6 << 10, extent: 4 << 10 };
}

/// A machine that was booted under a name.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    /// The name.
    pub name: &'static str,
    /// What its wall clock says, if not the truth.
    pub wall_ms: Option<i64>,
}

impl TimeSource for Boot {
    fn wall_ms(&self) -> i64 {
        self.wall_ms.unwrap_or_else(|| SystemTime.wall_ms())
    }

    fn boottime_ms(&self) -> i64 {
        SystemTime.boottime_ms()
    }

    fn boot_id(&self) -> Option<String> {
        Some(self.name.to_owned())
    }
}

/// What the producers of a session share.
struct Shared {
    store: EmbeddedStore,
    recorder: Arc<Recorder>,
    next: AtomicI64,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    sets: Vec<ChangeSet>,
    receipts: Vec<(ChangeSet, CommitReceipt)>,
    found: Vec<Acknowledged>,
    denied: Vec<(ChangeSet, usize)>,
    doubtful: bool,
}

/// The last position of a group, and how many operations there were when it was durable.
type Groups = Arc<Mutex<Vec<(u64, usize)>>>;

/// How a set ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Committed,
    Refused,
    /// It was not committed, and is given up.
    GivenUp,
    /// The store takes nothing any more.
    Stopped,
}

/// Goes on with `story` on the directory the recorder has prepared.
pub fn run(
    recorder: &Arc<Recorder>,
    dir: &Path,
    story: &mut Story,
    size: Size,
    seed: u64,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    for session in 0..size.sessions {
        let groups = Groups::default();
        let store = open(recorder, dir, size, &groups)?;
        story.secrets.push((*store.secret().reveal(), recorder.len()));
        let head = runtime.block_on(head(&store))?;
        let shared = Arc::new(Shared {
            store,
            recorder: Arc::clone(recorder),
            next: AtomicI64::new(story.next.max(1)),
            told: Mutex::default(),
        });
        runtime.block_on(produce_all(&shared, size, seed, session));
        let shared = Arc::into_inner(shared).ok_or("a producer still runs")?;
        story.next = shared.next.load(Ordering::Relaxed);
        shared.store.close();
        let told = shared.told.into_inner().unwrap_or_else(PoisonError::into_inner);
        let groups = lock(&groups).clone();
        retell(story, told, head, &groups)?;
    }
    Ok(())
}

fn open(recorder: &Arc<Recorder>, dir: &Path, size: Size, groups: &Groups) -> Result<EmbeddedStore, String> {
    let mut opened = Err(String::new());
    // A fault of the plan may hit an opening; it passes.
    for _ in 0..ATTEMPTS {
        let (asked, watched, groups) = (Arc::clone(recorder), Arc::clone(recorder), Arc::clone(groups));
        let options = Options {
            readers: 1,
            log: size.log,
            redo: size.redo,
            media: Arc::new(Recorded(Arc::clone(recorder))),
            time: Arc::new(Boot { name: "before", wall_ms: None }),
            observe: Some(Arc::new(move |admitted, _| {
                let mut groups = lock(&groups);
                let last = groups.last().map_or(0, |group| group.0);
                groups.push((last + u64::try_from(admitted).unwrap_or(0), watched.len()));
            })),
            fault: Some(Arc::new(move |point| match point {
                FaultPoint::Checkpoint => asked.own_sync_fails().then_some(Fault::Sync),
                FaultPoint::Log => {
                    asked.written_again("counterfoil.db-wal");
                    None
                }
                FaultPoint::CheckpointLog => asked.log_sync_fails().then_some(Fault::Sync),
                FaultPoint::Write | FaultPoint::Commit | FaultPoint::Show => None,
            })),
            pages_max: None,
        };
        opened = EmbeddedStore::open(dir, options).map_err(|error| error.to_string());
        if opened.is_ok() {
            break;
        }
    }
    opened
}

/// The last position.
async fn head(store: &EmbeddedStore) -> Result<Position, String> {
    let mut last = Position::START;
    loop {
        let page = store.feed(last, PAGE).await.map_err(|error| error.to_string())?;
        match page.last() {
            Some(commit) => last = commit.receipt.position,
            None => return Ok(last),
        }
    }
}

/// Enters what a session was told into the story.
fn retell(story: &mut Story, told: Told, head: Position, groups: &[(u64, usize)]) -> Result<(), String> {
    story.sets.extend(told.sets.into_iter().map(|set| (set.id().to_i64(), set)));
    for (set, receipt) in told.receipts {
        let group = groups.iter().find(|group| head.0 + group.0 >= receipt.position.0);
        let (_, after) = group.ok_or("a set was acknowledged that no group holds")?;
        story.acknowledged.push(Acknowledged { set: set.id(), receipt, after: *after });
    }
    story.acknowledged.extend(told.found);
    story.denied.extend(told.denied.into_iter().map(|(set, after)| (set.id(), after)));
    story.groups.extend(groups.iter().map(|group| head.0 + group.0));
    story.doubtful |= told.doubtful;
    Ok(())
}

async fn produce_all(shared: &Arc<Shared>, size: Size, seed: u64, session: usize) {
    let first = shared.next.load(Ordering::Relaxed);
    let end = first + size.keys;
    if first == 1 {
        shared.next.fetch_add(1, Ordering::Relaxed);
        shared.commit(rows::ground(first)).await;
    }
    let mut producers = JoinSet::new();
    for producer in 0..size.producers {
        let shared = Arc::clone(shared);
        let chance = Chance::at(seed, &[session, producer]);
        producers.spawn(async move { shared.produce(end, chance).await });
    }
    producers.join_all().await;
}

impl Shared {
    async fn produce(&self, end: i64, mut chance: Chance) {
        let mut swept = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= end || !self.live(number, &mut chance).await {
                return;
            }
            swept.push(number);
            // The sweep comes later, when the key's pages have been copied and written again.
            if swept.len() > 2 && !self.sweep(swept.remove(0), &mut chance).await {
                return;
            }
        }
    }

    /// One key's life up to its answer; whether the store still works.
    async fn live(&self, number: i64, chance: &mut Chance) -> bool {
        let opened = self.commit(rows::open(number)).await;
        if opened != Ending::Committed {
            return opened != Ending::Stopped;
        }
        if chance.percent(20) && self.commit(rows::open_again(number)).await == Ending::Stopped {
            return false;
        }
        // Who reads makes the database commit; who does not leaves it behind.
        if chance.percent(60) {
            let _ = self.store.tally(self.store.now()).await;
        }
        // Some answers need pages of their own.
        let length = if chance.percent(30) { 9_000 } else { 300 };
        let body = chance.bytes(chance.clone().below(length));
        if self.commit(rows::settle(number, &body)).await == Ending::Stopped {
            return false;
        }
        let from = 1 + i64::try_from(chance.below(6)).unwrap_or(0);
        let to = 1 + (from + number.rem_euclid(ACCOUNTS - 1)) % ACCOUNTS;
        let (from, to) = if chance.percent(20) { (to, from) } else { (from, to) };
        let amount = 1 + number.rem_euclid(7);
        if self.commit(rows::pay(number, from, to, amount)).await == Ending::Stopped {
            return false;
        }
        !chance.percent(15) || self.commit(rows::pay_many(number, 1, 2)).await != Ending::Stopped
    }

    async fn sweep(&self, number: i64, chance: &mut Chance) -> bool {
        let expired = self.commit(rows::expire(number)).await;
        if expired == Ending::Committed && self.commit(rows::free(number)).await == Ending::Stopped {
            return false;
        }
        if chance.percent(30) && self.commit(rows::note(number)).await == Ending::Committed {
            return self.commit(rows::unnote(number)).await != Ending::Stopped;
        }
        expired != Ending::Stopped
    }

    async fn commit(&self, set: ChangeSet) -> Ending {
        lock(&self.told).sets.push(set.clone());
        for attempt in 0..ATTEMPTS {
            match self.store.commit(set.clone()).await {
                Ok(receipt) => {
                    lock(&self.told).receipts.push((set, receipt));
                    return Ending::Committed;
                }
                Err(CommitError::Refused(_)) => return Ending::Refused,
                Err(CommitError::Unavailable(_) | CommitError::Throttled | CommitError::Conflict) => {}
                Err(CommitError::InDoubt(id)) => {
                    lock(&self.told).doubtful = true;
                    match self.store.committed(id).await {
                        Ok(Some(receipt)) => {
                            let after = self.recorder.len();
                            lock(&self.told).found.push(Acknowledged { set: id, receipt, after });
                            return Ending::Committed;
                        }
                        Ok(None) if attempt % 2 == 0 => {
                            let after = self.recorder.len();
                            lock(&self.told).denied.push((set, after));
                            return Ending::GivenUp;
                        }
                        Ok(None) => {}
                        Err(_) => return Ending::Stopped,
                    }
                }
            }
        }
        Ending::Stopped
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
