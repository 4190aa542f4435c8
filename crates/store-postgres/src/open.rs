//! Opens a store: URL, server, tables, clock, committers, in this order. Nothing here looks at more than a few rows.

use crate::clock::monotonic;
use crate::committer::{Committer, Queue};
use crate::error::OpenError;
use crate::options::Options;
use crate::readers::Readers;
use crate::schema;
use crate::session::{Ground, Purpose, Session, Target};
use crate::shared::Shared;
use crate::store::PostgresStore;
use crate::wake::Wake;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the server's clock is looked at when nothing is committed.
const CLOCK_EVERY: Duration = Duration::from_secs(10);

impl PostgresStore {
    /// Opens the store at `url`. The database must have its tables: see [`crate::migrate`]. Must be called within a
    /// Tokio runtime, which must outlive the store.
    pub async fn open(url: &str, options: Options) -> Result<PostgresStore, OpenError> {
        let target = Target::parse(url)?;
        let session = Session::open(&target, Purpose::Commit).await?;
        let found = schema::check(&session).await?;
        let begun = monotonic();
        let ground = Ground::look(&session).await?;
        drop(session);
        let shared = Arc::new(Shared::new(target, options, found, ground));
        shared.clock.looked(ground.server_us, monotonic().saturating_sub(begun));
        let (queue, waiting) = Queue::new(Arc::clone(&shared.ids));
        let mut tasks = Vec::new();
        for index in 0..shared.options.committers.max(1) {
            // All of them connect now: a server without room for them should say so here.
            let committer = Committer::start(Arc::clone(&shared), index).await?;
            tasks.push(tokio::spawn(committer.serve(Arc::clone(&waiting))));
        }
        let readers = Arc::new(Readers::new(Arc::clone(&shared)));
        tokio::spawn(watch_clock(Arc::downgrade(&readers)));
        let wake = Wake::start(Arc::clone(&shared));
        Ok(PostgresStore { shared, readers, queue, wake, tasks })
    }
}

async fn watch_clock(readers: Weak<Readers>) {
    loop {
        tokio::time::sleep(CLOCK_EVERY).await;
        let Some(readers) = readers.upgrade() else { return };
        readers.look_at_clock().await;
    }
}
