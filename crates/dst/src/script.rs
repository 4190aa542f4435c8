//! Scripts: a run as a value, with the settings, events and faults. A script is drawn from a seed
//! or read from text, so that a failing run can be written down and kept.

use crate::faults::{Fault, Odds, Point, Site};
use counterfoil_gateway::ProviderProfile;
use std::collections::BTreeMap;
use std::fmt;

/// The script of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub setup: Setup,
    /// Events in order of time.
    pub events: Vec<Event>,
    /// The source of faults.
    pub faults: FaultSource,
}

/// The source of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultSource {
    /// Drawn at every place with these odds.
    Drawn(Odds),
    /// Listed by place.
    Listed(BTreeMap<Point, Fault>),
}

/// The settings of a run. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Seed of everything that the script does not list.
    pub seed: u64,
    pub profile: &'static ProviderProfile,
    pub processes: u64,
    /// Whether the store is exclusive. Only for one process.
    pub exclusive: bool,
    pub lease: u64,
    pub ceiling: u64,
    pub heartbeat: u64,
    /// Longest wait for another request with the same key.
    pub wait: u64,
    pub replay: u64,
    pub tombstone: u64,
    /// Calls without effect before a charge fails.
    pub attempts: u64,
    /// Poll interval of recovery.
    pub poll: u64,
    /// Failures that open the breaker.
    pub breaker: u64,
    /// Longest ordinary delay of a message.
    pub latency: u64,
    pub in_order: bool,
    /// Speeds of the processes' local clocks, in thousandths.
    pub paces: [u64; 3],
    /// Number of events before the faults begin. Each waits for the answer to the previous one.
    pub quiet: u64,
    /// Whether operators resolve dead letters after the faults: 1 or 0.
    pub operators: u64,
    /// End of the phase with faults.
    pub end: u64,
}

/// An action at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: u64,
    pub action: Action,
}

/// An action of a client or of the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client sends a request to a process.
    Ask {
        process: u64,
        ask: Ask,
        /// The client hangs up after this long.
        patience: Option<u64>,
    },
    /// A process dies and comes back.
    Crash {
        process: u64,
        /// Time until the process comes back.
        back: u64,
    },
    /// A process is paused for a while.
    Pause { process: u64, ms: u64 },
    /// A process shuts down gracefully and comes back.
    Drain { process: u64 },
    /// The provider sends a hint about a payment with pending work.
    Hint {
        process: u64,
        /// Index of the payment from the oldest, modulo their number.
        number: u64,
    },
    /// All processes are paused for a while, and later events are postponed by as much.
    Freeze(u64),
    /// The store cannot be reached for a while.
    StoreDown(u64),
    /// The provider cannot be reached for a while.
    ProviderDown(u64),
}

/// A client's request. The numbers of key and body determine its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    Charge {
        tenant: u64,
        key: u64,
        body: u64,
    },
    /// A ledger command, `keep` in scripts.
    Ledger {
        key: u64,
        body: u64,
    },
    /// A capture, a void or a refund of the charge under the key `key / 16`.
    Operate {
        tenant: u64,
        key: u64,
        body: u64,
    },
    Payout {
        tenant: u64,
        key: u64,
        body: u64,
    },
    /// A read of a balance, a charge or a payout.
    Look {
        number: u64,
    },
    /// An operator resolves a dead letter.
    Resolve {
        tenant: u64,
        /// Index of the dead letter from the newest, modulo their number.
        letter: u64,
        /// The resolution: 0 adopt, 1 void, 2 fail, 3 retry.
        how: u64,
    },
}

impl Setup {
    /// The default settings.
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
            writeln!(f, "at {} {}", event.at, event.action)?;
        }
        match &self.faults {
            FaultSource::Listed(listed) => {
                for ((site, number), fault) in listed {
                    writeln!(f, "fault {site} {number} {}", fault.name())?;
                }
            }
            FaultSource::Drawn(odds) => {
                let kinds: Vec<&str> = odds.kinds.iter().map(|kind| kind.name()).collect();
                writeln!(f, "# faults drawn: {:?} per million of {}", odds.per_million, kinds.join(" "))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Ask { process, ask, patience } => {
                match ask {
                    Ask::Charge { tenant, key, body } => write!(f, "charge {process} {tenant} {key} {body}")?,
                    Ask::Ledger { key, body } => write!(f, "keep {process} {key} {body}")?,
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
            Action::Crash { process, back } => write!(f, "crash {process} {back}"),
            Action::Pause { process, ms } => write!(f, "pause {process} {ms}"),
            Action::Drain { process } => write!(f, "drain {process}"),
            Action::Hint { process, number } => write!(f, "hint {process} {number}"),
            Action::Freeze(ms) => write!(f, "freeze {ms}"),
            Action::StoreDown(ms) => write!(f, "store-down {ms}"),
            Action::ProviderDown(ms) => write!(f, "provider-down {ms}"),
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
            faults: FaultSource::Listed(BTreeMap::new()),
        };
        let mut listed = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            script.read(&words, &mut listed).ok_or_else(|| format!("cannot read the line `{line}`"))?;
        }
        script.events.sort_by_key(|event| event.at);
        script.faults = FaultSource::Listed(listed);
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
                self.events.push(Event { at: at.parse().ok()?, action: Action::read(rest)? });
            }
            _ => return None,
        }
        Some(())
    }
}

impl Action {
    fn read(words: &[&str]) -> Option<Action> {
        let (name, numbers) = words.split_first()?;
        let numbers: Vec<u64> = numbers.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(match (*name, numbers.as_slice()) {
            ("charge", [process, tenant, key, body, patience @ ..]) => Action::Ask {
                process: *process,
                ask: Ask::Charge { tenant: *tenant, key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("keep", [process, key, body, patience @ ..]) => Action::Ask {
                process: *process,
                ask: Ask::Ledger { key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("operate", [process, tenant, key, body, patience @ ..]) => Action::Ask {
                process: *process,
                ask: Ask::Operate { tenant: *tenant, key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("payout", [process, tenant, key, body, patience @ ..]) => Action::Ask {
                process: *process,
                ask: Ask::Payout { tenant: *tenant, key: *key, body: *body },
                patience: patience.first().copied(),
            },
            ("look", [process, number, patience @ ..]) => Action::Ask {
                process: *process,
                ask: Ask::Look { number: *number },
                patience: patience.first().copied(),
            },
            ("resolve", [process, tenant, letter, how, patience @ ..]) => Action::Ask {
                process: *process,
                ask: Ask::Resolve { tenant: *tenant, letter: *letter, how: *how },
                patience: patience.first().copied(),
            },
            ("crash", [process, back]) => Action::Crash { process: *process, back: *back },
            ("pause", [process, ms]) => Action::Pause { process: *process, ms: *ms },
            ("drain", [process]) => Action::Drain { process: *process },
            ("hint", [process, number]) => Action::Hint { process: *process, number: *number },
            ("freeze", [ms]) => Action::Freeze(*ms),
            ("store-down", [ms]) => Action::StoreDown(*ms),
            ("provider-down", [ms]) => Action::ProviderDown(*ms),
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
        let ask = |ask, patience| Action::Ask { process: 1, ask, patience };
        let whats = [
            ask(Ask::Charge { tenant: 1, key: 2, body: 0 }, None),
            ask(Ask::Ledger { key: 7, body: 1 }, Some(30)),
            ask(Ask::Look { number: 3 }, None),
            ask(Ask::Resolve { tenant: 1, letter: 2, how: 3 }, None),
            ask(Ask::Operate { tenant: 2, key: 1_603, body: 0 }, Some(9)),
            ask(Ask::Payout { tenant: 2, key: 5, body: 1 }, None),
            Action::Crash { process: 0, back: 500 },
            Action::Pause { process: 2, ms: 90_000 },
            Action::Drain { process: 1 },
            Action::Hint { process: 2, number: 7 },
            Action::Freeze(1),
            Action::StoreDown(2),
            Action::ProviderDown(3),
        ];
        let events = (0..).zip(whats).map(|(at, action)| Event { at, action }).collect();
        let faults = [((Site::Commit, 3), Fault::DoubtAfter), ((Site::Poll, 77), Fault::Crash)];
        let script = Script {
            setup: Setup::plain(9, profile),
            events,
            faults: FaultSource::Listed(faults.into_iter().collect()),
        };
        assert_eq!(Script::parse(&script.to_string()), Ok(script));
        assert!(Script::parse("at 5 nonsense").unwrap_err().contains("nonsense"));
    }
}
