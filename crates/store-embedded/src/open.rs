//! Opens a store: directory, lock, file, format, clock, threads, in this order. Nothing here looks at more than a
//! handful of pages, so opening takes as long with a million charges as with none; only the migration of an
//! older format reads a file through, once.

use crate::checkpoint::{self, Syncs, Wal};
use crate::clock::{Anchor, Clock, TimeSource};
use crate::connect;
use crate::display::{self, Applier, Display};
use crate::error::OpenError;
use crate::lock::Lock;
use crate::options::{Fault, FaultHook, FaultPoint, Options};
use crate::progress::Progress;
use crate::readers::Readers;
use crate::redo::{self, Lineage, Redo};
use crate::renew;
use crate::schema::{self, FORMAT, Found, STEPS};
use crate::store::{EmbeddedStore, Running};
use crate::tables::{commits, meta};
use crate::writer::{Health, Home, Queue, Shared, Writer};
use counterfoil_core::types::time::Time;
use rusqlite::Connection;
use rusqlite::hooks::Wal as HookedWal;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;

type Connect = fn(&Path) -> Result<Connection, OpenError>;

impl EmbeddedStore {
    /// Opens the store in `dir` for reading and writing, and makes it if there is none. No other process can open
    /// it for writing meanwhile.
    pub fn open(dir: &Path, options: Options) -> Result<EmbeddedStore, OpenError> {
        connect::create(dir)?;
        let lock = Lock::take(dir)?;
        connect::create_file(dir)?;
        // Closing any handle of a file drops all locks the process has on it, SQLite's too: this one outlives them.
        let file = Arc::new(File::open(connect::file(dir))?);
        let mut db = connect::writer(dir, &options)?;
        let found = schema::identify(&db, STEPS)?;
        connect::write_ahead(&db, options.log)?;
        let data_version = display::version(&db)?;
        if found != Found::Fresh {
            if is_same_boot(&db, options.time.as_ref())? {
                renew::renew(&db, dir, || faulty(options.fault.as_ref(), FaultPoint::Log))?;
            }
            // Replayed under all rules of the tables, and under those of the format that wrote the log.
            redo::recover(&mut db, dir, options.media.as_ref())?;
        }
        schema::migrate(&mut db, found, STEPS)?;
        schema::copy_rules(&db)?;

        let secret = meta::secret(&db)?;
        let (position, high_water) = high_water(&db)?;
        let anchor = Anchor::resume(meta::anchor(&db)?, high_water, options.time.as_ref());
        // From here on the database needs nothing of the redo log that was found: this is synced.
        let lineage = new_lineage()?;
        meta::put_opening(&mut db, &anchor, lineage)?;
        connect::leave_syncs_to_the_redo_log(&db)?;
        let progress = Arc::new(Progress::new(position));
        let redo = Redo::open(dir, options.media.as_ref(), lineage, options.redo, progress.safe())?;
        let clock = Arc::new(Clock::new(Arc::clone(&options.time), anchor));

        let readers = readers(dir, connect::reader, options.readers)?;
        let health = Arc::new(Health::default());
        let (wal, woken) = Wal::new(options.log, Arc::clone(&health), Arc::clone(&progress));
        let told = Arc::clone(&wal);
        db.wal_hook(Some(move |_: &mut HookedWal, frames| {
            told.grew_to(frames);
            Ok(())
        }))?;
        let stop = Arc::new(AtomicBool::new(false));
        let checkpointer = {
            let db = connect::checkpointer(dir)?;
            let log = Arc::new(File::open(connect::log(dir))?);
            let syncs = Syncs {
                database: sync(Arc::clone(&file), options.fault.clone(), FaultPoint::Checkpoint),
                log: sync(log, options.fault.clone(), FaultPoint::CheckpointLog),
            };
            let (wal, stop) = (Arc::clone(&wal), Arc::clone(&stop));
            Builder::new()
                .name("store-checkpoint".to_owned())
                .spawn(move || checkpoint::run(&db, &syncs, &wal, &woken, &stop))?
        };
        let applier = Applier::new(
            db,
            data_version,
            Arc::clone(&wal),
            Arc::clone(&health),
            Arc::clone(&progress),
            options.fault.clone(),
        )?;
        let display = Arc::new(Display::new(applier, Arc::clone(&progress)));
        let writer = Writer::new(
            Home { dir: dir.to_owned(), lineage },
            connect::reader(dir)?,
            redo,
            position,
            Shared {
                clock: Arc::clone(&clock),
                wal: Arc::clone(&wal),
                health: Arc::clone(&health),
                progress: Arc::clone(&progress),
                display: Arc::clone(&display),
            },
            options,
        )?;
        let shows = display.start()?;
        let queue = Queue::start(writer).inspect_err(|_| display.close())?;
        Ok(EmbeddedStore {
            secret,
            clock,
            readers,
            running: Some(Running {
                queue,
                display: Some(display),
                shows: Some(shows),
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

    /// Opens the store in `dir` for reading only, whether or not a server has it open. Commits are refused.
    pub fn open_read_only(dir: &Path) -> Result<EmbeddedStore, OpenError> {
        if dir.exists() && !dir.is_dir() {
            return Err(OpenError::NotADirectory);
        }
        if !connect::file(dir).exists() {
            return Err(OpenError::Absent);
        }
        let options = Options::default();
        recover_if_dead(dir, &options)?;
        // Reading a live store needs its shared memory; where that cannot be made, nobody else writes either.
        let (connect, found): (Connect, _) = match connect::reader(dir).map(|db| schema::identify(&db, STEPS))
        {
            Ok(Ok(found)) => (connect::reader, found),
            Ok(Err(OpenError::Io(_) | OpenError::ReadOnly)) | Err(OpenError::Io(_) | OpenError::ReadOnly) => {
                (connect::still_reader, schema::identify(&connect::still_reader(dir)?, STEPS)?)
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

/// What a process that died has left in the redo log is played first, unless another process writes here: then the
/// database is behind its answers by some milliseconds at most.
fn recover_if_dead(dir: &Path, options: &Options) -> Result<(), OpenError> {
    let Ok(db) = connect::reader(dir) else { return Ok(()) };
    if schema::identify(&db, STEPS)? != Found::Format(FORMAT)
        || !redo::is_left_over(&db, dir, options.media.as_ref())?
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

/// Whether the last opening was in this boot of the machine, so that the kernel's cache is as old. If it cannot be told,
/// it may have been.
fn is_same_boot(db: &Connection, time: &dyn TimeSource) -> Result<bool, OpenError> {
    let last = meta::anchor(db)?.and_then(|anchor| anchor.boot_id).filter(|id| !id.is_empty());
    Ok(last.zip(time.boot_id()).is_none_or(|(last, this)| last == this))
}

fn sync(
    file: Arc<File>,
    fault: Option<FaultHook>,
    point: FaultPoint,
) -> Box<dyn Fn() -> io::Result<()> + Send> {
    Box::new(move || faulty(fault.as_ref(), point).and_then(|()| file.sync_data()))
}

/// A name that no other opening has.
fn new_lineage() -> Result<Lineage, OpenError> {
    let mut name = [0; 8];
    #[expect(clippy::disallowed_methods, reason = "opening happens before there is a world to ask")]
    getrandom::fill(&mut name).map_err(|error| OpenError::Io(format!("no random bytes: {error}")))?;
    Ok(Lineage(i64::from_le_bytes(name)))
}

/// What a test wants to happen at this point.
fn faulty(fault: Option<&FaultHook>, point: FaultPoint) -> io::Result<()> {
    match fault.and_then(|fault| fault(point)) {
        None => Ok(()),
        Some(Fault::DiskFull) => Err(io::ErrorKind::StorageFull.into()),
        Some(Fault::Sync) => Err(io::ErrorKind::Other.into()),
    }
}
