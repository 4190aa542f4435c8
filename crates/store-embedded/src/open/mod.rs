//! Opens a store: directory, lock, file, format, recovery, clock, threads, in this order.
//!
//! An opening reads a handful of pages, so it takes as long with a million charges as with none.
//! Only a migration from an older format may read the whole file. [`connect`] sets up connections,
//! [`lock`] keeps other processes out, [`rewrite_wal`] repairs a WAL whose sync may have failed.

pub(crate) mod connect;
mod lock;
mod rewrite_wal;

pub(crate) use lock::Lock;

use crate::clock::{Anchor, Clock, TimeSource};
use crate::error::OpenError;
use crate::flush::{Applier, Flusher, Progress, SqliteWal, Syncs, data_version, run_checkpointer};
use crate::key_index::Home;
use crate::log::{self, Lineage, WriteAheadLog};
use crate::options::{Fault, FaultHook, FaultPoint, Options};
use crate::readers::Readers;
use crate::schema::{self, FORMAT, Found, STEPS};
use crate::store::{EmbeddedStore, Running};
use crate::tables::{commits, meta};
use crate::writer::{Health, Queue, Shared, Writer};
use counterfoil_core::types::time::Time;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;

type Connect = fn(&Path) -> Result<Connection, OpenError>;

impl EmbeddedStore {
    /// Opens the store in `dir` for reading and writing, or creates it. No other process can open
    /// it for writing meanwhile.
    pub fn open(dir: &Path, options: Options) -> Result<EmbeddedStore, OpenError> {
        connect::create(dir)?;
        let lock = Lock::take(dir)?;
        connect::create_file(dir)?;
        // Closing any handle of the file drops all locks of the process, also SQLite's. This handle
        // is closed last.
        let file = Arc::new(File::open(connect::file(dir))?);
        let mut db = connect::writer(dir, &options)?;
        let found = schema::identify(&db, STEPS)?;
        connect::set_wal_mode(&db, options.sqlite_wal)?;
        let data_version = data_version(&db)?;
        if found != Found::Fresh {
            if is_same_boot(&db, options.time.as_ref())? {
                rewrite_wal::rewrite_wal(&db, dir, || {
                    inject(options.fault.as_ref(), FaultPoint::RewriteWal)
                })?;
            }
            // Recovery precedes the migration, because the log was written for the old tables. It
            // precedes `copy_rules`, so that all triggers of the file hold for the replay.
            log::recover(&mut db, dir, options.log_storage.as_ref())?;
        }
        schema::migrate(&mut db, found, STEPS)?;
        schema::copy_rules(&db)?;

        let secret = meta::secret(&db)?;
        let (position, high_water) = high_water(&db)?;
        let anchor = Anchor::resume(meta::anchor(&db)?, high_water, options.time.as_ref());
        // After this synced commit the database needs nothing of the old log.
        let lineage = new_lineage()?;
        meta::put_opening(&mut db, &anchor, lineage)?;
        connect::stop_syncing_commits(&db)?;
        let progress = Arc::new(Progress::new(position));
        let log = WriteAheadLog::open(
            dir,
            options.log_storage.as_ref(),
            lineage,
            options.log,
            progress.checkpointed(),
        )?;
        let clock = Arc::new(Clock::new(Arc::clone(&options.time), anchor));

        let readers = readers(dir, connect::reader, options.readers)?;
        let health = Arc::new(Health::default());
        let (wal, woken) = SqliteWal::new(options.sqlite_wal, Arc::clone(&health), Arc::clone(&progress));
        let hooked = Arc::clone(&wal);
        db.wal_hook(Some(move |_: &mut Wal, frames| {
            hooked.set_frames(frames);
            Ok(())
        }))?;
        let applier = Applier::new(
            db,
            data_version,
            Arc::clone(&wal),
            Arc::clone(&health),
            Arc::clone(&progress),
            options.fault.clone(),
        )?;
        let stop = Arc::new(AtomicBool::new(false));
        let checkpointer = {
            let db = connect::checkpointer(dir)?;
            let wal_file = Arc::new(File::open(connect::wal(dir))?);
            let syncs = Syncs {
                database: sync(Arc::clone(&file), options.fault.clone(), FaultPoint::Checkpoint),
                wal: sync(wal_file, options.fault.clone(), FaultPoint::CheckpointWal),
            };
            let (wal, stop) = (Arc::clone(&wal), Arc::clone(&stop));
            Builder::new()
                .name("store-checkpoint".to_owned())
                .spawn(move || run_checkpointer(&db, &syncs, &wal, &woken, &stop))?
        };
        let flusher = Arc::new(Flusher::new(applier, Arc::clone(&progress)));
        let writer = Writer::new(
            Home { dir: dir.to_owned(), lineage },
            connect::reader(dir)?,
            log,
            position,
            Shared {
                clock: Arc::clone(&clock),
                wal: Arc::clone(&wal),
                health: Arc::clone(&health),
                progress: Arc::clone(&progress),
                flusher: Arc::clone(&flusher),
            },
            options,
        )?;
        let flusher_thread = flusher.start()?;
        let queue = Queue::start(writer).inspect_err(|_| flusher.close())?;
        Ok(EmbeddedStore {
            secret,
            clock,
            readers,
            running: Some(Running {
                queue,
                flusher: Some(flusher),
                flusher_thread: Some(flusher_thread),
                progress,
                health,
                wal,
                stop,
                checkpointer: Some(checkpointer),
                _file: file,
                _lock: lock,
            }),
        })
    }

    /// Opens the store in `dir` for reading only, whether or not a server has it open.
    pub fn open_read_only(dir: &Path) -> Result<EmbeddedStore, OpenError> {
        if dir.exists() && !dir.is_dir() {
            return Err(OpenError::NotADirectory);
        }
        if !connect::file(dir).exists() {
            return Err(OpenError::Absent);
        }
        let options = Options::default();
        recover_if_dead(dir, &options)?;
        // Reading a live store needs its shared memory. Where no file can be created, nobody
        // writes.
        let (connect, found): (Connect, _) = match connect::reader(dir).map(|db| schema::identify(&db, STEPS))
        {
            Ok(Ok(found)) => (connect::reader, found),
            Ok(Err(OpenError::Io(_) | OpenError::ReadOnly)) | Err(OpenError::Io(_) | OpenError::ReadOnly) => {
                (connect::immutable_reader, schema::identify(&connect::immutable_reader(dir)?, STEPS)?)
            }
            Ok(Err(error)) | Err(error) => return Err(error),
        };
        let db = connect(dir)?;
        match found {
            Found::Fresh => return Err(OpenError::Absent),
            Found::Format(FORMAT) => {}
            Found::Format(found) => return Err(OpenError::OlderFormat { found, known: FORMAT }),
        }
        let (_, high_water) = high_water(&db)?;
        let anchor = Anchor::resume(meta::anchor(&db)?, high_water, options.time.as_ref());
        Ok(EmbeddedStore {
            secret: meta::secret(&db)?,
            clock: Arc::new(Clock::new(options.time, anchor)),
            readers: readers(dir, connect, options.readers)?,
            running: None,
        })
    }
}

/// Replays the log of a dead process. A live process flushes its own log, a quarter of a second
/// late at most.
fn recover_if_dead(dir: &Path, options: &Options) -> Result<(), OpenError> {
    let Ok(db) = connect::reader(dir) else { return Ok(()) };
    if schema::identify(&db, STEPS)? != Found::Format(FORMAT)
        || !log::has_unreplayed_entries(&db, dir, options.log_storage.as_ref())?
    {
        return Ok(());
    }
    drop(db);
    match EmbeddedStore::open(dir, Options::default()) {
        Ok(store) => store.close(),
        Err(OpenError::Locked { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn high_water(db: &Connection) -> Result<(u64, Time), OpenError> {
    let last = commits::last(db)?;
    Ok(last.map_or((0, Time::EPOCH), |last| (last.position.0, last.at)))
}

fn readers(dir: &Path, connect: Connect, count: usize) -> Result<Readers, OpenError> {
    let connections: Result<Vec<Connection>, OpenError> = (0..count.max(1)).map(|_| connect(dir)).collect();
    connections.map(Readers::new)
}

/// Whether the last opening was in this boot of the machine, so that the kernel's cache is from
/// then. True if the kernel does not tell.
fn is_same_boot(db: &Connection, time: &dyn TimeSource) -> Result<bool, OpenError> {
    let last = meta::anchor(db)?.and_then(|anchor| anchor.boot_id).filter(|id| !id.is_empty());
    Ok(last.zip(time.boot_id()).is_none_or(|(last, this)| last == this))
}

fn sync(
    file: Arc<File>,
    fault: Option<FaultHook>,
    point: FaultPoint,
) -> Box<dyn Fn() -> io::Result<()> + Send> {
    Box::new(move || inject(fault.as_ref(), point).and_then(|()| file.sync_data()))
}

/// A random name for this opening.
fn new_lineage() -> Result<Lineage, OpenError> {
    let mut name = [0; 8];
    #[expect(clippy::disallowed_methods, reason = "opening happens before there is a world to ask")]
    getrandom::fill(&mut name).map_err(|error| OpenError::Io(format!("no random bytes: {error}")))?;
    Ok(Lineage(i64::from_le_bytes(name)))
}

/// The injected fault of this point.
fn inject(fault: Option<&FaultHook>, point: FaultPoint) -> io::Result<()> {
    match fault.and_then(|fault| fault(point)) {
        None => Ok(()),
        Some(Fault::DiskFull) => Err(io::ErrorKind::StorageFull.into()),
        Some(Fault::Sync) => Err(io::ErrorKind::Other.into()),
    }
}
