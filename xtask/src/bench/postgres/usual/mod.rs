//! The usual implementation, to compare with: plain tables, a pool of connections, one of them for each request, the
//! prepared statements of a transaction one after the other, a commit of its own for each step.
//!
//! It is kept as cheap as that shape allows: no triggers, no check of the API key, no balances.

mod rows;
mod serve;

pub(crate) use serve::Usual;

use crate::failure::{Failure, Result};
pub(super) use rows::{Row, Work};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio_postgres::{Client, NoTls, Statement};

/// Connections; more only make the server's processes take turns.
const CONNECTIONS: usize = 32;
const TABLES: &str = include_str!("tables.sql");

struct Connection {
    client: Client,
    statements: BTreeMap<Row, Statement>,
}

/// The pool.
pub(super) struct Pool {
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
}

/// Makes the tables in an empty database.
pub(super) async fn make(url: &str) -> Result<()> {
    let client = connect(url).await?;
    client.batch_execute(TABLES).await.map_err(Failure::while_("making the usual tables"))
}

async fn connect(url: &str) -> Result<Client> {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.map_err(Failure::while_(format!("connecting to {url}")))?;
    tokio::spawn(connection);
    Ok(client)
}

impl Connection {
    async fn open(url: &str) -> Result<Connection> {
        let client = connect(url).await?;
        let mut statements = BTreeMap::new();
        for row in Row::ALL {
            let prepared = client.prepare(row.sql()).await;
            statements.insert(row, prepared.map_err(Failure::while_(format!("preparing {row:?}")))?);
        }
        Ok(Connection { client, statements })
    }

    /// How many rows were written.
    async fn write(&self, row: Row, work: &Work<'_>) -> Result<u64> {
        let statement = &self.statements[&row];
        let written = self.client.execute(statement, &row.parameters(work)).await;
        written.map_err(Failure::while_(format!("writing {row:?}")))
    }

    async fn transaction(&self, rows: &[Row], work: &Work<'_>) -> Result<()> {
        self.command("BEGIN").await?;
        for &row in rows {
            if self.write(row, work).await? == 0 {
                return Err(Failure::new(format!("{row:?} of charge {} was not written", work.number)));
            }
        }
        self.command("COMMIT").await
    }

    async fn command(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.map_err(Failure::while_(sql))
    }
}

impl Pool {
    /// No more connections than there are clients: opening them costs CPU time that is not theirs.
    pub(super) async fn open(url: &str, clients: usize) -> Result<Pool> {
        let connections = CONNECTIONS.min(clients);
        let mut idle = Vec::with_capacity(connections);
        for _ in 0..connections {
            idle.push(Connection::open(url).await?);
        }
        Ok(Pool { idle: Mutex::new(idle), free: Semaphore::new(connections) })
    }

    /// Writes these rows in one transaction.
    pub(super) async fn commit(&self, rows: &[Row], work: &Work<'_>) -> Result<()> {
        self.with(async |connection| connection.transaction(rows, work).await).await
    }

    /// Writes one row in a commit of its own; whether it was written.
    pub(super) async fn write(&self, row: Row, work: &Work<'_>) -> Result<bool> {
        self.with(async |connection| Ok(connection.write(row, work).await? > 0)).await
    }

    /// The stored answer under a key, if there is one.
    async fn answer(&self, key: &str) -> Result<Option<Vec<u8>>> {
        const SQL: &str =
            "SELECT body FROM idempotency_keys WHERE tenant = 1 AND key = $1 AND body IS NOT NULL";
        self.with(async |connection| {
            let found = connection.client.query_opt(SQL, &[&key]).await;
            Ok(found.map_err(Failure::while_("reading an answer"))?.map(|row| row.get(0)))
        })
        .await
    }

    /// A connection whose work failed is not used again: its transaction may still be open.
    async fn with<T>(&self, work: impl AsyncFnOnce(&Connection) -> Result<T>) -> Result<T> {
        let permit = self.free.acquire().await.map_err(Failure::while_("waiting for a connection"))?;
        let taken = self.idle().pop();
        let connection = taken.ok_or_else(|| Failure::new("no connection is left"))?;
        let done = work(&connection).await?;
        self.idle().push(connection);
        drop(permit);
        Ok(done)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
