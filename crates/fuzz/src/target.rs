//! A target: one input language, and the promise for every input.

use crate::mutate::prng_of;
use std::fmt::Display;

/// Checks an input: panics on a broken promise, otherwise classifies the answer.
pub type Check = Box<dyn FnMut(&[u8]) -> Kind>;

/// An input language, and the promise for every input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// The initial corpus.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of the language, inserted whole.
    pub words: &'static [&'static str],
    /// Limit of an input's length in bytes.
    pub length_max: usize,
    /// Inputs of a short run: a second or two of a debug build.
    pub short: u64,
    /// Creates the check with all it needs.
    pub start: fn() -> Check,
}

/// A class of answers. The corpus keeps inputs that reached a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(u64);

impl Kind {
    /// The class of an answer's text, without its digits and without quotations of the input in
    /// backquotes.
    pub fn of(text: impl Display) -> Kind {
        let text = text.to_string();
        let mut text: String = text.split('`').step_by(2).collect();
        text.retain(|character| !character.is_ascii_digit());
        text.truncate(text.floor_char_boundary(200));
        Kind(prng_of(text.as_bytes()).next_u64())
    }
}

/// Converts texts into a corpus.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
