//! Runs the real store on a recorded directory: several producers, so that groups form; a SQLite
//! WAL so short that it is copied and restarts all the time; clean ends and openings in between.

use crate::chance::{Chance, chance_at};
use crate::media::Recorded;
use crate::record::Recorder;
use crate::rows::{self, ACCOUNTS};
use crate::story::{Acknowledged, Story};
use counterfoil_store::{ChangeSet, CommitError, CommitReceipt, Position, Store};
use counterfoil_store_embedded::{
    EmbeddedStore, Fault, FaultPoint, LogBounds, Options, SqliteWalBounds, SystemTime, TimeSource,
};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// Attempts to commit a set while the store is unavailable.
const ATTEMPTS: usize = 40;
/// Commits per page of the feed.
const PAGE: usize = 500;

/// The size of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Openings of the store.
    pub sessions: usize,
    /// Keys per session.
    pub keys: i64,
    /// Concurrent producers.
    pub producers: usize,
    pub sqlite_wal: SqliteWalBounds,
    pub log: LogBounds,
}

impl Size {
    /// A WAL of some dozens of frames.
    pub const SHORT_SQLITE_WAL: SqliteWalBounds =
        SqliteWalBounds { step: 12, long: 60, too_long: 90, kept: 90, rest: 30 };
    /// Log segments of a few groups.
    pub const SHORT_LOG: LogBounds = LogBounds { segment: 6 << 10, extent: 4 << 10 };
}

/// A machine with a boot id of the test.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    pub name: &'static str,
    /// The wall clock; the real one if none.
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

/// Shared by the producers of a session.
struct Shared {
    store: EmbeddedStore,
    recorder: Arc<Recorder>,
    next: AtomicI64,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    sets: Vec<ChangeSet>,
    receipts: Vec<(ChangeSet, CommitReceipt)>,
    found: Vec<Acknowledged>,
    denied: Vec<(ChangeSet, usize)>,
    doubtful: bool,
}

/// The last position of each group, and the recorded operations when it was durable.
type Groups = Arc<Mutex<Vec<(u64, usize)>>>;

/// The outcome of a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Committed,
    Refused,
    /// The set was not committed and is given up.
    GivenUp,
    /// The store has stopped writing.
    Stopped,
}

/// Continues `story` in the directory that the recorder has prepared.
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
            answers: Mutex::default(),
        });
        runtime.block_on(produce_all(&shared, size, seed, session));
        let shared = Arc::into_inner(shared).ok_or("a producer still runs")?;
        story.next = shared.next.load(Ordering::Relaxed);
        shared.store.close();
        let answers = shared.answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        let groups = lock(&groups).clone();
        add_answers(story, answers, head, &groups)?;
    }
    Ok(())
}

fn open(recorder: &Arc<Recorder>, dir: &Path, size: Size, groups: &Groups) -> Result<EmbeddedStore, String> {
    let mut opened = Err(String::new());
    // A fault of the plan may fail an opening; a later attempt succeeds.
    for _ in 0..ATTEMPTS {
        let (asked, watched, groups) = (Arc::clone(recorder), Arc::clone(recorder), Arc::clone(groups));
        let options = Options {
            readers: 1,
            sqlite_wal: size.sqlite_wal,
            log: size.log,
            log_storage: Arc::new(Recorded(Arc::clone(recorder))),
            time: Arc::new(Boot { name: "before", wall_ms: None }),
            observe: Some(Arc::new(move |admitted, _| {
                let mut groups = lock(&groups);
                let last = groups.last().map_or(0, |group| group.0);
                groups.push((last + u64::try_from(admitted).unwrap_or(0), watched.len()));
            })),
            fault: Some(Arc::new(move |point| match point {
                FaultPoint::Checkpoint => asked.own_sync_fails().then_some(Fault::Sync),
                FaultPoint::RewriteWal => {
                    asked.rewritten("counterfoil.db-wal");
                    None
                }
                FaultPoint::CheckpointWal => asked.wal_sync_fails().then_some(Fault::Sync),
                FaultPoint::Judge | FaultPoint::Append | FaultPoint::Flush | FaultPoint::BetweenFlushes => {
                    None
                }
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

/// The last position of the feed.
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

/// Adds the answers of a session to the story.
fn add_answers(
    story: &mut Story,
    answers: Answers,
    head: Position,
    groups: &[(u64, usize)],
) -> Result<(), String> {
    story.sets.extend(answers.sets.into_iter().map(|set| (set.id().to_i64(), set)));
    for (set, receipt) in answers.receipts {
        let group = groups.iter().find(|group| head.0 + group.0 >= receipt.position.0);
        let (_, after) = group.ok_or("a set was acknowledged that no group holds")?;
        story.acknowledged.push(Acknowledged { set: set.id(), receipt, after: *after });
    }
    story.acknowledged.extend(answers.found);
    story.denied.extend(answers.denied.into_iter().map(|(set, after)| (set.id(), after)));
    story.groups.extend(groups.iter().map(|group| head.0 + group.0));
    story.doubtful |= answers.doubtful;
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
        let chance = chance_at(seed, &[session, producer]);
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
            // Sweep later, when the pages of the key have been copied and rewritten.
            if swept.len() > 2 && !self.sweep(swept.remove(0), &mut chance).await {
                return;
            }
        }
    }

    /// Commits the sets of one key up to its answer. Returns whether the store still works.
    async fn live(&self, number: i64, chance: &mut Chance) -> bool {
        let opened = self.commit(rows::open(number)).await;
        if opened != Ending::Committed {
            return opened != Ending::Stopped;
        }
        if chance.percent(20) && self.commit(rows::open_again(number)).await == Ending::Stopped {
            return false;
        }
        // A read of a sum forces a flush; without it the database stays behind.
        if chance.percent(60) {
            let _ = self.store.tally(self.store.now()).await;
        }
        // Some answers need pages of their own.
        let length = if chance.percent(30) { 9_000 } else { 300 };
        let body = chance.bytes(chance.clone().index(length));
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
        lock(&self.answers).sets.push(set.clone());
        for attempt in 0..ATTEMPTS {
            match self.store.commit(set.clone()).await {
                Ok(receipt) => {
                    lock(&self.answers).receipts.push((set, receipt));
                    return Ending::Committed;
                }
                Err(CommitError::Refused(_)) => return Ending::Refused,
                Err(CommitError::Unavailable(_) | CommitError::Throttled | CommitError::Conflict) => {}
                Err(CommitError::InDoubt(id)) => {
                    lock(&self.answers).doubtful = true;
                    match self.store.committed(id).await {
                        Ok(Some(receipt)) => {
                            let after = self.recorder.len();
                            lock(&self.answers).found.push(Acknowledged { set: id, receipt, after });
                            return Ending::Committed;
                        }
                        Ok(None) if attempt % 2 == 0 => {
                            let after = self.recorder.len();
                            lock(&self.answers).denied.push((set, after));
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
