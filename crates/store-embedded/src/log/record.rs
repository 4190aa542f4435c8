//! One group in the write-ahead log: a head that describes the entry, then the entry.
//!
//! ```text
//! mark 4 | length of the entry 4 | lineage 8 | first position 8 | sets 8 | hash of the entry 8 | hash of the head 8
//! ```
//!
//! Numbers are little-endian, hashes are XXH3. A head is verified without its entry, so records
//! that the database has already are skipped unread.

use super::Lineage;
use xxhash_rust::xxh3::xxh3_64;

const MARK: u32 = u32::from_le_bytes(*b"Cfr1");

/// The head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) lineage: Lineage,
    /// The position of the first set.
    pub(crate) first: u64,
    /// The number of sets, which is the number of positions.
    pub(crate) sets: u64,
    /// Bytes of the entry.
    pub(crate) length: u32,
    hash: u64,
}

impl Record {
    pub(crate) const HEAD: usize = 48;

    /// The head of `entry`; none if the entry is longer than 4 GiB.
    pub(crate) fn of(lineage: Lineage, first: u64, sets: u64, entry: &[u8]) -> Option<Record> {
        let length = u32::try_from(entry.len()).ok()?;
        Some(Record { lineage, first, sets, length, hash: xxh3_64(entry) })
    }

    /// The position of the last set.
    pub(crate) fn last(&self) -> u64 {
        self.first.saturating_add(self.sets).saturating_sub(1)
    }

    /// Whether `entry` is whole and belongs to this head.
    pub(crate) fn is_of(&self, entry: &[u8]) -> bool {
        xxh3_64(entry) == self.hash
    }

    pub(crate) fn encode(&self) -> [u8; Record::HEAD] {
        let mut head = [0; Record::HEAD];
        let parts: [&[u8]; 6] = [
            &MARK.to_le_bytes(),
            &self.length.to_le_bytes(),
            &self.lineage.0.to_le_bytes(),
            &self.first.to_le_bytes(),
            &self.sets.to_le_bytes(),
            &self.hash.to_le_bytes(),
        ];
        let (fields, check) = head.split_at_mut(Record::HEAD - 8);
        for (place, byte) in fields.iter_mut().zip(parts.into_iter().flatten()) {
            *place = *byte;
        }
        check.copy_from_slice(&xxh3_64(fields).to_le_bytes());
        head
    }

    /// Reads a head; none if the bytes are not a valid head.
    pub(crate) fn decode(head: &[u8; Record::HEAD]) -> Option<Record> {
        let (fields, check) = head.split_last_chunk::<8>()?;
        let (mark, rest) = fields.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (lineage, rest) = rest.split_first_chunk::<8>()?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let (sets, rest) = rest.split_first_chunk::<8>()?;
        let hash = rest.first_chunk::<8>()?;
        if u32::from_le_bytes(*mark) != MARK || xxh3_64(fields) != u64::from_le_bytes(*check) {
            return None;
        }
        Some(Record {
            lineage: Lineage(i64::from_le_bytes(*lineage)),
            first: u64::from_le_bytes(*first),
            sets: u64::from_le_bytes(*sets),
            length: u32::from_le_bytes(*length),
            hash: u64::from_le_bytes(*hash),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record::of(Lineage(-7), 12, 3, b"a script").unwrap()
    }

    #[test]
    fn a_head_with_any_byte_changed_is_not_accepted() {
        let whole = record().encode();
        for place in 0..whole.len() {
            let mut damaged = whole;
            damaged[place] ^= 1;
            assert_eq!(Record::decode(&damaged), None, "byte {place}");
        }
        assert_eq!(Record::decode(&[0; Record::HEAD]), None);
    }

    #[test]
    fn a_head_that_was_encoded_is_decoded() {
        let read = Record::decode(&record().encode()).unwrap();
        assert_eq!(read, record());
        assert_eq!((read.last(), read.is_of(b"a script"), read.is_of(b"a Script")), (14, true, false));
    }

    #[test]
    fn the_encoding_is_pinned() {
        let head = record().encode();
        let (plain, hashes) = head.split_at(32);
        let seven_below_zero = [0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let numbers = [12, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(plain, [&b"Cfr1"[..], &[8, 0, 0, 0], &seven_below_zero, &numbers].concat());
        assert_eq!(hashes, 0xaaef_5847_d682_4448_d1fe_3cb8_cc3d_9738_u128.to_be_bytes());
    }
}
