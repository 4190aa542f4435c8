//! A target: one input language, and what must hold for every input.

use crate::mutate::prng_of;
use std::fmt::Display;

/// Judges one input: panics where a promise is broken, else says which kind of answer the input got.
pub type Check = Box<dyn FnMut(&[u8]) -> Kind>;

/// One input language, and what must hold for every input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the language, put in whole.
    pub words: &'static [&'static str],
    /// Bytes an input may have.
    pub length_max: usize,
    /// Inputs of a short run: a second or two of a debug build.
    pub short: u64,
    /// Makes the check with all it needs.
    pub start: fn() -> Check,
}

/// A kind of answer. Inputs that got one not seen before are kept and mutated further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(u64);

impl Kind {
    /// The kind an answer's text is of: numbers and what it repeats from the input, in backquotes, do not count.
    pub fn of(text: impl Display) -> Kind {
        let text = text.to_string();
        let mut text: String = text.split('`').step_by(2).collect();
        text.retain(|character| !character.is_ascii_digit());
        text.truncate(text.floor_char_boundary(200));
        Kind(prng_of(text.as_bytes()).next_u64())
    }
}

/// Seeds from texts.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
