//! Reports: a table for people, one JSON object for programs.

use super::judge::{Verdict, WRONGS};
use super::order::{Operate, Order, SagaAction, What};
use comfy_table::{Cell, Color, Table, presets};
use serde_json::{Value, json};
use std::time::Duration;

/// Results of a campaign.
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) took: Duration,
    /// All counters by name; JSON replaces spaces by underscores.
    pub(super) figures: Vec<(&'static str, u64)>,
    pub(super) readiness: Vec<Duration>,
    pub(super) verdict: Verdict,
    /// Whether `counterfoil verify` found every invariant intact.
    pub(super) verified: bool,
    /// Whether the server exited with 0 after SIGTERM.
    pub(super) drained: bool,
}

/// Number of orders of each kind.
pub(super) fn asked(orders: &[Order]) -> Vec<(&'static str, u64)> {
    let count = |which: &dyn Fn(&Order) -> bool| orders.iter().filter(|order| which(order)).count() as u64;
    let of = |wanted: SagaAction| {
        count(&|order| matches!(order.what, What::Operate(Operate { action, .. }) if action == wanted))
    };
    vec![
        ("charges", count(&Order::is_charge)),
        ("charges refused", count(&|order| order.is_charge() && order.is_refused())),
        ("operations", count(&Order::is_operation)),
        ("operations refused", count(&|order| order.is_operation() && order.is_refused())),
        ("captures", of(SagaAction::Capture)),
        ("voids", of(SagaAction::Void)),
        ("refunds", of(SagaAction::Refund)),
        ("payouts", count(&Order::is_payout)),
        ("payouts refused", count(&|order| order.is_payout() && order.is_refused())),
        ("transfers", count(&Order::is_transfer)),
        ("transfers refused", count(&|order| order.is_transfer() && order.is_refused())),
        ("answered", count(&|order| order.first.is_some())),
    ]
}

impl Report {
    pub(super) fn holds(&self) -> bool {
        self.verdict.is_clean() && self.verified && self.drained
    }

    /// The percentile of the time until ready, in milliseconds.
    fn ready_ms(&self, percent: usize) -> u64 {
        let mut sorted = self.readiness.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).map_or(0, |took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn json(&self) -> Value {
        let mut value = json!({
            "holds": self.holds(), "seed": self.seed, "seconds": self.took.as_secs(),
            "ready_ms": { "p50": self.ready_ms(50), "p99": self.ready_ms(99), "max": self.ready_ms(100) },
            "verified": self.verified, "drained": self.drained, "examples": self.verdict.examples,
        });
        for (name, figure) in &self.figures {
            value[name.replace(' ', "_")] = json!(figure);
        }
        for (wrong, name) in WRONGS {
            value["wrong"][name] = json!(self.verdict.count(wrong));
        }
        value
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header(["what", "found"]);
        let figures = [("seed", self.seed), ("seconds", self.took.as_secs())];
        let ready = [
            ("ready again, p50 ms", self.ready_ms(50)),
            ("ready again, p99 ms", self.ready_ms(99)),
            ("ready again, max ms", self.ready_ms(100)),
        ];
        for (name, figure) in figures.iter().chain(&self.figures).chain(&ready) {
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

pub(super) fn colour(good: bool) -> Color {
    if good { Color::Green } else { Color::Red }
}

#[cfg(test)]
mod tests {
    use super::super::judge::Wrong;
    use super::*;

    fn report() -> Report {
        Report {
            seed: 1,
            took: Duration::from_secs(9),
            figures: vec![("kills", 3), ("database kills", 0)],
            readiness: [30, 10, 20].map(Duration::from_millis).to_vec(),
            verdict: Verdict::default(),
            verified: true,
            drained: true,
        }
    }

    #[test]
    fn a_clean_campaign_holds_and_reports_its_figures() {
        let report = report();
        assert!(report.holds());
        let json = report.json();
        assert_eq!(json["ready_ms"], json!({ "p50": 20, "p99": 30, "max": 30 }));
        assert_eq!((&json["kills"], &json["database_kills"]), (&json!(3), &json!(0)));
        assert_eq!(json["wrong"]["double effects"], 0);
        assert!(report.table().to_string().contains("ready again, p99 ms"));
    }

    #[test]
    fn any_violation_fails_the_campaign() {
        let mut wrong = report();
        wrong.verdict.note(Wrong::Lost, "key-1".into());
        let broken = [wrong, Report { verified: false, ..report() }, Report { drained: false, ..report() }];
        assert!(broken.iter().all(|report| !report.holds()));
    }
}
