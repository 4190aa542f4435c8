//! Builds the directory as a power cut may leave it: everything safe is there, of everything on its way any part.
//!
//! Damage stays within what was being written: bytes beside a write in the same sector are not hurt. SQLite counts on
//! that (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`), as it does on every Unix. Bytes that are written
//! again as they are are not hurt either.

use crate::chance::Chance;
use crate::disk::{Disk, File, Pending, What, lay};
use std::collections::BTreeMap;

/// Files by name.
pub type Image = BTreeMap<String, Vec<u8>>;

const SECTOR: usize = 512;
const PAGE: usize = 4_096;

/// What a cut leaves of the writes on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing.
    Lost,
    /// All: as if only the process had died.
    Kept,
    /// Those up to some moment, the last of them torn.
    Prefix,
    /// Any of them.
    Subset,
    /// Any of their sectors.
    Sectors,
    /// Any of their pages.
    Pages,
    /// The first bytes of each, cut anywhere.
    Bytes,
    /// Any of their sectors, and garbage in some.
    Garbage,
}

impl Mood {
    /// Every mood.
    pub const ALL: [Mood; 8] = [
        Mood::Lost,
        Mood::Kept,
        Mood::Prefix,
        Mood::Subset,
        Mood::Sectors,
        Mood::Pages,
        Mood::Bytes,
        Mood::Garbage,
    ];
}

/// What kind of damage an image has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// A write is partly there.
    pub torn: bool,
    /// A write is there and an earlier one is not.
    pub reordered: bool,
    /// Something is not there.
    pub lost: bool,
}

/// The directory after a cut.
pub fn cut(disk: &Disk, mood: Mood, chance: &mut Chance) -> (Image, Damage) {
    let mut names = disk.names.clone();
    let mut damage = Damage::default();
    // Each name has come as far as it has, whatever its neighbours have.
    let mut stopped: Vec<&str> = Vec::new();
    for (name, target) in &disk.renames {
        let arrives = mood == Mood::Kept || mood != Mood::Lost && chance.percent(50);
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
    let mut knife = Knife { mood, upto: pick(indices, chance), first_lost: None, damage, chance };
    let image = names
        .into_iter()
        .filter_map(|(name, inode)| Some((name, knife.content(disk.files.get(inode)?))))
        .collect();
    (image, knife.damage)
}

/// One of the operations, if there is any.
fn pick(indices: impl Iterator<Item = usize>, chance: &mut Chance) -> usize {
    let indices: Vec<usize> = indices.collect();
    indices.get(chance.index(indices.len())).copied().unwrap_or(0)
}

struct Knife<'a> {
    mood: Mood,
    /// The last operation of a prefix.
    upto: usize,
    /// The first write of which something is missing.
    first_lost: Option<usize>,
    damage: Damage,
    chance: &'a mut Chance,
}

/// What is left of one piece of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Old,
    New,
    Garbage,
}

impl Knife<'_> {
    fn content(&mut self, file: &File) -> Vec<u8> {
        let mut bytes = file.safe.clone();
        for pending in &file.pending {
            let (kept, missed) = self.fall(pending, &mut bytes);
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

    /// Lays over `file` what is left of a change; whether something of it is there, and whether something is not.
    fn fall(&mut self, pending: &Pending, file: &mut Vec<u8>) -> (bool, bool) {
        let whole = match self.mood {
            Mood::Lost => Some(false),
            Mood::Kept => Some(true),
            Mood::Prefix if pending.index != self.upto => Some(pending.index < self.upto),
            // Most writes are whole or lost even when some are torn.
            Mood::Subset => Some(self.chance.percent(50)),
            Mood::Prefix | Mood::Sectors | Mood::Pages | Mood::Bytes | Mood::Garbage => {
                (!self.chance.percent(40)).then(|| self.chance.percent(50))
            }
        };
        match (whole, &pending.what) {
            (Some(false), _) => (false, true),
            (Some(true), what) => {
                what.apply(file);
                (true, false)
            }
            (None, What::Truncate(_)) => {
                let happens = self.chance.percent(50);
                if happens {
                    pending.what.apply(file);
                }
                (happens, !happens)
            }
            (None, What::Write { at, bytes }) => self.tear(*at, bytes, file),
        }
    }

    fn tear(&mut self, at: usize, bytes: &[u8], file: &mut Vec<u8>) -> (bool, bool) {
        let end = at + bytes.len();
        // The length may arrive without the data.
        if self.chance.percent(25) && file.len() < end {
            file.resize(end, 0);
        }
        if matches!(self.mood, Mood::Bytes | Mood::Prefix) {
            let kept = self.chance.index(bytes.len());
            lay(file, at, &bytes[..kept]);
            return (kept > 0, true);
        }
        let step = if self.mood == Mood::Pages { PAGE } else { SECTOR };
        let (mut kept, mut missed) = (false, false);
        let mut from = at;
        while from < end {
            let to = (from / step + 1).saturating_mul(step).min(end);
            let left = match self.chance.below(3) {
                0 => Left::Old,
                1 if self.mood == Mood::Garbage => Left::Garbage,
                _ => Left::New,
            };
            match left {
                Left::Old => {}
                Left::New => lay(file, from, &bytes[from - at..to - at]),
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
