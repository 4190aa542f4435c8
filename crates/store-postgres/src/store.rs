//! The store itself: the port's questions, answered by the committers, the readers and the clock.

use crate::committer::{Queue, Standing};
use crate::readers::{Around, Question, Readers};
use crate::session::Purpose;
use crate::shared::Shared;
use crate::tables::commits::{self, Log};
use crate::tables::{self, Batch, Damage, Place, journal, outbox, ranges};
use crate::wake::Wake;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, KeyMap, Position, ReadError,
    Row, RowKey, Scan, Store, Tally, UNTOLD, Upto, adopted,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;

/// How long a commit in doubt may take to be decided before the question is answered with an error.
const DECIDED_WITHIN: Duration = Duration::from_secs(5);

/// A store on a PostgreSQL server, shared with other processes.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) queue: Queue,
    pub(crate) wake: Wake,
    pub(crate) tasks: Vec<JoinHandle<()>>,
}

impl Store for PostgresStore {
    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new(self.shared.secret)
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let mut wanted: Vec<&RowKey> = keys.iter().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut batches: Vec<(Place, Batch<'_>)> = Vec::new();
        for key in wanted {
            let place = Place::of(key);
            if batches.last().is_none_or(|(last, _)| *last != place) {
                batches.push((place, Batch::keys(&place.table())));
            }
            if let Some((_, batch)) = batches.last_mut() {
                tables::put_key(key, batch);
            }
        }
        // A key the database cannot hold is the key of no row.
        batches.retain(|(_, batch)| !batch.is_unfit());
        let questions = batches.iter().map(|(place, batch)| Question {
            sql: &tables::statements(*place).find,
            parameters: batch.parameters(),
        });
        let answers = self.readers.ask(questions.collect()).await?;
        let mut found: KeyMap<Row> = KeyMap::default();
        for ((place, _), rows) in batches.iter().zip(&answers) {
            for row in rows {
                let row = place.take(row).map_err(damaged)?;
                found.insert(row.key(), row);
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        match ranges::scan(&scan) {
            Some(range) => self.range(Around::Nothing, range).await,
            None => Ok(Vec::new()),
        }
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        let around = match due {
            Due::Outbox => Around::Passing,
            Due::Claims | Due::Holds => Around::Nothing,
        };
        self.range(around, ranges::due(due, now, limit)).await
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let id = set.id();
        // What is in doubt is not tried again before it is known what became of it. Boxed: it is rare.
        if self.shared.doubted(id).is_some() && Box::pin(self.committed(id)).await.is_err() {
            return Err(CommitError::InDoubt(id));
        }
        self.queue.commit(set).await
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        match self.shared.ids.standing(id) {
            Some(Standing::Committed(receipt)) => return Ok(Some(receipt)),
            Some(Standing::InHand) => return Err(undecided()),
            None => {}
        }
        let doubt = self.shared.doubted(id);
        if let Some(doubt) = doubt {
            let decided = async {
                self.shared.after(doubt.life).await;
                self.shared.barrier.pass(async || self.confirm().await).await
            };
            tokio::time::timeout(DECIDED_WITHIN, decided).await.map_err(|_| undecided())??;
        }
        let receipt = self.sought(id, doubt.map_or(0, |doubt| doubt.after)).await?;
        if let Some(receipt) = receipt {
            self.shared.saw(id, receipt);
            self.shared.ids.committed(id, receipt);
        }
        if doubt.is_some() {
            self.shared.resolved(id);
        }
        Ok(receipt)
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        let Some(page) = commits::Page::after(after, ranges::bound(limit)) else { return Ok(Vec::new()) };
        let sets = Question { sql: commits::SETS_AFTER, parameters: vec![&page.after, &page.upto] };
        let groups =
            Question { sql: commits::GROUPS_AFTER, parameters: vec![&page.after, &page.groups_before] };
        let questions = match self.log().await? {
            Log::BySet => vec![sets],
            Log::ByGroup => vec![sets, groups],
        };
        let answers = self.readers.ask(questions).await?;
        let rows = |kind: usize| answers.get(kind).map_or(&[] as &[_], Vec::as_slice);
        self.owned(page.take(rows(0), rows(1)).map_err(damaged)?).await
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        let (tenant, account, limit) = (tenant.to_i64(), account.to_i64(), ranges::bound(limit));
        let rows = match page {
            EntryPage::After(position) => {
                let Ok(position) = i64::try_from(position.0) else { return Ok(Vec::new()) };
                let parameters: Vec<&(dyn ToSql + Sync)> = vec![&tenant, &account, &position, &limit];
                self.readers.ask_one(journal::ENTRIES_AFTER, parameters).await?
            }
            EntryPage::Before(None) => {
                self.readers.ask_one(journal::ENTRIES_NEWEST, vec![&tenant, &account, &limit]).await?
            }
            EntryPage::Before(Some((transaction, leg))) => {
                let (transaction, leg) = (transaction.to_i64(), i64::from(leg));
                let parameters: Vec<&(dyn ToSql + Sync)> =
                    vec![&tenant, &account, &transaction, &leg, &limit];
                self.readers.ask_one(journal::ENTRIES_BEFORE, parameters).await?
            }
        };
        rows.iter().map(journal::entry).collect::<Result<_, _>>().map_err(damaged)
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        let Ok(after) = i64::try_from(after.0) else { return Ok(Folded::default()) };
        let (tenant, account, (position, at)) = (tenant.to_i64(), account.to_i64(), journal::limits(upto));
        let parameters: Vec<&(dyn ToSql + Sync)> = vec![&tenant, &account, &after, &position, &at];
        let rows = self.readers.ask_one(journal::FOLD, parameters).await?;
        rows.first().map_or(Ok(Folded::default()), journal::folded).map_err(damaged)
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        let rows = self.readers.ask_one(outbox::TALLY, vec![&outbox::stuck_before(now)]).await?;
        rows.first().map_or(Ok(Tally::default()), |row| outbox::tally(row, now)).map_err(damaged)
    }

    fn settled_elsewhere(&self, claim: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        self.wake.wait(&claim)
    }
}

impl PostgresStore {
    /// Commits what waits and closes the connections. Dropping the store does the same, but nobody waits for it.
    pub async fn close(self) {
        let PostgresStore { queue, tasks, .. } = self;
        drop(queue);
        for task in tasks {
            // A committer that panicked has answered its sets as doubtful.
            let _ = task.await;
        }
    }

    /// How commits are kept, asked again as long as it may change: the tables may go forward while this process runs, and others then
    /// keep theirs group by group.
    async fn log(&self) -> Result<Log, ReadError> {
        if self.shared.log() == Log::BySet {
            let there = self.readers.ask_one(commits::ARE_GROUPS, Vec::new()).await?;
            if there.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
                self.shared.has_groups();
            }
        }
        Ok(self.shared.log())
    }

    /// Where the set was committed: at any time if it has a row of its own, after that position if it is in a group.
    async fn sought(&self, id: SetId, after: u64) -> Result<Option<CommitReceipt>, ReadError> {
        let (id, after) = (id.to_i64(), i64::try_from(after).unwrap_or(i64::MAX));
        let mut questions = vec![Question { sql: commits::OF_SET, parameters: vec![&id] }];
        if self.log().await? == Log::ByGroup {
            questions.push(Question { sql: commits::OF_SET_AFTER, parameters: vec![&id, &after] });
        }
        let answers = self.readers.ask(questions).await?;
        answers.iter().flatten().next().map(commits::receipt).transpose().map_err(damaged)
    }

    /// The page with every row under its tenant, also where its commit is from before that was told.
    async fn owned(&self, mut page: Vec<Committed>) -> Result<Vec<Committed>, ReadError> {
        let untold =
            page.iter().flat_map(|commit| &commit.touched).filter(|key| key.tenant() == Some(UNTOLD));
        let mut numbers: Vec<i64> = untold.filter_map(commits::sought).collect();
        if numbers.is_empty() {
            return Ok(page);
        }
        numbers.sort_unstable();
        numbers.dedup();
        let rows = self.readers.ask_one(commits::OWNERS, vec![&numbers]).await?;
        let owners: HashMap<i64, i64> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, tokio_postgres::Error>>()
            .map_err(|error| ReadError(crate::error::reason(&error)))?;
        let owner = |key: &RowKey| commits::sought(key).and_then(|number| owners.get(&number));
        for commit in &mut page {
            let keys = std::mem::take(&mut commit.touched);
            commit.touched = adopted(keys, |key| Ok(owner(key).map(|tenant| TenantId::from_i64(*tenant))))?;
        }
        Ok(page)
    }

    async fn range(&self, around: Around, range: ranges::Range) -> Result<Vec<Row>, ReadError> {
        let parameters = range.parameters.iter().map(|parameter| &**parameter as _).collect();
        let rows = self.readers.ask_one_within(around, range.sql, parameters).await?;
        rows.iter().map(|row| range.place.take(row)).collect::<Result<_, _>>().map_err(damaged)
    }

    /// Makes sure that what is visible now has been confirmed by every server that must.
    async fn confirm(&self) -> Result<(), ReadError> {
        let failed = |why: String| ReadError(why);
        let session =
            self.shared.connect(Purpose::Commit).await.map_err(|error| failed(error.to_string()))?;
        session
            .command("UPDATE meta SET value = value WHERE name = 'barrier'")
            .await
            .map_err(|error| failed(crate::error::reason(&error)))?;
        if session.take_warning() {
            return Err(failed("the server's standby has not confirmed; ask again".to_owned()));
        }
        Ok(())
    }
}

fn undecided() -> ReadError {
    ReadError("the server may still be committing that set; ask again".to_owned())
}

fn damaged(damage: Damage) -> ReadError {
    ReadError(damage.0)
}

/// Every statement over a table that grows, by name.
pub(crate) fn statements() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for place in Place::ALL {
        let (table, made) = (place.table(), tables::statements(place));
        let mut add = |kind: &str, sql: &str| all.push((format!("{kind} {}", table.name), sql.to_owned()));
        add("find", &made.find);
        add("lock", &made.lock);
        add("insert", &made.insert);
        if table.columns.iter().any(|column| column.moves) {
            add("update", &made.update);
            add("delete", &made.delete);
        }
    }
    let others = [
        ("committed", commits::OF_SET),
        ("committed", commits::OF_SET_AFTER),
        ("history", commits::IS_SET),
        ("history", commits::IS_IN_GROUP),
        ("feed", commits::SETS_AFTER),
        ("feed", commits::GROUPS_AFTER),
        ("owners", commits::OWNERS),
        ("entries after", journal::ENTRIES_AFTER),
        ("entries newest", journal::ENTRIES_NEWEST),
        ("entries before", journal::ENTRIES_BEFORE),
        ("fold", journal::FOLD),
        ("tally", outbox::TALLY),
    ];
    all.extend(others.map(|(name, sql)| (name.to_owned(), sql.to_owned())));
    all.extend(commits::Sealing::all().map(|sealing| ("seal".to_owned(), sealing.sql().to_owned())));
    all.extend(ranges::all().into_iter().map(|sql| ("range".to_owned(), sql.to_owned())));
    all
}
