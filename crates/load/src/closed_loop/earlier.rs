//! Earlier requests of a connection that may be replayed, each with its first answer.

use crate::client::{Answer, Head};
use counterfoil_prng::Prng;

/// Bounds the memory of a run: some hundred bytes each, on every connection.
const KEPT_MAX: usize = 128;

pub(crate) struct Done {
    pub(crate) number: u64,
    head: Head,
    bytes: Vec<u8>,
}

impl Done {
    pub(crate) fn answer(&self) -> Answer<'_> {
        Answer { head: self.head, bytes: &self.bytes }
    }
}

#[derive(Default)]
pub(crate) struct Earlier(Vec<Done>);

impl Earlier {
    /// A full list replaces a random entry, so that old and young requests are replayed alike.
    pub(crate) fn keep(&mut self, number: u64, answer: &Answer<'_>, prng: &mut Prng) {
        if self.0.len() < KEPT_MAX {
            self.0.push(Done { number, head: answer.head, bytes: answer.bytes.to_vec() });
            return;
        }
        let place = &mut self.0[prng.index(KEPT_MAX)];
        place.number = number;
        place.head = answer.head;
        place.bytes.clear();
        place.bytes.extend_from_slice(answer.bytes);
    }

    pub(crate) fn pick(&self, prng: &mut Prng) -> Option<&Done> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(prng.index(self.0.len()))
    }
}
