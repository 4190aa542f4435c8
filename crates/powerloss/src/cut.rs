//! Builds the directory as a power cut may leave it: all durable bytes, and any part of the pending
//! ones.
//!
//! Damage stays within the pending writes: other bytes of the same sector survive. SQLite relies on
//! that (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`) on every Unix. A write of unchanged bytes damages
//! nothing.

use crate::chance::Chance;
use crate::disk::{Change, Disk, File, Pending, overwrite};
use std::collections::BTreeMap;

/// Files by name.
pub type Image = BTreeMap<String, Vec<u8>>;

const SECTOR: usize = 512;
const PAGE: usize = 4_096;

/// The part of the pending writes that a cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutMode {
    /// Nothing.
    Lost,
    /// All, as if only the process had died.
    Kept,
    /// The writes up to some moment, the last one torn.
    Prefix,
    /// Any of the writes.
    Subset,
    /// Any sectors.
    Sectors,
    /// Any pages.
    Pages,
    /// A prefix of each write.
    Bytes,
    /// Any sectors, and garbage in some.
    Garbage,
}

impl CutMode {
    pub const ALL: [CutMode; 8] = [
        CutMode::Lost,
        CutMode::Kept,
        CutMode::Prefix,
        CutMode::Subset,
        CutMode::Sectors,
        CutMode::Pages,
        CutMode::Bytes,
        CutMode::Garbage,
    ];
}

/// The kinds of damage in an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// A write is partly there.
    pub torn: bool,
    /// A write is there and an earlier write is not.
    pub reordered: bool,
    /// A write or a name is missing.
    pub lost: bool,
}

/// The directory after a cut.
pub fn cut(disk: &Disk, mode: CutMode, chance: &mut Chance) -> (Image, Damage) {
    let mut names = disk.names.clone();
    let mut damage = Damage::default();
    // The changes of one name arrive in order; different names are independent.
    let mut stopped: Vec<&str> = Vec::new();
    for (name, target) in &disk.renames {
        let arrives = mode == CutMode::Kept || mode != CutMode::Lost && chance.percent(50);
        if stopped.contains(&name.as_str()) || !arrives {
            stopped.push(name);
            damage.lost = true;
            continue;
        }
        match target {
            Some(inode) => names.insert(name.clone(), *inode),
            None => names.remove(name),
        };
    }
    let indices = disk.files.iter().flat_map(|file| &file.pending).map(|pending| pending.index);
    let mut cutter = Cutter { mode, upto: pick(indices, chance), first_lost: None, damage, chance };
    let image = names
        .into_iter()
        .filter_map(|(name, inode)| Some((name, cutter.content(disk.files.get(inode)?))))
        .collect();
    (image, cutter.damage)
}

/// A random operation; 0 if there is none.
fn pick(indices: impl Iterator<Item = usize>, chance: &mut Chance) -> usize {
    let indices: Vec<usize> = indices.collect();
    indices.get(chance.index(indices.len())).copied().unwrap_or(0)
}

struct Cutter<'a> {
    mode: CutMode,
    /// The last operation of a prefix.
    upto: usize,
    /// The first write that is not whole.
    first_lost: Option<usize>,
    damage: Damage,
    chance: &'a mut Chance,
}

/// The remains of one piece of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Old,
    New,
    Garbage,
}

impl Cutter<'_> {
    fn content(&mut self, file: &File) -> Vec<u8> {
        let mut bytes = file.durable.clone();
        for pending in &file.pending {
            let (kept, missed) = self.apply(pending, &mut bytes);
            self.damage.torn |= kept && missed;
            self.damage.lost |= missed;
            if kept && self.first_lost.is_some_and(|lost| lost < pending.index) {
                self.damage.reordered = true;
            }
            if missed {
                let first = self.first_lost.map_or(pending.index, |lost| lost.min(pending.index));
                self.first_lost = Some(first);
            }
        }
        bytes
    }

    /// Applies the remains of a change. Returns whether a part of it was kept, and whether a part
    /// was missed.
    fn apply(&mut self, pending: &Pending, file: &mut Vec<u8>) -> (bool, bool) {
        let whole = match self.mode {
            CutMode::Lost => Some(false),
            CutMode::Kept => Some(true),
            CutMode::Prefix if pending.index != self.upto => Some(pending.index < self.upto),
            // Most writes are whole or lost even when others are torn.
            CutMode::Subset => Some(self.chance.percent(50)),
            CutMode::Prefix | CutMode::Sectors | CutMode::Pages | CutMode::Bytes | CutMode::Garbage => {
                (!self.chance.percent(40)).then(|| self.chance.percent(50))
            }
        };
        match (whole, &pending.change) {
            (Some(false), _) => (false, true),
            (Some(true), change) => {
                change.apply(file);
                (true, false)
            }
            (None, Change::Truncate(_)) => {
                let happens = self.chance.percent(50);
                if happens {
                    pending.change.apply(file);
                }
                (happens, !happens)
            }
            (None, Change::Write { at, bytes }) => self.tear(*at, bytes, file),
        }
    }

    fn tear(&mut self, at: usize, bytes: &[u8], file: &mut Vec<u8>) -> (bool, bool) {
        let end = at + bytes.len();
        // The length may arrive without the data.
        if self.chance.percent(25) && file.len() < end {
            file.resize(end, 0);
        }
        if matches!(self.mode, CutMode::Bytes | CutMode::Prefix) {
            let kept = self.chance.index(bytes.len());
            overwrite(file, at, &bytes[..kept]);
            return (kept > 0, true);
        }
        let step = if self.mode == CutMode::Pages { PAGE } else { SECTOR };
        let (mut kept, mut missed) = (false, false);
        let mut from = at;
        while from < end {
            let to = (from / step + 1).saturating_mul(step).min(end);
            let left = match self.chance.index(3) {
                0 => Left::Old,
                1 if self.mode == CutMode::Garbage => Left::Garbage,
                _ => Left::New,
            };
            match left {
                Left::Old => {}
                Left::New => overwrite(file, from, &bytes[from - at..to - at]),
                Left::Garbage => {
                    let new = &bytes[from - at..to - at];
                    if file.len() < to {
                        file.resize(to, 0);
                    }
                    let garbage = self.chance.bytes(to - from);
                    for ((byte, new), garbage) in file[from..to].iter_mut().zip(new).zip(garbage) {
                        *byte = if *byte == *new { *new } else { garbage };
                    }
                }
            }
            kept |= left != Left::Old;
            missed |= left != Left::New;
            from = to;
        }
        (kept, missed)
    }
}
