//! One attempt at one group: read, judge, write, seal. An attempt takes two round trips if it must
//! read rows or needs several statements, else one.

use super::Job;
use super::ids::Standing;
use super::lookups::{Lookups, ReadMode};
use super::memory::Memory;
use super::writes::{Present, Writes};
use crate::clock::monotonic;
use crate::error::{Blame, blame, reason};
use crate::session::{Session, Step, all};
use crate::shared::Shared;
use crate::tables::{self, Batch, TableId, statements};
use counterfoil_core::types::time::Time;
use counterfoil_store::judge::Image;
use counterfoil_store::{
    Change, ChangeSet, CommitReceipt, CommitRefusal, KeySet, Position, RefusalReason, Row, RowKey,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Error;
use tokio_postgres::Row as PgRow;

/// The limit for one round trip. The server's own timeouts are shorter.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

const BEGIN: &str = "BEGIN";
/// Begins a transaction that gives up on locks quickly.
const BEGIN_SHORT_LOCK_WAIT: &str = "BEGIN; SET LOCAL lock_timeout = '250ms'";
const SILENT: &str = "the server does not answer";

/// How long an attempt waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockWait {
    /// For the lock timeout of the session.
    Normal,
    /// Briefly, because many attempts may follow.
    Short,
}

/// The outcome of an attempt.
pub(super) enum NextStep {
    /// Every admitted set is durable, or none was admitted.
    Durable(Vec<Verdict>),
    /// Nothing was written.
    Untouched(String),
    /// Nothing was written because the connection broke first.
    Broken(String),
    /// Nothing was written because another writer came first.
    Race(String),
    /// Nothing was written because a lock was not available in time.
    Held(String),
    /// The commit may or may not have happened.
    Doubtful(String),
    /// Nothing was written because of one of the sets. `committed` tells whether a set of the same
    /// id is committed.
    AtFault { why: String, committed: bool },
}

/// The outcome of a set of a durable group.
pub(super) enum Verdict {
    Committed(CommitReceipt),
    Refused(Box<CommitRefusal>),
}

/// Tries the group, and returns whether the connection can be used again.
pub(super) async fn attempt(
    session: &Session,
    shared: &Shared,
    group: &[Job],
    mode: ReadMode,
    wait: LockWait,
) -> (NextStep, bool) {
    let begun = monotonic();
    let (lookups, remembered) = Lookups::of(group, mode, &shared.memory);
    let begin = match wait {
        LockWait::Normal => BEGIN,
        LockWait::Short => BEGIN_SHORT_LOCK_WAIT,
    };
    let mut image = Image::with_room(group.iter().map(|job| job.set.changes().len()).sum());
    let mut present = Present::default();
    for (key, known) in remembered {
        image.bring(key.clone(), Some(known.row));
        present.insert(key, Some(known.by));
    }
    let mut is_begun = false;
    if !lookups.is_empty() {
        is_begun = true;
        if let Err(failed) = read(session, Some(begin), &lookups, |key, row| {
            if row.is_some() {
                present.insert(key.clone(), None);
            }
            image.bring(key, row);
        })
        .await
        {
            return give_up(session, failed).await;
        }
    }

    let mut judged: Vec<Result<(), Box<CommitRefusal>>> = Vec::with_capacity(group.len());
    let mut unsure_refusals: Vec<(usize, Vec<(usize, RowKey)>)> = Vec::new();
    for (index, job) in group.iter().enumerate() {
        let verdict = image.admit(&job.set);
        if let Err(refusal) = &verdict
            && refusal.reason != RefusalReason::Malformed
        {
            if depends_on_memory(&job.set, &present) {
                let why = "the refusal depends on cached rows".to_owned();
                return give_up(session, Failed { blame: Blame::Race, why, committed: false }).await;
            }
            let earlier = job.set.changes().iter().take(refusal.change).enumerate();
            let unknown = earlier.filter(|(_, change)| mode.assumes_new(change));
            let unknown: Vec<(usize, RowKey)> =
                unknown.map(|(at, change)| (at, change.key())).filter(|(_, key)| !image.knows(key)).collect();
            if !unknown.is_empty() {
                unsure_refusals.push((index, unknown));
            }
        }
        judged.push(verdict);
    }
    if !unsure_refusals.is_empty()
        && let Err(failed) = name_first_refusals(session, &unsure_refusals, &mut judged).await
    {
        return give_up(session, failed).await;
    }

    let admitted: Vec<&Job> =
        group.iter().zip(&judged).filter(|(_, verdict)| verdict.is_ok()).map(|(job, _)| job).collect();
    if admitted.is_empty() {
        if is_begun && let Err(failed) = finish(session, "ROLLBACK").await {
            return give_up(session, failed).await;
        }
        return (NextStep::Durable(verdicts(judged, &Sealed::default())), true);
    }
    if admitted.iter().any(|job| matches!(shared.ids.standing(job.set.id()), Some(Standing::Committed(_)))) {
        let why = "a set of its id is committed".to_owned();
        return give_up(session, Failed { blame: Blame::Set, why, committed: true }).await;
    }
    let writes = Writes::of(&admitted, &image, &present, shared);
    if writes.are_unfit() {
        let why = "a number does not fit the database".to_owned();
        return give_up(session, Failed { blame: Blame::Set, why, committed: false }).await;
    }
    let first = (!is_begun).then_some(begin);
    match seal(session, first, &writes).await {
        Ok(sealed) => {
            let changed = admitted.iter().flat_map(|job| job.set.changes());
            shared.memory.wrote(changed.filter_map(cacheable), &sealed.by);
            shared.clock.observe_server(sealed.server_us, monotonic().saturating_sub(begun));
            if let Some(observe) = &shared.options.observe {
                observe(admitted.len(), monotonic().saturating_sub(begun));
            }
            (NextStep::Durable(verdicts(judged, &sealed)), true)
        }
        Err(Unsealed::Failed(failed)) => give_up(session, failed).await,
        Err(Unsealed::Doubtful(why)) => (NextStep::Doubtful(why), false),
    }
}

/// Whether one of the set's rows was taken from memory.
fn depends_on_memory(set: &ChangeSet, present: &Present) -> bool {
    set.changes().iter().any(|change| matches!(present.get(&change.key()), Some(Some(_))))
}

/// The key of a change and the resulting row, for tables in the cache.
fn cacheable(change: &Change) -> Option<(RowKey, Option<Arc<Row>>)> {
    let row = match change {
        Change::Insert(row) | Change::Replace { row, .. } => Some(Arc::clone(row)),
        Change::Remove { .. } | Change::Move(_) => None,
    };
    Memory::caches(TableId::of_change(change)).then(|| (change.key(), row))
}

/// Why an attempt ended without a commit.
struct Failed {
    blame: Blame,
    why: String,
    /// A set of the same id is committed.
    committed: bool,
}

impl Failed {
    fn silent() -> Failed {
        Failed { blame: Blame::Connection, why: SILENT.to_owned(), committed: false }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { blame: blame(&error), why: reason(&error), committed: false }
    }
}

/// Runs steps in one round trip and returns the first error.
async fn round_trip(steps: Vec<Step<'_>>) -> Result<Vec<Vec<PgRow>>, Failed> {
    let answers = tokio::time::timeout(ANSWER_WITHIN, all(steps)).await.map_err(|_| Failed::silent())?;
    answers.into_iter().collect::<Result<_, _>>().map_err(Failed::from)
}

async fn prepare(session: &Session, wanted: &[&'static str]) -> Result<(), Failed> {
    let prepared = tokio::time::timeout(ANSWER_WITHIN, session.prepare(wanted)).await;
    prepared.map_err(|_| Failed::silent())?.map_err(Failed::from)
}

async fn finish(session: &Session, command: &str) -> Result<(), Failed> {
    round_trip(vec![session.command(command)]).await.map(|_| ())
}

/// Reads the keys and passes keys and rows to `bring`.
async fn read(
    session: &Session,
    begin: Option<&str>,
    lookups: &Lookups,
    mut bring: impl FnMut(RowKey, Option<Row>),
) -> Result<(), Failed> {
    let mut batches = Vec::new();
    for ((locked, table_id), keys) in &lookups.0 {
        let mut batch = Batch::keys(&table_id.table());
        for key in keys {
            tables::put_key(key, &mut batch);
        }
        if batch.is_unfit() {
            let why = "a number does not fit the database".to_owned();
            return Err(Failed { blame: Blame::Set, why, committed: false });
        }
        let made = statements(*table_id);
        let sql = if *locked { made.lock.as_str() } else { made.find.as_str() };
        batches.push((*table_id, sql, batch));
    }
    let wanted: Vec<&'static str> = batches.iter().map(|(_, sql, _)| *sql).collect();
    prepare(session, &wanted).await?;
    let mut steps: Vec<Step<'_>> = begin.map(|begin| session.command(begin)).into_iter().collect();
    steps.extend(batches.iter().map(|(_, sql, batch)| session.query(sql, batch.parameters())));
    let answers = round_trip(steps).await?;
    let found = answers.iter().skip(usize::from(begin.is_some()));
    let mut seen = KeySet::default();
    for ((table_id, _, _), rows) in batches.iter().zip(found) {
        for row in rows {
            let row = table_id.take(row).map_err(|damage| Failed {
                blame: Blame::World,
                why: damage.0,
                committed: false,
            })?;
            let key = row.key();
            seen.insert(key.clone());
            bring(key, Some(row));
        }
    }
    for key in lookups.0.values().flatten().filter(|key| !seen.contains(*key)) {
        bring(key.clone(), None);
    }
    Ok(())
}

/// Makes refusals name the first failed precondition of their set. Rows of earlier changes that
/// were assumed to be new are read now, without locks, because a refused set writes nothing.
async fn name_first_refusals(
    session: &Session,
    unsure: &[(usize, Vec<(usize, RowKey)>)],
    judged: &mut [Result<(), Box<CommitRefusal>>],
) -> Result<(), Failed> {
    let mut lookups = Lookups::default();
    let unknown: BTreeSet<&RowKey> =
        unsure.iter().flat_map(|(_, unknown)| unknown).map(|(_, key)| key).collect();
    for key in unknown {
        lookups.add(false, key.clone());
    }
    let mut found = BTreeMap::new();
    read(session, None, &lookups, |key, row| {
        if let Some(row) = row {
            found.insert(key, row);
        }
    })
    .await?;
    for (index, unknown) in unsure {
        let first = unknown.iter().find_map(|(at, key)| Some((*at, found.get(key)?)));
        if let (Some((change, row)), Some(verdict)) = (first, judged.get_mut(*index)) {
            *verdict = Err(Box::new(CommitRefusal {
                change,
                reason: RefusalReason::Present,
                found: Some(row.clone()),
            }));
        }
    }
    Ok(())
}

/// The server's answer to the sealing statement.
#[derive(Default)]
struct Sealed {
    base: u64,
    at: i64,
    server_us: i64,
    /// The transaction's number, as in `xmin`.
    by: Arc<str>,
}

enum Unsealed {
    Failed(Failed),
    /// The group may be committed. The connection is not used again.
    Doubtful(String),
}

impl From<Failed> for Unsealed {
    fn from(failed: Failed) -> Unsealed {
        Unsealed::Failed(failed)
    }
}

/// Writes everything and commits.
///
/// A single statement without a transaction commits by itself, so its answer is the answer of the
/// commit. Several statements are pipelined, but only after `BEGIN` has succeeded. If a statement
/// fails, the final COMMIT rolls back. After a failed `BEGIN`, however, every statement would
/// commit separately.
async fn seal(session: &Session, begin: Option<&str>, writes: &Writes<'_>) -> Result<Sealed, Unsealed> {
    prepare(session, &writes.statements()).await?;
    let mut steps = writes.steps(session);
    let alone = begin == Some(BEGIN) && steps.len() == 1;
    if !alone {
        if let Some(begin) = begin {
            finish(session, begin).await?;
        }
        steps.push(session.command("COMMIT"));
    }
    session.take_warning();
    let silent = || Unsealed::Doubtful(SILENT.to_owned());
    let mut answers = tokio::time::timeout(ANSWER_WITHIN, all(steps)).await.map_err(|_| silent())?;
    let commit = if alone { Some(Ok(Vec::new())) } else { answers.pop() };
    let mut lost = None;
    let mut last = Vec::new();
    for answer in answers {
        match answer {
            Ok(answered) => last = answered,
            // The server reported that this statement failed, so nothing was committed.
            Err(error) if blame(&error) != Blame::Connection => return Err(Failed::from(error).into()),
            Err(error) => lost = lost.or(Some(reason(&error))),
        }
    }
    if let Some(why) = lost {
        return Err(Unsealed::Doubtful(why));
    }
    match commit {
        Some(Ok(_)) => {}
        // A deferred constraint failed or another writer came first: the server rolled back.
        Some(Err(error)) if matches!(blame(&error), Blame::Set | Blame::Race | Blame::Holder) => {
            return Err(Failed::from(error).into());
        }
        // No other error at COMMIT tells reliably what happened.
        Some(Err(error)) => return Err(Unsealed::Doubtful(reason(&error))),
        None => return Err(silent()),
    }
    if session.take_warning() {
        let why = "the server warned while it committed: perhaps it did not wait for its standby".to_owned();
        return Err(Unsealed::Doubtful(why));
    }
    let sealed = last.first().and_then(Sealed::decode);
    let (sealed, safe) =
        sealed.ok_or_else(|| Unsealed::Doubtful("the server did not say under which position".to_owned()))?;
    if !safe {
        let why =
            "the server runs with fsync or full_page_writes = off by now, so it may lose what it confirms";
        return Err(Unsealed::Doubtful(why.to_owned()));
    }
    Ok(sealed)
}

impl Sealed {
    /// The answer, and whether the server's settings make a confirmed commit durable.
    fn decode(row: &PgRow) -> Option<(Sealed, bool)> {
        let sealed = Sealed {
            base: u64::try_from(row.try_get::<_, i64>(0).ok()?).ok()?,
            at: row.try_get(1).ok()?,
            server_us: row.try_get(2).ok()?,
            by: row.try_get::<_, &str>(3).ok()?.into(),
        };
        Some((sealed, row.try_get(4).ok()?))
    }
}

fn verdicts(judged: Vec<Result<(), Box<CommitRefusal>>>, sealed: &Sealed) -> Vec<Verdict> {
    let mut position = sealed.base;
    let verdict = |judged| match judged {
        Ok(()) => {
            position = position.saturating_add(1);
            Verdict::Committed(CommitReceipt { position: Position(position), at: Time::from_ms(sealed.at) })
        }
        Err(refusal) => Verdict::Refused(refusal),
    };
    judged.into_iter().map(verdict).collect()
}

/// Rolls the transaction back, if it is still open, and classifies the failure.
async fn give_up(session: &Session, failed: Failed) -> (NextStep, bool) {
    let Failed { blame, why, committed } = failed;
    // ROLLBACK outside a transaction only warns.
    let clean = blame != Blame::Connection && finish(session, "ROLLBACK").await.is_ok();
    session.take_warning();
    let next_step = match blame {
        Blame::Race => NextStep::Race(why),
        Blame::Holder => NextStep::Held(why),
        Blame::Set => NextStep::AtFault { why, committed },
        Blame::World | Blame::Earlier => NextStep::Untouched(why),
        Blame::Connection => NextStep::Broken(why),
    };
    // A server that could not write may have become a standby: the next group searches for the
    // primary again.
    let keep = clean && blame != Blame::World;
    (next_step, keep)
}
