//! Faults and the places where they strike. A run draws faults from the seed; a script lists
//! faults.

use crate::chance::Chance;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A kind of place for faults. Places of a kind are numbered in the order in which a run reaches
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A commit reaches the store.
    Commit,
    /// A read reaches the store.
    Read,
    /// A call leaves for the provider.
    Call,
    /// A lookup leaves for the provider.
    Lookup,
    /// A task of a process has been polled.
    Poll,
}

pub const SITES: [Site; 5] = [Site::Commit, Site::Read, Site::Call, Site::Lookup, Site::Poll];

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident $word:literal $site:ident),* $(,)?) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $name),* }

        pub const FAULTS: &[Fault] = &[$(Fault::$name),*];

        impl Fault {
            /// The name in scripts.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$name => $word),* }
            }

            /// The kind of place where the fault strikes.
            pub const fn site(self) -> Site {
                match self { $(Fault::$name => Site::$site),* }
            }
        }
    };
}

faults! {
    /// The commit is lost and reported as in doubt.
    DoubtBefore "doubt-before" Commit,
    /// The commit happens and is reported as in doubt.
    DoubtAfter "doubt-after" Commit,
    /// The commit is reported as in doubt and happens later.
    DoubtLate "doubt-late" Commit,
    /// The commit conflicts with another.
    Conflict "conflict" Commit,
    /// The store is overloaded.
    Throttle "throttle" Commit,
    /// The store cannot be reached.
    CommitUnavailable "commit-unavailable" Commit,
    /// The commit happens after a long delay.
    CommitSlow "commit-slow" Commit,
    /// The commit happens at once, but its answer is slow.
    AckSlow "ack-slow" Commit,
    /// The store cannot be read.
    ReadUnavailable "read-unavailable" Read,
    /// A read is slow.
    ReadSlow "read-slow" Read,
    /// The connection fails; nothing was sent.
    NotSent "not-sent" Call,
    /// Connecting is slow; then the request is sent.
    ConnectSlow "connect-slow" Call,
    /// The process sleeps during the connect, for longer than any lease.
    Asleep "asleep" Call,
    /// The connection is cut before the provider has the request.
    CutBefore "cut-before" Call,
    /// The connection is cut after the provider has executed.
    CutAfter "cut-after" Call,
    /// A server error before the execution.
    ErrorBefore "error-before" Call,
    /// A server error after the execution.
    ErrorAfter "error-after" Call,
    /// No answer and no execution.
    HangBefore "hang-before" Call,
    /// No answer after the execution.
    HangAfter "hang-after" Call,
    /// No answer; the request arrives as late as possible.
    Late "late" Call,
    /// The connection is cut, but the request arrives late.
    LateCut "late-cut" Call,
    /// The provider executes twice.
    Duplicate "duplicate" Call,
    /// Another amount is executed and reported.
    WrongAmount "wrong-amount" Call,
    /// Another currency is executed and reported.
    WrongCurrency "wrong-currency" Call,
    /// The answer names another payment.
    WrongPayment "wrong-payment" Call,
    /// A hold is executed and reported instead of a capture, or the reverse.
    WrongCapture "wrong-capture" Call,
    /// The answer cannot be read.
    Unreadable "unreadable" Call,
    /// Too many requests.
    Busy "busy" Call,
    /// The provider says that another call with this key is running.
    InProgress "in-progress" Call,
    /// The request is rejected, unless the provider has an answer to repeat under its key.
    Rejected "rejected" Call,
    /// The credentials are refused.
    Unauthorized "unauthorized" Call,
    /// The answer is slow.
    CallSlow "call-slow" Call,
    /// The lookup gets no answer.
    LookupTimeout "lookup-timeout" Lookup,
    /// The lookup gets a server error.
    LookupError "lookup-error" Lookup,
    /// The answer is slow.
    LookupSlow "lookup-slow" Lookup,
    /// The answer is as stale as the provider's promise allows.
    LookupStale "lookup-stale" Lookup,
    /// The process dies.
    Crash "crash" Poll,
}

impl Fault {
    pub fn parse(name: &str) -> Option<Fault> {
        FAULTS.iter().copied().find(|fault| fault.name() == name)
    }
}

impl Site {
    /// The name in scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Site::Commit => "commit",
            Site::Read => "read",
            Site::Call => "call",
            Site::Lookup => "lookup",
            Site::Poll => "poll",
        }
    }

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

/// A place: kind and number.
pub type Point = (Site, u64);

/// Odds of drawn faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odds {
    /// The possible faults.
    pub kinds: BTreeSet<Fault>,
    /// Odds per million places, in the order of [`SITES`].
    pub per_million: [u64; 5],
}

/// Decides at every place whether a fault strikes.
pub struct Faults {
    seed: u64,
    odds: Option<Odds>,
    /// The possible faults by site.
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

    /// Starts the phase with faults. Places are counted from here.
    pub fn start(&mut self) {
        self.quiet = false;
        self.counters = [0; 5];
    }

    /// Ends the phase with faults: no more are drawn. Listed faults are finite and may still
    /// strike.
    pub fn stop(&mut self) {
        self.quiet = self.odds.is_some();
        self.over = true;
    }

    /// The fault at the next place of a kind, if any, and the place's own random numbers.
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
            // A listed fault must meet the same delays as the drawn one.
            chance = Chance::at(&[self.seed, site.number(), number, 0]);
        }
        (fault, chance)
    }

    /// Whether the phase with faults is over.
    pub fn are_over(&self) -> bool {
        self.over
    }

    /// Places reached so far, by site.
    pub fn reached(&self) -> [u64; 5] {
        self.counters
    }

    /// The faults that have struck so far.
    pub fn struck(&self) -> &BTreeMap<Point, Fault> {
        &self.struck
    }
}
