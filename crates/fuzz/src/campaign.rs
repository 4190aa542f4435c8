//! A campaign: one target, one seed, input after input.

use crate::mutate::mutate;
use crate::target::{Check, Kind, Target};
use counterfoil_prng::Prng;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Limit of the corpus; a full corpus replaces an old input by a new one.
const CORPUS_MAX: usize = 8_192;
/// Attempts to shrink a failing input.
const SHRINKS_MAX: usize = 20_000;

/// A running target.
pub struct Campaign {
    target: Target,
    check: Check,
    prng: Prng,
    corpus: Vec<Vec<u8>>,
    seen: HashSet<Kind>,
    executions: u64,
}

/// An input that breaks a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    pub target: &'static str,
    /// The input, as small as it could be made.
    pub input: Vec<u8>,
    /// The panic's message.
    pub message: String,
}

impl Campaign {
    /// Begins with the target's seeds.
    pub fn new(target: Target, seed: u64) -> Result<Campaign, Failure> {
        let mut campaign = Campaign {
            target,
            check: (target.start)(),
            prng: Prng::new(seed),
            corpus: vec![Vec::new()],
            seen: HashSet::new(),
            executions: 0,
        };
        for input in (target.seeds)() {
            campaign.execute(&input)?;
            campaign.corpus.push(input);
        }
        Ok(campaign)
    }

    /// Makes one more input and checks it.
    pub fn step(&mut self) -> Result<(), Failure> {
        let pick = |prng: &mut Prng, corpus: &[Vec<u8>]| prng.index(corpus.len());
        let (one, other) = (pick(&mut self.prng, &self.corpus), pick(&mut self.prng, &self.corpus));
        let (one, other) = (self.corpus.get(one), self.corpus.get(other));
        let (one, other) = (one.map_or(&[][..], Vec::as_slice), other.map_or(&[][..], Vec::as_slice));
        let input = mutate(one, other, self.target.words, self.target.length_max, &mut self.prng);
        if self.execute(&input)? {
            if self.corpus.len() < CORPUS_MAX {
                self.corpus.push(input);
            } else {
                let place = self.prng.index(self.corpus.len());
                if let Some(old) = self.corpus.get_mut(place) {
                    *old = input;
                }
            }
        }
        Ok(())
    }

    /// Checks an input; returns whether its class of answers is new.
    pub fn execute(&mut self, input: &[u8]) -> Result<bool, Failure> {
        self.executions = self.executions.saturating_add(1);
        match attempt(&mut self.check, input) {
            Ok(kind) => Ok(self.seen.insert(kind)),
            Err(message) => {
                let (input, message) = self.shrink(input.to_vec(), message);
                Err(Failure { target: self.target.name, input, message })
            }
        }
    }

    /// Inputs checked so far.
    pub const fn executions(&self) -> u64 {
        self.executions
    }

    pub const fn corpus_size(&self) -> usize {
        self.corpus.len()
    }

    /// Classes of answers seen.
    pub fn kinds(&self) -> usize {
        self.seen.len()
    }

    /// Cuts pieces out while the rest still fails. A check that panicked is created again.
    fn shrink(&mut self, mut input: Vec<u8>, mut message: String) -> (Vec<u8>, String) {
        self.check = (self.target.start)();
        let mut piece = input.len().div_ceil(2);
        let mut tries = 0;
        while piece > 0 && tries < SHRINKS_MAX {
            let (mut at, mut cut) = (0, false);
            while at < input.len() && tries < SHRINKS_MAX {
                tries += 1;
                let mut smaller = input.clone();
                smaller.drain(at..at.saturating_add(piece).min(input.len()));
                match attempt(&mut self.check, &smaller) {
                    Ok(_) => at = at.saturating_add(piece),
                    Err(said) => {
                        self.check = (self.target.start)();
                        (input, message, cut) = (smaller, said, true);
                    }
                }
            }
            piece = if piece == 1 && cut { 1 } else { piece / 2 };
        }
        (input, message)
    }
}

fn attempt(check: &mut Check, input: &[u8]) -> Result<Kind, String> {
    catch_unwind(AssertUnwindSafe(|| check(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// The text of a regression test.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.target, self.message)?;
        write!(f, "holds(\"{}\", b\"{}\");", self.target, self.input.escape_ascii())
    }
}

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Campaign")
            .field("target", &self.target.name)
            .field("executions", &self.executions)
            .field("corpus", &self.corpus.len())
            .finish_non_exhaustive()
    }
}
