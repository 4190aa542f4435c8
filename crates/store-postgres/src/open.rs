//! Opens a store: URL, server, schema, clock, committers, in this order. Opening reads only a few
//! rows.

use crate::clock::monotonic;
use crate::committer::{Committer, Queue};
use crate::error::OpenError;
use crate::options::Options;
use crate::readers::Readers;
use crate::schema::Schema;
use crate::session::{DatabaseState, Purpose, Session, Target};
use crate::shared::Shared;
use crate::store::PostgresStore;
use crate::wake::Wake;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The interval at which an idle store reads the server's clock.
const CLOCK_EVERY: Duration = Duration::from_secs(10);

impl PostgresStore {
    /// Opens the store at `url`. The database must have its tables: see [`crate::migrate`]. Must be
    /// called within a Tokio runtime, which must outlive the store.
    pub async fn open(url: &str, options: Options) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_with_schema(url, options, Schema::current()).await
    }

    /// Opens the store as a build with another schema would.
    #[doc(hidden)]
    pub async fn open_with_schema(
        url: &str,
        options: Options,
        schema: Schema,
    ) -> Result<PostgresStore, OpenError> {
        let target = Target::parse(url)?;
        let session = Session::open(&target, Purpose::Commit).await?;
        schema.check(&session).await?;
        let begun = monotonic();
        let state = DatabaseState::read(&session).await?;
        drop(session);
        let shared = Arc::new(Shared::new(target, options, schema, state));
        shared.clock.observe_server(state.server_us, monotonic().saturating_sub(begun));
        let (queue, waiting) = Queue::new(Arc::clone(&shared.ids));
        let mut tasks = Vec::new();
        for index in 0..shared.options.committers.max(1) {
            // All committers connect now, so that a server without free connections fails the
            // start.
            let committer = Committer::start(Arc::clone(&shared), index).await?;
            tasks.push(tokio::spawn(committer.serve(Arc::clone(&waiting))));
        }
        let readers = Arc::new(Readers::new(Arc::clone(&shared)));
        tokio::spawn(poll_clock(Arc::downgrade(&readers)));
        let wake = Wake::start(Arc::clone(&shared));
        Ok(PostgresStore { shared, readers, queue, wake, tasks })
    }
}

async fn poll_clock(readers: Weak<Readers>) {
    loop {
        tokio::time::sleep(CLOCK_EVERY).await;
        let Some(readers) = readers.upgrade() else { return };
        readers.read_clock().await;
    }
}
