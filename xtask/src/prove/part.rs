//! The parts of a campaign: command, share of the time, and location of the figures in the output.

use super::read::{counted, last_json, sum};
use crate::compile::root;
use crate::mutants::survivors::Run;

pub(super) struct Part {
    pub(super) name: &'static str,
    /// Share of the campaign's time, in thousandths.
    pub(super) share: u64,
    pub(super) program: Program,
    /// The command line for a number of seconds and a seed.
    pub(super) words: fn(u64, u64) -> String,
    pub(super) ends: Ends,
    /// Extracts figures from the output.
    pub(super) read: fn(&str) -> Vec<(&'static str, u64)>,
}

/// The program to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The executable of a package.
    Package(&'static str),
    /// `xtask crash` with the product's binary.
    Crash,
    /// `xtask`.
    Own,
}

/// How a part ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// By itself; running far longer counts as a hang and as a violation.
    ByItself,
    /// When its time is over; the results until then count.
    WithItsTime,
}

/// Time of one kill, with its share of the work after the last one.
const KILL_MS: u64 = 900;
const KILL_SHARED_MS: u64 = 1_800;
/// Number of fuzz targets; each runs for the given seconds.
const TARGETS: u64 = 12;

const SIMULATOR: Program = Program::Package("counterfoil-dst");

/// All parts, in order. The shares add up to a thousand.
pub(super) const PARTS: [Part; 17] = [
    Part {
        name: "simulator",
        share: 315,
        program: SIMULATOR,
        words: |seconds, seed| format!("--minutes {} --seed {seed}", minutes(seconds)),
        ends: Ends::ByItself,
        read: |text| read_simulator(text, "simulated charges", "seeds"),
    },
    Part {
        name: "seeds twice",
        share: 60,
        program: SIMULATOR,
        words: |seconds, seed| format!("--minutes {} --seed {} --twice", minutes(seconds), seed / 2),
        ends: Ends::ByItself,
        read: |text| read_simulator(text, "charges run twice", "seeds run twice"),
    },
    Part {
        name: "every fault once",
        share: 15,
        program: SIMULATOR,
        words: |_, _| "--exhaust singles".to_owned(),
        ends: Ends::WithItsTime,
        read: |text| read_faults(text, "single faults", "singles"),
    },
    Part {
        name: "every pair of faults",
        share: 150,
        program: SIMULATOR,
        words: |_, _| "--exhaust all-pairs".to_owned(),
        ends: Ends::WithItsTime,
        read: |text| read_faults(text, "pairs of faults", "pairs"),
    },
    Part {
        name: "planted bugs",
        share: 60,
        program: SIMULATOR,
        words: |_, _| "--bank --seeds 3000".to_owned(),
        ends: Ends::WithItsTime,
        read: read_bank,
    },
    Part {
        name: "state space",
        share: 20,
        program: Program::Package("counterfoil-model"),
        words: |_, _| "2".to_owned(),
        ends: Ends::WithItsTime,
        read: |text| vec![("states", sum(&lines(text, "workers"), "states"))],
    },
    Part {
        name: "power loss",
        share: 55,
        program: Program::Package("counterfoil-powerloss"),
        words: |_, seed| format!("--images 100000000 --seed {seed}"),
        ends: Ends::WithItsTime,
        read: |text| vec![("images", last(text, "images")), ("broken", last(text, "violations"))],
    },
    Part {
        name: "bad bytes",
        share: 55,
        program: Program::Package("counterfoil-fuzz"),
        words: |seconds, seed| format!("--seconds {} --seed {seed}", (seconds / TARGETS).max(1)),
        ends: Ends::ByItself,
        read: |text| vec![("mutated inputs", sum(text, "executions"))],
    },
    Part {
        name: "bad requests",
        share: 25,
        program: Program::Own,
        words: |_, seed| format!("hostile --seed {}", seed % 1_000_000),
        ends: Ends::ByItself,
        read: |text| vec![("hostile requests", counted(text, "requests").into_iter().max().unwrap_or(0))],
    },
    Part {
        name: "kills, embedded",
        share: 80,
        program: Program::Crash,
        words: |seconds, seed| format!("--kills {} --seed {seed} --json", kills(seconds, KILL_MS)),
        ends: Ends::ByItself,
        read: read_crash,
    },
    Part {
        name: "kills, PostgreSQL",
        share: 50,
        program: Program::Crash,
        words: |seconds, seed| {
            format!("--store postgres --kills {} --seed {seed} --json", kills(seconds, KILL_SHARED_MS))
        },
        ends: Ends::ByItself,
        read: read_crash,
    },
    Part {
        name: "matrix",
        share: 30,
        program: Program::Crash,
        words: |_, seed| format!("--matrix --seed {seed} --json"),
        ends: Ends::ByItself,
        read: |text| pick(text, &[("cells", "cells"), ("charges", "charges in cells"), ("parked", "parked")]),
    },
    Part {
        name: "stopped",
        share: 5,
        program: Program::Crash,
        words: |_, seed| format!("--stop --seed {seed} --json"),
        ends: Ends::ByItself,
        read: |text| pick(text, &[("stops", "stops")]),
    },
    Part {
        name: "disk full",
        share: 10,
        program: Program::Crash,
        words: |_, seed| format!("--disk --seed {seed} --json"),
        ends: Ends::ByItself,
        read: |text| pick(text, &[("full disks", "full disks")]),
    },
    Part {
        name: "clock moved",
        share: 15,
        program: Program::Crash,
        words: |_, seed| format!("--clock --kills 30 --seed {seed} --json"),
        ends: Ends::ByItself,
        read: |text| pick(text, &[("clock moves", "clock moves")]),
    },
    Part {
        name: "clock moved, PostgreSQL",
        share: 15,
        program: Program::Crash,
        words: |_, seed| format!("--store postgres --clock --kills 30 --seed {seed} --json"),
        ends: Ends::ByItself,
        read: |text| pick(text, &[("clock moves", "clock moves")]),
    },
    Part {
        name: "changed code",
        share: 40,
        program: Program::Own,
        words: |_, _| "mutants".to_owned(),
        ends: Ends::WithItsTime,
        read: |_| read_mutants(),
    },
];

fn minutes(seconds: u64) -> u64 {
    (seconds / 60).max(1)
}

fn kills(seconds: u64, each_ms: u64) -> u64 {
    (seconds * 1_000 / each_ms).max(10)
}

fn last(text: &str, word: &str) -> u64 {
    counted(text, word).last().copied().unwrap_or(0)
}

fn read_simulator(text: &str, charges: &'static str, seeds: &'static str) -> Vec<(&'static str, u64)> {
    pick(text, &[("charges", charges), ("seeds", seeds), ("broken", "broken"), ("differing", "differing")])
}

/// The lines that contain a word: one per completed item, without the final sum.
fn lines(text: &str, word: &str) -> String {
    text.lines().filter(|line| line.contains(word)).collect::<Vec<_>>().join("\n")
}

fn read_faults(text: &str, name: &'static str, word: &str) -> Vec<(&'static str, u64)> {
    let text = lines(text, "exclusive=");
    vec![(name, sum(&text, word)), ("broken", sum(&text, "broken"))]
}

/// The bank prints a line per bug as soon as its result is known: `name: Some(seeds)` or `name:
/// None`.
fn read_bank(text: &str) -> Vec<(&'static str, u64)> {
    let count = |end: fn(&str) -> bool| {
        let ends = text.lines().filter_map(|line| line.split_once(": ")).filter(|(_, result)| end(result));
        ends.count() as u64
    };
    let (found, missed) = (count(|result| result.starts_with("Some(")), count(|result| result == "None"));
    vec![("planted bugs found", found), ("planted bugs missed", missed)]
}

fn read_crash(text: &str) -> Vec<(&'static str, u64)> {
    let names =
        [("kills", "kills"), ("charges", "charges under kills"), ("operations", "operations under kills")];
    pick(text, &names)
}

/// Members of the last line of JSON, with their names in the report.
fn pick(text: &str, names: &[(&str, &'static str)]) -> Vec<(&'static str, u64)> {
    let line = last_json(text);
    names.iter().filter_map(|(there, here)| Some((*here, line[there.replace(' ', "_")].as_u64()?))).collect()
}

fn read_mutants() -> Vec<(&'static str, u64)> {
    let Ok(run) = Run::read(&root()) else { return Vec::new() };
    let figure = |count: usize| count as u64;
    vec![
        ("mutants caught", figure(run.caught) + figure(run.timeout)),
        ("mutants missed", figure(run.unexplained.len())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_are_the_whole_time() {
        assert_eq!(PARTS.iter().map(|part| part.share).sum::<u64>(), 1_000);
    }

    #[test]
    fn figures_are_found_in_what_is_printed() {
        let bank = "claim-twice: Some(3)\nheld-is-declined: None\n| bug | what is wrong | seeds |\n2 bugs, 1 not found";
        assert_eq!(read_bank(bank), [("planted bugs found", 1), ("planted bugs missed", 1)]);
        let line = "10 runs\n{\"seeds\":10,\"broken\":1,\"charges\":90,\"differing\":0}\n";
        assert_eq!(
            read_simulator(line, "simulated charges", "seeds"),
            [("simulated charges", 90), ("seeds", 10), ("broken", 1), ("differing", 0)]
        );
        assert_eq!(read_crash("nothing"), []);
        let pairs = "ideal exclusive=false 40 singles 1000 pairs 0 broken 7 ms\n\
            stripe exclusive=true 41 singles 1001 pairs 2 broken 7 ms\n81 singles, 2001 pairs, 2 broken";
        let [.., pair, _] = PARTS.first_chunk::<5>().unwrap();
        assert_eq!((pair.read)(pairs), [("pairs of faults", 2_001), ("broken", 2)]);
    }
}
