//! Records workloads and cuts the power after every operation.

use crate::chance::{Chance, chance_at};
use crate::check::Checker;
use crate::cut::{CutMode, Image, cut};
use crate::disk::Disk;
use crate::plan::{FileKind, Full, Nth, Plan};
use crate::record::{Op, Recorder, Recording};
use crate::story::Story;
use crate::workload::{self, Size};
use std::fmt;
use std::path::{Path, PathBuf};

/// Violations whose messages are kept; later ones are only counted.
const MESSAGES_MAX: usize = 20;

/// A recording and the answers given during it.
#[derive(Clone, Debug)]
pub struct Take {
    pub recording: Recording,
    pub story: Story,
}

impl Take {
    /// Runs a workload in `dir`, from an empty disk.
    pub fn record(dir: &Path, plan: Plan, size: Size, seed: u64) -> Result<Take, String> {
        Take::go_on(dir, Disk::default(), Story::default(), plan, size, seed)
    }

    /// Runs a workload in `dir` on the disk that an earlier one has left.
    pub fn go_on(
        dir: &Path,
        base: Disk,
        mut story: Story,
        plan: Plan,
        size: Size,
        seed: u64,
    ) -> Result<Take, String> {
        if dir.exists() {
            std::fs::remove_dir_all(dir).map_err(|error| error.to_string())?;
        }
        std::fs::create_dir(dir).map_err(|error| error.to_string())?;
        let recorder = Recorder::start(dir, base, plan).map_err(|error| error.to_string())?;
        let ran = workload::run(&recorder, dir, &mut story, size, seed);
        let recording = recorder.finish();
        ran.map(|()| Take { recording, story })
    }

    /// The disk after `point` operations.
    pub fn disk(&self, point: usize) -> Disk {
        let mut disk = self.recording.base.clone();
        for (index, op) in self.recording.ops.iter().take(point).enumerate() {
            disk.apply(index, op);
        }
        disk
    }

    /// The inodes of created files whose names contain `part`.
    pub fn files(&self, part: &str) -> Vec<usize> {
        let made = self.recording.ops.iter().filter_map(|op| match op {
            Op::Link { name, inode } if name.contains(part) => Some(*inode),
            _ => None,
        });
        made.collect()
    }

    /// The number of restarts of SQLite's WAL: writes of its header, less the first of each file.
    pub fn wal_restarts(&self) -> usize {
        let headers = |op: &&Op| matches!(op, Op::Write { at: 0, bytes, .. } if bytes.len() == 32);
        self.recording.ops.iter().filter(headers).count().saturating_sub(self.files("-wal").len())
    }
}

/// Counts of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Recorded workloads.
    pub recordings: usize,
    /// Acknowledged sets.
    pub acknowledged: usize,
    /// Recorded disk operations.
    pub operations: usize,
    /// Opened images.
    pub images: usize,
    /// Different contents of images.
    pub contents: usize,
    /// Images with a lost write or name.
    pub lost: usize,
    /// Images with a partial write.
    pub torn: usize,
    /// Images with a write but without an earlier one.
    pub reordered: usize,
    /// Images that broke a promise.
    pub violations: usize,
    /// Messages of the first violations.
    pub words: Vec<String>,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} images ({} contents) of {} recordings ({} operations, {} sets acknowledged): {} with losses, {} torn, {} \
             reordered, {} violations",
            self.images,
            self.contents,
            self.recordings,
            self.operations,
            self.acknowledged,
            self.lost,
            self.torn,
            self.reordered,
            self.violations
        )
    }
}

/// A series of recordings and cuts.
#[derive(Debug)]
pub struct Campaign {
    /// Images and recordings are built here.
    pub dir: PathBuf,
    /// Images that break a promise are kept here.
    pub keep: Option<PathBuf>,
    pub seed: u64,
    pub totals: Totals,
}

impl Campaign {
    pub fn new(dir: PathBuf, seed: u64) -> Campaign {
        Campaign { dir, keep: None, seed, totals: Totals::default() }
    }

    /// Cuts a take after every operation, `images` times each. `progress` is called after every
    /// image and returns whether to go on.
    pub fn cut_everywhere(
        &mut self,
        take: &Take,
        images: usize,
        mut progress: impl FnMut(&Totals) -> bool,
    ) -> Result<(), String> {
        self.totals.recordings += 1;
        self.totals.operations += take.recording.ops.len();
        self.totals.acknowledged += take.story.acknowledged.iter().filter(|known| known.after > 0).count();
        let mut checker = Checker::new(&take.story, self.dir.join("image"))?;
        let contents = self.totals.contents;
        let mut disk = take.recording.base.clone();
        for point in 0..=take.recording.ops.len() {
            for turn in 0..images {
                let mut chance = chance_at(self.seed, &[self.totals.recordings, point, turn]);
                // Every mode in turn, starting with another one at every point.
                let mode = CutMode::ALL[(point + turn) % CutMode::ALL.len()];
                let (image, damage) = cut(&disk, mode, &mut chance);
                self.totals.images += 1;
                self.totals.lost += usize::from(damage.lost);
                self.totals.torn += usize::from(damage.torn);
                self.totals.reordered += usize::from(damage.reordered);
                if let Err(why) = checker.check(&image, point, &mut chance) {
                    self.add_violation(take, &image, point, mode, &why);
                }
                self.totals.contents = contents + checker.contents();
                if !progress(&self.totals) {
                    return Ok(());
                }
            }
            if let Some(op) = take.recording.ops.get(point) {
                disk.apply(point, op);
            }
        }
        Ok(())
    }

    fn add_violation(&mut self, take: &Take, image: &Image, point: usize, mode: CutMode, why: &str) {
        self.totals.violations += 1;
        if self.totals.words.len() >= MESSAGES_MAX {
            return;
        }
        let of = take.recording.ops.len();
        self.totals.words.push(format!("cut after operation {point} of {of}, {mode:?}: {why}"));
        let Some(keep) = &self.keep else { return };
        let dir = keep.join(format!("violation-{}", self.totals.violations));
        let kept = std::fs::create_dir_all(&dir)
            .and_then(|()| image.iter().try_for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes)));
        if let Err(error) = kept {
            self.totals.words.push(format!("the image could not be kept in {}: {error}", dir.display()));
        }
    }
}

/// The events of a recording in a long campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Only the cut.
    Plain,
    SyncFails(FileKind),
    /// The store's own sync after a checkpoint step fails.
    OwnSyncFails,
    /// The disk is full for a while.
    Full(FileKind),
    /// The machine has lost power at some point of the previous recording.
    SecondCut,
    /// The process was killed at some point of the previous recording, and the machine went on.
    Killed,
}

impl Scene {
    /// Every scene, in the order of a campaign.
    pub const ALL: [Scene; 13] = [
        Scene::Plain,
        Scene::SecondCut,
        Scene::SyncFails(FileKind::Log),
        Scene::Killed,
        Scene::SyncFails(FileKind::SqliteWal),
        Scene::SyncFails(FileKind::Database),
        Scene::SecondCut,
        Scene::OwnSyncFails,
        Scene::Killed,
        Scene::SyncFails(FileKind::Journal),
        Scene::Full(FileKind::Log),
        Scene::Full(FileKind::SqliteWal),
        Scene::Full(FileKind::Database),
    ];

    /// Records the scene in `dir`.
    pub fn record(self, dir: &Path, before: Option<&Take>, size: Size, seed: u64) -> Result<Take, String> {
        let mut chance = chance_at(seed, &[]);
        let among = |count: usize, chance: &mut Chance| u32::try_from(1 + chance.index(count)).unwrap_or(1);
        let keys = usize::try_from(size.keys).unwrap_or(1);
        let plan = match self {
            Scene::Plain | Scene::SecondCut | Scene::Killed => Plan::default(),
            Scene::SyncFails(of) => {
                let among_these = match of {
                    FileKind::Database => 12,
                    FileKind::Log => keys * 4,
                    FileKind::SqliteWal => 16,
                    // A store writes a journal only once, at its creation.
                    FileKind::Journal => 2,
                };
                Plan { sync: Some(Nth { of, nth: among(among_these, &mut chance) }), ..Plan::default() }
            }
            Scene::OwnSyncFails => Plan { own_sync: Some(among(8, &mut chance)), ..Plan::default() },
            Scene::Full(of) => {
                let first = if of == FileKind::Log { 4 } else { 120 };
                let from = Nth { of, nth: first + among(keys * 20, &mut chance) };
                Plan { full: Some(Full { from, writes: among(30, &mut chance) }), ..Plan::default() }
            }
        };
        let (base, story) = match (self, before) {
            (Scene::SecondCut, Some(before)) => {
                let point = chance.index(before.recording.ops.len() + 1);
                let mode = CutMode::ALL[chance.index(CutMode::ALL.len())];
                let (image, _) = cut(&before.disk(point), mode, &mut chance);
                (Disk::holding(&image), before.story.upto(point))
            }
            (Scene::Killed, Some(before)) => {
                let point = chance.index(before.recording.ops.len() + 1);
                (before.disk(point), before.story.upto(point))
            }
            _ => (Disk::default(), Story::default()),
        };
        Take::go_on(dir, base, story, plan, size, seed)
    }
}
