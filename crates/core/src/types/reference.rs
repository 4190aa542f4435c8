//! Public references: the names of objects that clients see instead of ids. A reference reveals
//! neither order nor count nor worker.
//!
//! A reference is the id and a check word, mixed by a four-round Feistel network. The round
//! function is HMAC-SHA-256, which makes the network a pseudo-random permutation (Luby and
//! Rackoff). The key inverts it, so a lookup needs no index, and a guessed reference fails its
//! check before the store is asked.

use super::digest::MacKey;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The kind of the referenced object. The prefix makes a reference recognizable in any log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// `ch_…`
    Charge,
    /// `ac_…`
    Account,
    /// `tr_…`
    Transfer,
    /// `tx_…`
    Transaction,
    /// `en_…`
    Entry,
    /// `bk_…`
    Bulk,
    /// `re_…`
    Refund,
    /// `dl_…`
    DeadLetter,
    /// `po_…`
    Payout,
}

impl ReferenceKind {
    pub const fn prefix(self) -> &'static str {
        match self {
            ReferenceKind::Charge => "ch_",
            ReferenceKind::Account => "ac_",
            ReferenceKind::Transfer => "tr_",
            ReferenceKind::Transaction => "tx_",
            ReferenceKind::Entry => "en_",
            ReferenceKind::Bulk => "bk_",
            ReferenceKind::Refund => "re_",
            ReferenceKind::DeadLetter => "dl_",
            ReferenceKind::Payout => "po_",
        }
    }

    /// Whether a text has the form of a reference of this kind. The object need not exist.
    pub fn is_form_of(self, text: &str) -> bool {
        text.strip_prefix(self.prefix()).is_some_and(|digits| digits.len() == TEXT_LEN)
    }
}

/// A public reference as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference([u8; REFERENCE_LEN]);

impl Reference {
    pub fn as_str(&self) -> &str {
        // Prefix and digits are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reference({self})")
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 26;
const REFERENCE_LEN: usize = 3 + TEXT_LEN;
const ROUNDS: [u8; 4] = [1, 2, 3, 4];

/// Converts ids to references and back, under the instance's key. Clones share one cache.
#[derive(Clone, Debug)]
pub struct References {
    key: MacKey,
    recent: Arc<ReferenceCache>,
}

impl References {
    /// A converter under `key`, which must stay the same for the life of the store.
    pub fn new(key: MacKey) -> References {
        References { key, recent: Arc::default() }
    }

    pub fn seal(&self, kind: ReferenceKind, id: i64) -> Reference {
        self.recent.get_or_insert(kind, id, || self.mix(kind, id))
    }

    fn mix(&self, kind: ReferenceKind, id: i64) -> Reference {
        let (mut left, mut right) = (0, u64::from_be_bytes(id.to_be_bytes()));
        for round in ROUNDS {
            (left, right) = (right, left ^ self.round(kind, round, right));
        }
        let word = (u128::from(left) << 64) | u128::from(right);
        let digits = (0..26_u32).rev().map(|place| {
            let digit = usize::try_from((word >> place.saturating_mul(5)) & 31).unwrap_or(0);
            ALPHABET.get(digit).copied().unwrap_or(b'0')
        });
        let mut text = [b'0'; REFERENCE_LEN];
        for (symbol, written) in text.iter_mut().zip(kind.prefix().bytes().chain(digits)) {
            *symbol = written;
        }
        Reference(text)
    }

    /// The id behind `text`; `None` if this instance never created such a reference of this kind.
    pub fn open(&self, kind: ReferenceKind, text: &str) -> Option<i64> {
        let digits = text.strip_prefix(kind.prefix())?;
        if digits.len() != TEXT_LEN {
            return None;
        }
        let mut word: u128 = 0;
        for byte in digits.bytes() {
            let digit = ALPHABET.iter().position(|&known| known == byte)?;
            // The first of 26 digits carries only 3 bits, so overflow means that the text is not a
            // reference.
            word = word.checked_mul(32)?.checked_add(u128::try_from(digit).ok()?)?;
        }
        let mut left = u64::try_from(word >> 64).ok()?;
        let mut right = u64::try_from(word & u128::from(u64::MAX)).ok()?;
        for round in ROUNDS.into_iter().rev() {
            (left, right) = (right ^ self.round(kind, round, left), left);
        }
        (left == 0).then(|| i64::from_be_bytes(right.to_be_bytes()))
    }

    fn round(&self, kind: ReferenceKind, round: u8, half: u64) -> u64 {
        let tag =
            self.key.tag("counterfoil/reference", &[kind.prefix().as_bytes(), &[round], &half.to_be_bytes()]);
        let first: [u8; 8] = tag.as_bytes().first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(first)
    }
}

/// A direct-mapped cache of recent references. Every part of a payment's path asks for its
/// reference, every payment asks for its account's, and each computation takes four HMACs.
struct ReferenceCache(Vec<Mutex<Option<CachedReference>>>);

type CachedReference = (ReferenceKind, i64, Reference);

/// The number of slots, as a power of two.
const SLOT_BITS: u32 = 10;

impl Default for ReferenceCache {
    fn default() -> ReferenceCache {
        ReferenceCache((0..1_u32 << SLOT_BITS).map(|_| Mutex::default()).collect())
    }
}

impl ReferenceCache {
    /// The cached reference, or the result of `make`.
    fn get_or_insert(&self, kind: ReferenceKind, id: i64, make: impl FnOnce() -> Reference) -> Reference {
        // Locked slots are skipped instead of waited for.
        let Some(Ok(mut slot)) = self.0.get(slot_of(kind, id)).map(Mutex::try_lock) else { return make() };
        match *slot {
            Some((of, number, reference)) if (of, number) == (kind, id) => reference,
            _ => slot.insert((kind, id, make())).2,
        }
    }
}

/// Multiplicative hashing: ids grow with time, so their low bits are spread into the high bits.
fn slot_of(kind: ReferenceKind, id: i64) -> usize {
    let kinds = kind.prefix().bytes().fold(0, |sum: u64, byte| (sum << 8) | u64::from(byte));
    let mixed = (u64::from_be_bytes(id.to_be_bytes()) ^ kinds).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> (u64::BITS - SLOT_BITS)).unwrap_or(0)
}

impl fmt::Debug for ReferenceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReferenceCache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn references() -> References {
        References::new(MacKey::new(&[42; 32]))
    }

    /// Clients keep references; a different text for the same id would orphan them.
    const GOLDEN: &str = "ch_2a2rra1b39z01h2sj1dcy9s038";

    #[test]
    fn golden_reference() {
        assert_eq!(references().seal(ReferenceKind::Charge, 1).as_str(), GOLDEN);
        assert_eq!(references().open(ReferenceKind::Charge, GOLDEN), Some(1));
    }

    #[test]
    fn a_form_is_the_prefix_and_26_digits() {
        assert!(ReferenceKind::Charge.is_form_of(GOLDEN));
        assert!(!ReferenceKind::Account.is_form_of(GOLDEN));
        assert!(!ReferenceKind::Charge.is_form_of(&GOLDEN[..GOLDEN.len() - 1]));
        assert!(!ReferenceKind::Charge.is_form_of(&format!("{GOLDEN}0")));
    }

    /// The ids collide with earlier ids in the cache.
    #[test]
    fn cached_references_equal_computed_ones() {
        let kept = references();
        for _ in 0..2 {
            for id in 0..3_000 {
                for kind in [ReferenceKind::Charge, ReferenceKind::Account] {
                    assert_eq!(kept.clone().seal(kind, id), kept.mix(kind, id), "{kind:?} {id}");
                }
            }
        }
        let taken = kept.recent.0.iter().filter(|place| place.lock().unwrap().is_some()).count();
        assert!(taken > 1_000, "consecutive ids use {taken} slots");
    }

    #[test]
    fn a_locked_cache_slot_is_skipped() {
        let references = references();
        let held = references.recent.0[slot_of(ReferenceKind::Charge, 1)].lock().unwrap();
        assert_eq!(references.seal(ReferenceKind::Charge, 1).as_str(), GOLDEN);
        assert!(held.is_none());
    }

    #[test]
    fn references_hide_order_and_neighbourhood() {
        let sealed: Vec<String> =
            (0..2_000).map(|id| references().seal(ReferenceKind::Charge, id).to_string()).collect();
        let rising = sealed.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((850..1_150).contains(&rising), "{rising} of 1999 neighbours rise; chance gives about 1000");
    }

    #[test]
    fn guesses_and_other_kinds_open_nothing() {
        let references = references();
        let charge = references.seal(ReferenceKind::Charge, 77).to_string();
        assert_eq!(references.open(ReferenceKind::Account, &charge.replace("ch_", "ac_")), None);
        assert_eq!(References::new(MacKey::new(&[1; 32])).open(ReferenceKind::Charge, &charge), None);
        for text in ["", "ch_", "ch_zzzzzzzzzzzzzzzzzzzzzzzzzz", "ch_0000000000000000000000000é", "CH_1"] {
            assert_eq!(references.open(ReferenceKind::Charge, text), None, "{text}");
        }
        for at in 3..charge.len() {
            let mut other = charge.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(references.open(ReferenceKind::Charge, &String::from_utf8(other).unwrap()), None);
        }
    }

    proptest! {
        #[test]
        fn sealed_references_open(id: i64) {
            let sealed = references().seal(ReferenceKind::Charge, id);
            prop_assert_eq!(references().open(ReferenceKind::Charge, sealed.as_str()), Some(id));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = references().open(ReferenceKind::Charge, &text);
        }
    }
}
