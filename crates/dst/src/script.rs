//! A run as a value: the settings, what clients and the nemesis do and when, and where faults strike. It is drawn
//! from a seed, or read from text, so that a run that failed can be written down and kept.

use crate::faults::{Fault, Odds, Point, Site};
use counterfoil_gateway::ProviderProfile;
use std::collections::BTreeMap;
use std::fmt;

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Settings.
    pub setup: Setup,
    /// What happens, in order of time.
    pub events: Vec<Event>,
    /// Where faults come from.
    pub faults: Source,
}

/// Where faults come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Drawn at every place.
    Drawn(Odds),
    /// Listed.
    Listed(BTreeMap<Point, Fault>),
}

/// The settings of a run. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Chance of everything that is not listed.
    pub seed: u64,
    /// The provider's profile.
    pub profile: &'static ProviderProfile,
    /// How many processes there are.
    pub processes: u64,
    /// Whether the store says that nobody else can write it; only for one process.
    pub exclusive: bool,
    /// Lease of a claim.
    pub lease: u64,
    /// Its ceiling.
    pub ceiling: u64,
    /// How often it is renewed.
    pub heartbeat: u64,
    /// How long a twin waits.
    pub wait: u64,
    /// Replay window.
    pub replay: u64,
    /// Tombstone.
    pub tombstone: u64,
    /// Calls without effect before a charge fails.
    pub attempts: u64,
    /// How often recovery looks.
    pub poll: u64,
    /// Failures that open the breaker.
    pub breaker: u64,
    /// Longest ordinary delay of a message.
    pub latency: u64,
    /// Whether the oldest task always runs first.
    pub in_order: bool,
    /// Paces of the processes' own clocks, in thousandths.
    pub paces: [u64; 3],
    /// So many events happen before the faults begin, one after another, each with its answer.
    pub quiet: u64,
    /// Whether operators settle dead letters when the faults are over: 1, or 0.
    pub operators: u64,
    /// When faults stop.
    pub end: u64,
}

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: u64,
    /// What.
    pub what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A client asks a process for something, and hangs up after a while if told so.
    Ask {
        /// Which process.
        process: u64,
        /// What for.
        ask: Ask,
        /// When it hangs up.
        patience: Option<u64>,
    },
    /// A process dies and comes back.
    Crash {
        /// Which.
        process: u64,
        /// After how long it comes back.
        back: u64,
    },
    /// A process is not run for a while.
    Pause {
        /// Which.
        process: u64,
        /// How long.
        ms: u64,
    },
    /// A process is asked to stop, does, and comes back.
    Drain {
        /// Which.
        process: u64,
    },
    /// The provider hints at a payment that something is still to be done for.
    Hint {
        /// To whom.
        process: u64,
        /// Which, counted from the oldest and round again.
        number: u64,
    },
    /// No process is run for a while, and what follows is put off by as much.
    Freeze(u64),
    /// The store answers nobody for a while.
    StoreDown(u64),
    /// The provider cannot be reached for a while.
    ProviderDown(u64),
}

/// What a client can ask for. What a key stands for follows from its number and the body's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// A charge.
    Charge {
        /// Whose.
        tenant: u64,
        /// Under which key.
        key: u64,
        /// Which of the bodies tried under it.
        body: u64,
    },
    /// An act of the ledger.
    Keep {
        /// Under which key.
        key: u64,
        /// Which of the bodies tried under it.
        body: u64,
    },
    /// A capture, a void or a refund of the charge under the key `key / 16`.
    Operate {
        /// Whose.
        tenant: u64,
        /// Under which key.
        key: u64,
        /// Which of the bodies tried under it.
        body: u64,
    },
    /// A payout.
    Payout {
        /// Whose.
        tenant: u64,
        /// Under which key.
        key: u64,
        /// Which of the bodies tried under it.
        body: u64,
    },
    /// A look at the ledger, a charge or a key.
    Look {
        /// At what.
        number: u64,
    },
    /// An operator settles a dead letter.
    Resolve {
        /// Whose.
        tenant: u64,
        /// Which, counted from the newest and round again.
        letter: u64,
        /// How: adopt, void, fail or retry.
        how: u64,
    },
}

impl Setup {
    /// The ordinary settings.
    pub fn plain(seed: u64, profile: &'static ProviderProfile) -> Setup {
        Setup {
            seed,
            profile,
            processes: 2,
            exclusive: false,
            lease: 30_000,
            ceiling: 180_000,
            heartbeat: 10_000,
            wait: 5_000,
            replay: 86_400_000,
            tombstone: 86_400_000,
            attempts: 3,
            poll: 500,
            breaker: 1_000,
            latency: 3,
            in_order: true,
            paces: [1_000; 3],
            quiet: 0,
            operators: 0,
            end: 30_000,
        }
    }

    fn numbers(&mut self) -> [(&'static str, &mut u64); 18] {
        let [first, second, third] = &mut self.paces;
        [
            ("seed", &mut self.seed),
            ("processes", &mut self.processes),
            ("lease", &mut self.lease),
            ("ceiling", &mut self.ceiling),
            ("heartbeat", &mut self.heartbeat),
            ("wait", &mut self.wait),
            ("replay", &mut self.replay),
            ("tombstone", &mut self.tombstone),
            ("attempts", &mut self.attempts),
            ("poll", &mut self.poll),
            ("breaker", &mut self.breaker),
            ("latency", &mut self.latency),
            ("pace0", first),
            ("pace1", second),
            ("pace2", third),
            ("quiet", &mut self.quiet),
            ("operators", &mut self.operators),
            ("end", &mut self.end),
        ]
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "set profile {}", self.setup.profile.name)?;
        writeln!(f, "set exclusive {}", self.setup.exclusive)?;
        writeln!(f, "set in_order {}", self.setup.in_order)?;
        let mut setup = self.setup;
        for (name, value) in setup.numbers() {
            writeln!(f, "set {name} {value}")?;
        }
        for event in &self.events {
            writeln!(f, "at {} {}", event.at, event.what)?;
        }
        match &self.faults {
            Source::Listed(listed) => {
                for ((site, number), fault) in listed {
                    writeln!(f, "fault {site} {number} {}", fault.name())?;
                }
            }
            Source::Drawn(odds) => {
                let kinds: Vec<&str> = odds.kinds.iter().map(|kind| kind.name()).collect();
                writeln!(f, "# faults drawn: {:?} per million of {}", odds.per_million, kinds.join(" "))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Ask { process, ask, patience } => {
                match ask {
                    Ask::Charge { tenant, key, body } => write!(f, "charge {process} {tenant} {key} {body}")?,
                    Ask::Keep { key, body } => write!(f, "keep {process} {key} {body}")?,
                    Ask::Operate { tenant, key, body } => {
                        write!(f, "operate {process} {tenant} {key} {body}")?;
                    }
                    Ask::Payout { tenant, key, body } => write!(f, "payout {process} {tenant} {key} {body}")?,
                    Ask::Look { number } => write!(f, "look {process} {number}")?,
                    Ask::Resolve { tenant, letter, how } => {
                        write!(f, "resolve {process} {tenant} {letter} {how}")?;
                    }
                }
                patience.map_or(Ok(()), |ms| write!(f, " {ms}"))
            }
            What::Crash { process, back } => write!(f, "crash {process} {back}"),
            What::Pause { process, ms } => write!(f, "pause {process} {ms}"),
            What::Drain { process } => write!(f, "drain {process}"),
            What::Hint { process, number } => write!(f, "hint {process} {number}"),
            What::Freeze(ms) => write!(f, "freeze {ms}"),
            What::StoreDown(ms) => write!(f, "store-down {ms}"),
            What::ProviderDown(ms) => write!(f, "provider-down {ms}"),
        }
    }
}

impl Script {
    /// Reads a script; the error names the line.
    pub fn parse(text: &str) -> Result<Script, String> {
        let plain = ProviderProfile::named("ideal").ok_or("there is no ideal profile")?;
        let mut script = Script {
            setup: Setup::plain(0, plain),
            events: Vec::new(),
            faults: Source::Listed(BTreeMap::new()),
        };
        let mut listed = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            script.read(&words, &mut listed).ok_or_else(|| format!("cannot read the line `{line}`"))?;
        }
        script.events.sort_by_key(|event| event.at);
        script.faults = Source::Listed(listed);
        Ok(script)
    }

    fn read(&mut self, words: &[&str], listed: &mut BTreeMap<Point, Fault>) -> Option<()> {
        match *words {
            ["set", "profile", name] => self.setup.profile = ProviderProfile::named(name)?,
            ["set", "exclusive", word] => self.setup.exclusive = word.parse().ok()?,
            ["set", "in_order", word] => self.setup.in_order = word.parse().ok()?,
            ["set", name, value] => {
                let (_, place) = self.setup.numbers().into_iter().find(|(known, _)| *known == name)?;
                *place = value.parse().ok()?;
            }
            ["fault", site, number, fault] => {
                listed.insert((Site::parse(site)?, number.parse().ok()?), Fault::parse(fault)?);
            }
            ["at", at, ref rest @ ..] => {
                self.events.push(Event { at: at.parse().ok()?, what: What::read(rest)? });
            }
            _ => return None,
        }
        Some(())
    }
}

impl What {
    fn read(words: &[&str]) -> Option<What> {
        let (name, numbers) = words.split_first()?;
        let numbers: Vec<u64> = numbers.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(match (*name, numbers.as_slice()) {
            ("charge", [process, tenant, key, body, patience @ ..]) => What::Ask {
                process: *process,
                ask: Ask::Charge { tenant: *tenant, key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("keep", [process, key, body, patience @ ..]) => What::Ask {
                process: *process,
                ask: Ask::Keep { key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("operate", [process, tenant, key, body, patience @ ..]) => What::Ask {
                process: *process,
                ask: Ask::Operate { tenant: *tenant, key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("payout", [process, tenant, key, body, patience @ ..]) => What::Ask {
                process: *process,
                ask: Ask::Payout { tenant: *tenant, key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("look", [process, number, patience @ ..]) => What::Ask {
                process: *process,
                ask: Ask::Look { number: *number },
                patience: patience.first().copied(),
            },
            ("resolve", [process, tenant, letter, how, patience @ ..]) => What::Ask {
                process: *process,
                ask: Ask::Resolve { tenant: *tenant, letter: *letter, how: *how },
                patience: patience.first().copied(),
            },
            ("crash", [process, back]) => What::Crash { process: *process, back: *back },
            ("pause", [process, ms]) => What::Pause { process: *process, ms: *ms },
            ("drain", [process]) => What::Drain { process: *process },
            ("hint", [process, number]) => What::Hint { process: *process, number: *number },
            ("freeze", [ms]) => What::Freeze(*ms),
            ("store-down", [ms]) => What::StoreDown(*ms),
            ("provider-down", [ms]) => What::ProviderDown(*ms),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_back_as_it_was_written() {
        let profile = ProviderProfile::named("adyen").unwrap();
        let ask = |ask, patience| What::Ask { process: 1, ask, patience };
        let whats = [
            ask(Ask::Charge { tenant: 1, key: 2, body: 0 }, None),
            ask(Ask::Keep { key: 7, body: 1 }, Some(30)),
            ask(Ask::Look { number: 3 }, None),
            ask(Ask::Resolve { tenant: 1, letter: 2, how: 3 }, None),
            ask(Ask::Operate { tenant: 2, key: 1_603, body: 0 }, Some(9)),
            ask(Ask::Payout { tenant: 2, key: 5, body: 1 }, None),
            What::Crash { process: 0, back: 500 },
            What::Pause { process: 2, ms: 90_000 },
            What::Drain { process: 1 },
            What::Hint { process: 2, number: 7 },
            What::Freeze(1),
            What::StoreDown(2),
            What::ProviderDown(3),
        ];
        let events = (0..).zip(whats).map(|(at, what)| Event { at, what }).collect();
        let faults = [((Site::Commit, 3), Fault::DoubtAfter), ((Site::Poll, 77), Fault::Crash)];
        let script = Script {
            setup: Setup::plain(9, profile),
            events,
            faults: Source::Listed(faults.into_iter().collect()),
        };
        assert_eq!(Script::parse(&script.to_string()), Ok(script));
        assert!(Script::parse("at 5 nonsense").unwrap_err().contains("nonsense"));
    }
}
