//! Results of a whole campaign, as a table and as a JSON object.

use super::run::Done;
use comfy_table::{Cell, Color, Table, presets};
use serde_json::{Value, json};
use std::time::Duration;

/// Promised figures, by name.
const GOALS: [(&str, u64); 9] = [
    ("simulated charges", 25_000_000),
    ("planted bugs found", 64),
    ("single faults", 1),
    ("pairs of faults", 1),
    ("kills", 1_000),
    ("charges under kills", 200_000),
    ("hostile requests", 10_000),
    ("seeds run twice", 10_000),
    ("mutants caught", 1),
];

pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) took: Duration,
    pub(super) done: Vec<Done>,
}

impl Report {
    pub(super) fn holds(&self) -> bool {
        self.done.iter().all(|part| part.end.is_good())
    }

    /// The largest figure with this name. Parts are not added up, because a single run must reach
    /// the goal.
    fn figure(&self, name: &str) -> u64 {
        let all = self.done.iter().flat_map(|part| &part.figures).filter(|(known, _)| *known == name);
        all.map(|(_, figure)| *figure).max().unwrap_or(0)
    }

    pub(super) fn json(&self) -> Value {
        let parts = self.done.iter().map(|part| {
            let mut value =
                json!({ "name": part.name, "end": part.end.name(), "seconds": part.took.as_secs() });
            for (name, figure) in &part.figures {
                value["figures"][name] = json!(figure);
            }
            value
        });
        let goals = GOALS.map(|(name, goal)| {
            let figure = self.figure(name);
            json!({ "name": name, "figure": figure, "goal": goal, "reached": figure >= goal })
        });
        json!({
            "holds": self.holds(), "seed": self.seed, "seconds": self.took.as_secs(),
            "parts": parts.collect::<Vec<_>>(), "goals": goals,
        })
    }

    pub(super) fn tables(&self) -> String {
        let mut parts = Table::new();
        parts.load_style(presets::UTF8_FULL_CONDENSED).set_header(["part", "seconds", "figures", "verdict"]);
        for part in &self.done {
            let figures: Vec<String> =
                part.figures.iter().map(|(name, figure)| format!("{figure} {name}")).collect();
            let colour = if part.end.is_good() { Color::Green } else { Color::Red };
            parts.add_row([
                Cell::new(part.name),
                Cell::new(part.took.as_secs()),
                Cell::new(figures.join("\n")),
                Cell::new(part.end.name()).fg(colour),
            ]);
        }
        let mut goals = Table::new();
        goals.load_style(presets::UTF8_FULL_CONDENSED).set_header(["figure", "reached", "goal"]);
        for (name, goal) in GOALS {
            let figure = self.figure(name);
            let colour = if figure >= goal { Color::Green } else { Color::Yellow };
            goals.add_row([Cell::new(name), Cell::new(figure).fg(colour), Cell::new(goal)]);
        }
        let verdict = if self.holds() { "everything holds" } else { "SOMETHING DOES NOT HOLD" };
        format!("{parts}\n{goals}\nseed {}, {} s: {verdict}", self.seed, self.took.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::End;
    use super::*;

    fn part(end: End, charges: u64) -> Done {
        let figures = vec![("simulated charges", charges)];
        Done { name: "simulator", took: Duration::ZERO, end, figures, log: "x".into() }
    }

    #[test]
    fn one_violation_fails_the_campaign_and_goals_are_reported() {
        let report = |end| Report {
            seed: 1,
            took: Duration::from_secs(9),
            done: vec![part(End::Holds, 7), part(end, 30_000_000)],
        };
        assert!(report(End::Stopped).holds());
        for end in [End::Violated, End::Failed] {
            assert!(!report(end).holds());
            assert!(report(end).tables().contains("SOMETHING DOES NOT HOLD"));
        }
        let goal = &report(End::Holds).json()["goals"][0];
        assert_eq!((&goal["figure"], &goal["reached"]), (&json!(30_000_000), &json!(true)));
        assert_eq!(report(End::Holds).json()["goals"][1]["reached"], false);
    }
}
