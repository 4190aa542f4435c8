//! The usual implementation, under the same promise: a connection pool, one connection per
//! transaction, `BEGIN`, prepared statements one after the other, `COMMIT`. Web services are
//! usually written this way.
//!
//! It stores the same data for a charge, keeps the same rules, and is as cheap as that design
//! allows. Rows only have the columns a charge needs, and no connection is held during the
//! provider's call.

mod rows;
mod serve;

pub(crate) use serve::Usual;

use crate::failure::{Failure, Result};
pub(super) use rows::{OPENING, Order, Row, SETTLING, Work};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

/// Size of the pool; more connections only compete for the server's cores.
const CONNECTIONS: usize = 32;
const TABLES: &str = include_str!("tables.sql");
/// The API key of the only tenant.
pub(super) const API_KEY: &str = "sk_usual_bench";
const PRINCIPAL: &str = "SELECT tenants.id FROM api_keys JOIN tenants ON tenants.id = api_keys.tenant \
    WHERE digest = sha256($1) AND revoked_at IS NULL AND scopes LIKE '%charges%'";
const STORED: &str =
    "SELECT body FROM idempotency_keys WHERE tenant = $1 AND key = $2 AND fingerprint = sha256($3)";

struct Connection {
    client: Client,
    statements: BTreeMap<Row, Statement>,
    principal: Statement,
    stored: Statement,
}

pub(super) struct Pool {
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
}

/// Creates the tables in an empty database.
pub(super) async fn make(url: &str) -> Result<()> {
    let client = connect(url).await?;
    let key = format!("INSERT INTO api_keys VALUES (sha256('{API_KEY}'), 1, 'charges')");
    client.batch_execute(&format!("{TABLES}{key}")).await.map_err(Failure::while_("making the usual tables"))
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
        let prepare = async |sql| client.prepare(sql).await.map_err(Failure::while_("preparing a query"));
        let (principal, stored) = (prepare(PRINCIPAL).await?, prepare(STORED).await?);
        Ok(Connection { client, statements, principal, stored })
    }

    /// Writes a row and returns the number of rows written.
    async fn write(&self, row: Row, work: &Work<'_>) -> Result<u64> {
        let statement = &self.statements[&row];
        let written = self.client.execute(statement, &row.parameters(work)).await;
        written.map_err(Failure::while_(format!("writing {row:?}")))
    }

    /// Writes the rows in a transaction. Returns false if the first row was already there.
    async fn transaction(&self, rows: &[Row], work: &Work<'_>) -> Result<bool> {
        self.command("BEGIN").await?;
        for (place, &row) in rows.iter().enumerate() {
            if self.write(row, work).await? == 0 {
                if place == 0 {
                    self.command("ROLLBACK").await?;
                    return Ok(false);
                }
                return Err(Failure::new(format!("{row:?} of charge {} was not written", work.number)));
            }
        }
        self.command("COMMIT").await?;
        Ok(true)
    }

    async fn command(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.map_err(Failure::while_(sql))
    }
}

impl Pool {
    /// Opens at most `clients` connections: opening more would cost CPU time that is counted.
    pub(super) async fn open(url: &str, clients: usize) -> Result<Pool> {
        let connections = CONNECTIONS.min(clients);
        let mut idle = Vec::with_capacity(connections);
        for _ in 0..connections {
            idle.push(Connection::open(url).await?);
        }
        Ok(Pool { idle: Mutex::new(idle), free: Semaphore::new(connections) })
    }

    /// Writes these rows in a transaction. Returns false if the first row was already there.
    pub(super) async fn commit(&self, rows: &[Row], work: &Work<'_>) -> Result<bool> {
        self.with(async |connection| connection.transaction(rows, work).await).await
    }

    /// The tenant of an API key.
    async fn tenant(&self, api_key: &[u8]) -> Result<Option<i64>> {
        self.with(async |connection| {
            let found = connection.client.query_opt(&connection.principal, &[&api_key]).await;
            Ok(found.map_err(Failure::while_("reading an API key"))?.map(|row| row.get(0)))
        })
        .await
    }

    /// The record of a key: `None` if it belongs to another request, and its answer if there is one
    /// yet.
    async fn stored(&self, work: &Work<'_>) -> Result<Option<Option<Vec<u8>>>> {
        self.with(async |connection| {
            let parameters: [&(dyn ToSql + Sync); 3] = [&work.tenant, &work.key, &work.request];
            let found = connection.client.query_opt(&connection.stored, &parameters).await;
            Ok(found.map_err(Failure::while_("reading an answer"))?.map(|row| row.get(0)))
        })
        .await
    }

    /// Drops a connection whose work failed, because its transaction may still be open.
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
