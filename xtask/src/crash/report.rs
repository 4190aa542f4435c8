//! What a campaign found: a table for people, one JSON object for programs.

use super::judge::{Verdict, WRONGS};
use comfy_table::{Cell, Color, Table, presets};
use serde_json::{Value, json};
use std::time::Duration;

/// A campaign in figures.
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) kills: u64,
    pub(super) stops: u64,
    pub(super) database_kills: u64,
    pub(super) charges: u64,
    pub(super) transfers: u64,
    pub(super) transfers_refused: u64,
    pub(super) answered: u64,
    pub(super) effects: u64,
    pub(super) replays: u64,
    pub(super) readiness: Vec<Duration>,
    pub(super) verdict: Verdict,
    /// Whether `counterfoil verify` found every invariant intact.
    pub(super) verified: bool,
    /// Whether the server ended with 0 when asked to.
    pub(super) drained: bool,
}

impl Report {
    pub(super) fn holds(&self) -> bool {
        self.verdict.is_clean() && self.verified && self.drained
    }

    /// The time until ready that `percent` of all starts did not exceed, in milliseconds.
    fn ready_ms(&self, percent: usize) -> u64 {
        let mut sorted = self.readiness.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).map_or(0, |took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "holds": self.holds(), "seed": self.seed, "kills": self.kills, "stops": self.stops,
            "database_kills": self.database_kills, "charges": self.charges, "transfers": self.transfers,
            "transfers_refused": self.transfers_refused, "answered": self.answered, "effects": self.effects, "replays": self.replays,
            "ready_ms": { "p50": self.ready_ms(50), "p99": self.ready_ms(99), "max": self.ready_ms(100) },
            "verified": self.verified, "drained": self.drained, "examples": self.verdict.examples,
        });
        for (wrong, name) in WRONGS {
            value["wrong"][name] = json!(self.verdict.count(wrong));
        }
        value
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header(["what", "found"]);
        for (name, figure) in [
            ("seed", self.seed),
            ("kills", self.kills),
            ("stops", self.stops),
            ("kills of the database", self.database_kills),
            ("charges asked for", self.charges),
            ("transfers asked for", self.transfers),
            ("transfers refused for funds", self.transfers_refused),
            ("answered", self.answered),
            ("effects at the provider", self.effects),
            ("replays compared", self.replays),
            ("ready again, p50 ms", self.ready_ms(50)),
            ("ready again, p99 ms", self.ready_ms(99)),
            ("ready again, max ms", self.ready_ms(100)),
        ] {
            table.add_row([Cell::new(name), Cell::new(figure)]);
        }
        for (wrong, name) in WRONGS {
            let count = self.verdict.count(wrong);
            table.add_row([Cell::new(name), Cell::new(count).fg(colour(count == 0))]);
        }
        for (name, held) in [("invariants verified", self.verified), ("drained on SIGTERM", self.drained)] {
            let word = if held { "yes" } else { "NO" };
            table.add_row([Cell::new(name), Cell::new(word).fg(colour(held))]);
        }
        table
    }
}

fn colour(good: bool) -> Color {
    if good { Color::Green } else { Color::Red }
}

#[cfg(test)]
mod tests {
    use super::super::judge::Wrong;
    use super::*;

    fn report() -> Report {
        Report {
            seed: 1,
            kills: 3,
            stops: 0,
            database_kills: 0,
            charges: 10,
            transfers: 4,
            transfers_refused: 1,
            answered: 14,
            effects: 9,
            replays: 14,
            readiness: [30, 10, 20].map(Duration::from_millis).to_vec(),
            verdict: Verdict::default(),
            verified: true,
            drained: true,
        }
    }

    #[test]
    fn a_clean_campaign_holds_and_tells_its_figures() {
        let report = report();
        assert!(report.holds());
        let json = report.json();
        assert_eq!(json["ready_ms"], json!({ "p50": 20, "p99": 30, "max": 30 }));
        assert_eq!(json["wrong"]["double effects"], 0);
        assert!(report.table().to_string().contains("ready again, p99 ms"));
    }

    #[test]
    fn anything_wrong_fails_it() {
        let mut wrong = report();
        wrong.verdict.note(Wrong::Lost, "key-1".into());
        let broken = [wrong, Report { verified: false, ..report() }, Report { drained: false, ..report() }];
        assert!(broken.iter().all(|report| !report.holds()));
    }
}
