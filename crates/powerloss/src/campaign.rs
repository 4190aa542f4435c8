//! Records workloads and cuts them: everywhere, or as often as asked.

use crate::chance::{Chance, chance_at};
use crate::check::Checker;
use crate::cut::{Image, Mood, cut};
use crate::disk::Disk;
use crate::plan::{Full, Kind, Nth, Plan};
use crate::record::{Op, Recorder, Recording};
use crate::story::Story;
use crate::workload::{self, Size};
use std::fmt;
use std::path::{Path, PathBuf};

/// Violations that are kept with their words; more are only counted.
const WORDS_MAX: usize = 20;

/// A recording and what was told meanwhile.
#[derive(Clone, Debug)]
pub struct Take {
    /// What was asked of the disk.
    pub recording: Recording,
    /// What was answered.
    pub story: Story,
}

impl Take {
    /// Runs a workload in `dir`, from an empty disk.
    pub fn record(dir: &Path, plan: Plan, size: Size, seed: u64) -> Result<Take, String> {
        Take::go_on(dir, Disk::default(), Story::default(), plan, size, seed)
    }

    /// Runs a workload in `dir` on what an earlier one has left.
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

    /// The files whose names had this in them.
    pub fn files(&self, part: &str) -> Vec<usize> {
        let made = self.recording.ops.iter().filter_map(|op| match op {
            Op::Link { name, inode } if name.contains(part) => Some(*inode),
            _ => None,
        });
        made.collect()
    }

    /// How often the log has started over: its first bytes were written so many times, less the first of each file.
    pub fn log_restarts(&self) -> usize {
        let headers = |op: &&Op| matches!(op, Op::Write { at: 0, bytes, .. } if bytes.len() == 32);
        self.recording.ops.iter().filter(headers).count().saturating_sub(self.files("-wal").len())
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Workloads that were recorded.
    pub recordings: usize,
    /// Sets they were told are committed.
    pub acknowledged: usize,
    /// Operations they asked of their disks.
    pub operations: usize,
    /// Images that were opened.
    pub images: usize,
    /// Different contents they had.
    pub contents: usize,
    /// Images in which something on its way was lost.
    pub lost: usize,
    /// Images in which a write was partly there.
    pub torn: usize,
    /// Images in which a write was there and an earlier one was not.
    pub reordered: usize,
    /// Images that broke a promise.
    pub violations: usize,
    /// What the first of them did.
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

/// Where and how cuts are made.
#[derive(Debug)]
pub struct Campaign {
    /// Images are put here; recordings run here too.
    pub dir: PathBuf,
    /// Images that break a promise are kept here.
    pub keep: Option<PathBuf>,
    /// All numbers follow from it.
    pub seed: u64,
    /// What was seen.
    pub totals: Totals,
}

impl Campaign {
    /// A campaign that has seen nothing.
    pub fn new(dir: PathBuf, seed: u64) -> Campaign {
        Campaign { dir, keep: None, seed, totals: Totals::default() }
    }

    /// Cuts a take after every operation, so many times each; `told` hears of every image and says whether to go on.
    pub fn cut_everywhere(
        &mut self,
        take: &Take,
        images: usize,
        mut told: impl FnMut(&Totals) -> bool,
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
                // Each mood in its turn, from another one at every point.
                let mood = Mood::ALL[(point + turn) % Mood::ALL.len()];
                let (image, damage) = cut(&disk, mood, &mut chance);
                self.totals.images += 1;
                self.totals.lost += usize::from(damage.lost);
                self.totals.torn += usize::from(damage.torn);
                self.totals.reordered += usize::from(damage.reordered);
                if let Err(why) = checker.check(&image, point, &mut chance) {
                    self.note(take, &image, point, mood, &why);
                }
                self.totals.contents = contents + checker.contents();
                if !told(&self.totals) {
                    return Ok(());
                }
            }
            if let Some(op) = take.recording.ops.get(point) {
                disk.apply(point, op);
            }
        }
        Ok(())
    }

    fn note(&mut self, take: &Take, image: &Image, point: usize, mood: Mood, why: &str) {
        self.totals.violations += 1;
        if self.totals.words.len() >= WORDS_MAX {
            return;
        }
        let of = take.recording.ops.len();
        self.totals.words.push(format!("cut after operation {point} of {of}, {mood:?}: {why}"));
        let Some(keep) = &self.keep else { return };
        let dir = keep.join(format!("violation-{}", self.totals.violations));
        let kept = std::fs::create_dir_all(&dir)
            .and_then(|()| image.iter().try_for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes)));
        if let Err(error) = kept {
            self.totals.words.push(format!("the image could not be kept in {}: {error}", dir.display()));
        }
    }
}

/// What happens in a recording of a long campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Nothing but the cut.
    Plain,
    /// A sync fails.
    SyncFails(Kind),
    /// The store's own sync after a step of a checkpoint fails.
    OwnSyncFails,
    /// There is no space for a while.
    Full(Kind),
    /// The machine had lost power before, somewhere in the recording before this.
    SecondCut,
    /// The process had been killed before, somewhere in the recording before this, and the machine went on.
    Killed,
}

impl Scene {
    /// Every scene, in the order a campaign takes them.
    pub const ALL: [Scene; 13] = [
        Scene::Plain,
        Scene::SecondCut,
        Scene::SyncFails(Kind::Redo),
        Scene::Killed,
        Scene::SyncFails(Kind::Log),
        Scene::SyncFails(Kind::Database),
        Scene::SecondCut,
        Scene::OwnSyncFails,
        Scene::Killed,
        Scene::SyncFails(Kind::Journal),
        Scene::Full(Kind::Redo),
        Scene::Full(Kind::Log),
        Scene::Full(Kind::Database),
    ];

    /// Records it, in `dir`.
    pub fn record(self, dir: &Path, before: Option<&Take>, size: Size, seed: u64) -> Result<Take, String> {
        let mut chance = chance_at(seed, &[]);
        let among = |count: usize, chance: &mut Chance| u32::try_from(1 + chance.index(count)).unwrap_or(1);
        let keys = usize::try_from(size.keys).unwrap_or(1);
        let plan = match self {
            Scene::Plain | Scene::SecondCut | Scene::Killed => Plan::default(),
            Scene::SyncFails(of) => {
                let among_these = match of {
                    Kind::Database => 12,
                    Kind::Redo => keys * 4,
                    Kind::Log => 16,
                    // A store writes a journal once, when it is made.
                    Kind::Journal => 2,
                };
                Plan { sync: Some(Nth { of, nth: among(among_these, &mut chance) }), ..Plan::default() }
            }
            Scene::OwnSyncFails => Plan { own_sync: Some(among(8, &mut chance)), ..Plan::default() },
            Scene::Full(of) => {
                let first = if of == Kind::Redo { 4 } else { 120 };
                let from = Nth { of, nth: first + among(keys * 20, &mut chance) };
                Plan { full: Some(Full { from, writes: among(30, &mut chance) }), ..Plan::default() }
            }
        };
        let (base, story) = match (self, before) {
            (Scene::SecondCut, Some(before)) => {
                let point = chance.index(before.recording.ops.len() + 1);
                let mood = Mood::ALL[chance.index(Mood::ALL.len())];
                let (image, _) = cut(&before.disk(point), mood, &mut chance);
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
