//! A database for a test: copied from a template that the first test makes, dropped after the
//! test.

use crate::failure::{Failure, Result};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

/// An advisory lock that serialises the creation of templates over all processes.
const TEMPLATE_LOCK: i64 = 0x436f_666f_0001;
const DROP_WITHIN: Duration = Duration::from_secs(20);

/// A database for a test. Dropping it drops the database, even with open connections.
#[derive(Debug)]
pub struct Database {
    address: String,
    name: String,
}

impl Database {
    /// Copies `template` on the server at `address`. If the template does not exist yet, `make`
    /// fills it.
    pub async fn copy_of<F>(address: &str, template: &str, make: impl FnOnce(String) -> F) -> Result<Database>
    where
        F: Future<Output = std::result::Result<(), String>>,
    {
        let admin = connect(&format!("{address}/postgres")).await?;
        let doing = "making a database for a test";
        admin
            .execute("SELECT pg_advisory_lock($1)", &[&TEMPLATE_LOCK])
            .await
            .map_err(Failure::while_(doing))?;
        let there = admin
            .query_opt("SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate", &[&template])
            .await
            .map_err(Failure::while_(doing))?;
        if there.is_none() {
            let statements = format!("DROP DATABASE IF EXISTS {template}; CREATE DATABASE {template}");
            for statement in statements.split("; ") {
                admin.batch_execute(statement).await.map_err(Failure::while_(doing))?;
            }
            make(format!("{address}/{template}")).await.map_err(Failure::while_("filling the template"))?;
            let ready = format!("ALTER DATABASE {template} IS_TEMPLATE true");
            admin.batch_execute(&ready).await.map_err(Failure::while_(doing))?;
        }
        admin
            .execute("SELECT pg_advisory_unlock($1)", &[&TEMPLATE_LOCK])
            .await
            .map_err(Failure::while_(doing))?;
        let name = format!("test_{:016x}", RandomState::new().build_hasher().finish());
        // A file copy would make the server write a checkpoint for each copy.
        let copy = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log");
        admin.batch_execute(&copy).await.map_err(Failure::while_(doing))?;
        Ok(Database { address: address.to_owned(), name })
    }

    pub fn url(&self) -> String {
        format!("{}/{}", self.address, self.name)
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (address, name) = (self.address.clone(), self.name.clone());
        // A separate thread, because nothing may block inside a runtime.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(async {
                let admin = connect(&format!("{address}/postgres")).await.ok()?;
                let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                tokio::time::timeout(DROP_WITHIN, admin.batch_execute(&statement)).await.ok()?.ok()
            })
        });
        // A remaining database is no failed test: the server is deleted at the end of the run.
        let _ = dropping.join();
    }
}

/// Connects a plain client.
pub async fn connect(url: &str) -> Result<Client> {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.map_err(Failure::while_(format!("connecting to {url}")))?;
    tokio::spawn(connection);
    Ok(client)
}
