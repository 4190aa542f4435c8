//! Faults, and where they strike. A run draws them from its seed; a script lists them, place by place.

use crate::chance::Chance;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A kind of place where something can go wrong. Places of one kind are numbered in the order they are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A commit reaches the store.
    Commit,
    /// A read reaches the store.
    Read,
    /// A call leaves for the provider.
    Call,
    /// A question leaves for the provider.
    Lookup,
    /// A task of a process has run and waits.
    Poll,
}

/// Every kind of place.
pub const SITES: [Site; 5] = [Site::Commit, Site::Read, Site::Call, Site::Lookup, Site::Poll];

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident $word:literal $site:ident),* $(,)?) => {
        /// What goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $name),* }

        /// Every fault.
        pub const FAULTS: &[Fault] = &[$(Fault::$name),*];

        impl Fault {
            /// The word in scripts.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$name => $word),* }
            }

            /// Where it strikes.
            pub const fn site(self) -> Site {
                match self { $(Fault::$name => Site::$site),* }
            }
        }
    };
}

faults! {
    /// The commit is lost, and the caller is not told.
    DoubtBefore "doubt-before" Commit,
    /// The commit happens, and the caller is not told.
    DoubtAfter "doubt-after" Commit,
    /// The caller is told nothing, and the commit happens later.
    DoubtLate "doubt-late" Commit,
    /// Somebody was in the way.
    Conflict "conflict" Commit,
    /// Too much is asked.
    Throttle "throttle" Commit,
    /// The store cannot be reached.
    CommitUnavailable "commit-unavailable" Commit,
    /// It takes long, and happens at the end of it.
    CommitSlow "commit-slow" Commit,
    /// It happens at once, and the answer takes long.
    AckSlow "ack-slow" Commit,
    /// The store cannot be read.
    ReadUnavailable "read-unavailable" Read,
    /// A read takes long.
    ReadSlow "read-slow" Read,
    /// No connection; nothing left.
    NotSent "not-sent" Call,
    /// The connection takes a while; then the request leaves.
    ConnectSlow "connect-slow" Call,
    /// The process falls asleep while it connects, for longer than any lease.
    Asleep "asleep" Call,
    /// The connection is cut before the provider has the request.
    CutBefore "cut-before" Call,
    /// The connection is cut after the provider executed.
    CutAfter "cut-after" Call,
    /// A server error, nothing executed.
    ErrorBefore "error-before" Call,
    /// A server error after executing.
    ErrorAfter "error-after" Call,
    /// No answer, nothing executed.
    HangBefore "hang-before" Call,
    /// No answer after executing.
    HangAfter "hang-after" Call,
    /// No answer; the request arrives as late as it may.
    Late "late" Call,
    /// The connection is cut; the request arrives late all the same.
    LateCut "late-cut" Call,
    /// The provider executes twice.
    Duplicate "duplicate" Call,
    /// Another amount is executed and told.
    WrongAmount "wrong-amount" Call,
    /// Another currency is executed and told.
    WrongCurrency "wrong-currency" Call,
    /// The answer names another payment.
    WrongPayment "wrong-payment" Call,
    /// A hold is executed and told for a capture, or the other way round.
    WrongCapture "wrong-capture" Call,
    /// The answer cannot be read.
    Unreadable "unreadable" Call,
    /// Too many requests.
    Busy "busy" Call,
    /// Another call with this key is said to be under way.
    InProgress "in-progress" Call,
    /// The request is refused as such, unless the provider has an answer to repeat under its key.
    Rejected "rejected" Call,
    /// The credentials are refused.
    Unauthorized "unauthorized" Call,
    /// The answer takes long, but comes.
    CallSlow "call-slow" Call,
    /// The question gets no answer.
    LookupTimeout "lookup-timeout" Lookup,
    /// The question gets a server error.
    LookupError "lookup-error" Lookup,
    /// The answer takes long.
    LookupSlow "lookup-slow" Lookup,
    /// The answer is as old as it may be.
    LookupStale "lookup-stale" Lookup,
    /// The process dies here.
    Crash "crash" Poll,
}

impl Fault {
    /// The fault of that name.
    pub fn parse(name: &str) -> Option<Fault> {
        FAULTS.iter().copied().find(|fault| fault.name() == name)
    }
}

impl Site {
    /// The word in scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Site::Commit => "commit",
            Site::Read => "read",
            Site::Call => "call",
            Site::Lookup => "lookup",
            Site::Poll => "poll",
        }
    }

    /// The site of that name.
    pub fn parse(name: &str) -> Option<Site> {
        SITES.into_iter().find(|site| site.name() == name)
    }

    const fn place(self) -> usize {
        match self {
            Site::Commit => 0,
            Site::Read => 1,
            Site::Call => 2,
            Site::Lookup => 3,
            Site::Poll => 4,
        }
    }

    fn number(self) -> u64 {
        u64::try_from(self.place()).unwrap_or(0)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place: its kind and its number.
pub type Point = (Site, u64);

/// How faults are drawn: which kinds, and how often in a million places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odds {
    /// The kinds that may happen at all.
    pub kinds: BTreeSet<Fault>,
    /// By site, in the order of [`SITES`].
    pub per_million: [u64; 5],
}

/// Decides at every place.
pub struct Faults {
    seed: u64,
    odds: Option<Odds>,
    /// The kinds that may happen, by site.
    kinds: [Vec<Fault>; 5],
    listed: BTreeMap<Point, Fault>,
    counters: [u64; 5],
    struck: BTreeMap<Point, Fault>,
    quiet: bool,
    over: bool,
}

impl Faults {
    /// Faults drawn from a seed.
    pub fn drawn(seed: u64, odds: Odds) -> Faults {
        let at = |site: Site| odds.kinds.iter().copied().filter(|kind| kind.site() == site).collect();
        let kinds = SITES.map(at);
        Faults { odds: Some(odds), kinds, ..Faults::listed(seed, BTreeMap::new()) }
    }

    /// Faults as listed.
    pub fn listed(seed: u64, listed: BTreeMap<Point, Fault>) -> Faults {
        let kinds = SITES.map(|_| Vec::new());
        Faults {
            seed,
            odds: None,
            kinds,
            listed,
            counters: [0; 5],
            struck: BTreeMap::new(),
            quiet: true,
            over: false,
        }
    }

    /// Faults may strike from now on; places are counted from here.
    pub fn start(&mut self) {
        self.quiet = false;
        self.counters = [0; 5];
    }

    /// No more faults are drawn from now on. Listed ones are finite and may still strike.
    pub fn stop(&mut self) {
        self.quiet = self.odds.is_some();
        self.over = true;
    }

    /// What strikes at the next place of a kind, and the chance that belongs to it.
    pub fn at(&mut self, site: Site) -> (Option<Fault>, Chance) {
        let number = self.counters.get(site.place()).copied().unwrap_or(0);
        if let Some(counter) = self.counters.get_mut(site.place()) {
            *counter = number.saturating_add(1);
        }
        let mut chance = Chance::at(&[self.seed, site.number(), number, 0]);
        if self.quiet {
            return (None, chance);
        }
        let fault = match &self.odds {
            None => self.listed.get(&(site, number)).copied(),
            Some(odds) => {
                let mut draw = Chance::at(&[self.seed, 77, site.number(), number, 0]);
                let often = odds.per_million.get(site.place()).copied().unwrap_or(0);
                let kinds = self.kinds.get(site.place()).map_or(&[][..], Vec::as_slice);
                match kinds.first() {
                    Some(first) if draw.per_million(often) => Some(draw.pick(kinds, *first)),
                    _ => None,
                }
            }
        };
        if let Some(fault) = fault {
            self.struck.insert((site, number), fault);
            // So that a listed fault finds the same delays as the drawn one.
            chance = Chance::at(&[self.seed, site.number(), number, 0]);
        }
        (fault, chance)
    }

    /// Whether the phase of faults is over.
    pub fn are_over(&self) -> bool {
        self.over
    }

    /// Places reached so far, by site.
    pub fn reached(&self) -> [u64; 5] {
        self.counters
    }

    /// What has struck so far.
    pub fn struck(&self) -> &BTreeMap<Point, Fault> {
        &self.struck
    }
}
