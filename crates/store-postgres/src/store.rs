//! The store: implements the port with the committers, the readers and the clock.

use crate::committer::{Queue, Standing};
use crate::readers::{Enclosing, Question, Readers};
use crate::session::Purpose;
use crate::shared::Shared;
use crate::tables::seal::Sealing;
use crate::tables::{self, Batch, Damage, TableId, commits, journal, outbox, ranges};
use crate::wake::Wake;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, KeyMap, Position, ReadError,
    Row, RowKey, Scan, Store, Tally, Upto,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;

/// The time limit for resolving a commit in doubt.
const DECIDED_WITHIN: Duration = Duration::from_secs(5);

/// A store on a PostgreSQL server that other processes may share.
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
        let mut batches: Vec<(TableId, Batch<'_>)> = Vec::new();
        for key in wanted {
            let table_id = TableId::of(key);
            if batches.last().is_none_or(|(last, _)| *last != table_id) {
                batches.push((table_id, Batch::keys(&table_id.table())));
            }
            if let Some((_, batch)) = batches.last_mut() {
                tables::put_key(key, batch);
            }
        }
        // A key that the database cannot hold has no row.
        batches.retain(|(_, batch)| !batch.is_unfit());
        let questions = batches.iter().map(|(table_id, batch)| Question {
            sql: &tables::statements(*table_id).find,
            parameters: batch.parameters(),
        });
        let answers = self.readers.ask(questions.collect()).await?;
        let mut found: KeyMap<Row> = KeyMap::default();
        for ((table_id, _), rows) in batches.iter().zip(&answers) {
            for row in rows {
                let row = table_id.take(row).map_err(damaged)?;
                found.insert(row.key(), row);
            }
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        match ranges::scan(&scan) {
            Some(range) => self.range(Enclosing::None, range).await,
            None => Ok(Vec::new()),
        }
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        let enclosing = match due {
            Due::Outbox => Enclosing::RolledBack,
            Due::Claims | Due::Holds => Enclosing::None,
        };
        self.range(enclosing, ranges::due(due, now, limit)).await
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let id = set.id();
        // A set in doubt is not committed again before the doubt is resolved. The rare branch is
        // boxed to keep the future small.
        if self.shared.doubted(id).is_some() && Box::pin(self.committed(id)).await.is_err() {
            return Err(CommitError::InDoubt(id));
        }
        self.queue.commit(set).await
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        match self.shared.ids.standing(id) {
            Some(Standing::Committed(receipt)) => return Ok(Some(receipt)),
            Some(Standing::InProgress) => return Err(undecided()),
            None => {}
        }
        let doubt = self.shared.doubted(id);
        if let Some(doubt) = doubt {
            let decided = async {
                self.shared.until_decided(doubt.connection).await;
                self.shared.barrier.pass(async || self.confirm().await).await
            };
            tokio::time::timeout(DECIDED_WITHIN, decided).await.map_err(|_| undecided())??;
        }
        let receipt = self.find_set(id, doubt.map_or(0, |doubt| doubt.after)).await?;
        if let Some(receipt) = receipt {
            self.shared.observe_commit(id, receipt);
            self.shared.ids.committed(id, receipt);
        }
        if doubt.is_some() {
            self.shared.resolved(id);
        }
        Ok(receipt)
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        let Some(page) = commits::Page::after(after, ranges::bound(limit)) else { return Ok(Vec::new()) };
        let parameters: Vec<&(dyn ToSql + Sync)> = vec![&page.after, &page.groups_before];
        let rows = self.readers.ask_one(commits::GROUPS_AFTER, parameters).await?;
        page.take(&rows).map_err(damaged)
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
    /// Commits all queued sets and closes the connections. Dropping the store does the same in the
    /// background.
    pub async fn close(self) {
        let PostgresStore { queue, tasks, .. } = self;
        drop(queue);
        for task in tasks {
            // The sets of a committer that panicked were answered as in doubt.
            let _ = task.await;
        }
    }

    /// The receipt of a set that was committed after a position, if it was.
    async fn find_set(&self, id: SetId, after: u64) -> Result<Option<CommitReceipt>, ReadError> {
        let (id, after) = (id.to_i64(), i64::try_from(after).unwrap_or(i64::MAX));
        let rows = self.readers.ask_one(commits::FIND_SET_AFTER, vec![&id, &after]).await?;
        rows.first().map(commits::receipt).transpose().map_err(damaged)
    }

    async fn range(&self, enclosing: Enclosing, range: ranges::Range) -> Result<Vec<Row>, ReadError> {
        let parameters = range.parameters.iter().map(|parameter| &**parameter as _).collect();
        let rows = self.readers.ask_one_within(enclosing, range.sql, parameters).await?;
        rows.iter().map(|row| range.table.take(row)).collect::<Result<_, _>>().map_err(damaged)
    }

    /// Makes sure that all visible commits are confirmed by every required standby.
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

/// Every statement, by name.
pub(crate) fn statements() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for table_id in TableId::ALL {
        let (table, made) = (table_id.table(), tables::statements(table_id));
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
        ("committed", commits::FIND_SET_AFTER),
        ("history", commits::SET_IS_AT),
        ("feed", commits::GROUPS_AFTER),
        ("entries after", journal::ENTRIES_AFTER),
        ("entries newest", journal::ENTRIES_NEWEST),
        ("entries before", journal::ENTRIES_BEFORE),
        ("fold", journal::FOLD),
        ("tally", outbox::TALLY),
    ];
    all.extend(others.map(|(name, sql)| (name.to_owned(), sql.to_owned())));
    all.extend(Sealing::all().map(|sealing| ("seal".to_owned(), sealing.sql().to_owned())));
    all.extend(ranges::all().into_iter().map(|sql| ("range".to_owned(), sql.to_owned())));
    all
}
