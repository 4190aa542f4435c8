//! Results of all cells together.

use super::super::judge::{EXAMPLES_MAX, Verdict, WRONGS};
use super::super::report::colour;
use super::cell::{Found, KILLS};
use super::contract::CONTRACTS;
use super::fault::FAULTS;
use comfy_table::{Cell, Color, Table, presets};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub(in super::super) struct Matrix {
    pub(super) seed: u64,
    pub(super) took: Duration,
    pub(super) found: Vec<Found>,
}

impl Matrix {
    pub(in super::super) fn holds(&self) -> bool {
        !self.found.is_empty() && self.found.iter().all(Found::holds)
    }

    pub(in super::super) fn examples(&self) -> impl Iterator<Item = String> {
        self.found.iter().flat_map(|cell| {
            cell.verdict
                .examples
                .iter()
                .map(|example| format!("{} × {}: {example}", cell.profile, cell.fault))
        })
    }

    /// Sums of all counters over the cells.
    fn figures(&self) -> Vec<(String, u64)> {
        let cells = self.found.len() as u64;
        let mut sums: Vec<(String, u64)> = vec![
            ("seed".into(), self.seed),
            ("seconds".into(), self.took.as_secs()),
            ("cells".into(), cells),
            ("kills".into(), cells * KILLS),
        ];
        for cell in &self.found {
            for (name, figure) in &cell.figures {
                match sums.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum += figure,
                    None => sums.push(((*name).to_owned(), *figure)),
                }
            }
        }
        let parked = self.found.iter().flat_map(|cell| cell.parked.values()).sum();
        let repeated = self.found.iter().map(|cell| cell.repeated).sum();
        sums.extend([("parked".into(), parked), ("executed twice by the provider".into(), repeated)]);
        sums
    }

    fn verdict(&self) -> BTreeMap<&'static str, u64> {
        let count = |wrong| self.found.iter().map(|cell| Verdict::count(&cell.verdict, wrong)).sum();
        WRONGS.iter().map(|(wrong, name)| (*name, count(*wrong))).collect()
    }

    pub(in super::super) fn json(&self) -> Value {
        let mut value = json!({ "holds": self.holds(), "wrong": self.verdict() });
        for (name, figure) in self.figures() {
            value[name.replace(' ', "_")] = json!(figure);
        }
        let reasons = self.found.iter().flat_map(|cell| &cell.parked);
        for (reason, count) in reasons {
            let sum = value["reasons"][reason].as_u64().unwrap_or(0) + count;
            value["reasons"][reason] = json!(sum);
        }
        value["unsound"] = json!(self.found.iter().filter(|cell| !cell.sound).count());
        value["examples"] = json!(self.examples().take(EXAMPLES_MAX).collect::<Vec<_>>());
        value
    }

    /// The grid (number of parked payments per cell), then the sums.
    pub(in super::super) fn tables(&self) -> String {
        let mut grid = Table::new();
        grid.load_style(presets::UTF8_FULL_CONDENSED);
        grid.set_header(["parked of"].into_iter().chain(FAULTS.map(|fault| fault.name)));
        for contract in &CONTRACTS {
            let cells = FAULTS.map(|fault| {
                let of = |cell: &&Found| cell.profile == contract.profile && cell.fault == fault.name;
                self.found.iter().find(of).map_or(Cell::new("–").fg(Color::DarkGrey), shown)
            });
            grid.add_row([Cell::new(contract.profile)].into_iter().chain(cells));
        }
        let mut sums = Table::new();
        sums.load_style(presets::UTF8_FULL_CONDENSED).set_header(["what", "found"]);
        for (name, figure) in self.figures() {
            sums.add_row([Cell::new(name), Cell::new(figure)]);
        }
        for (name, count) in self.verdict() {
            sums.add_row([Cell::new(name), Cell::new(count).fg(colour(count == 0))]);
        }
        format!("{grid}\n{sums}")
    }
}

fn shown(cell: &Found) -> Cell {
    let parked: u64 = cell.parked.values().sum();
    let orders = cell.figures.iter().filter(|(name, _)| matches!(*name, "charges" | "operations"));
    let orders: u64 = orders.map(|(_, count)| count).sum();
    let text = if cell.holds() { format!("{parked}/{orders}") } else { "FAILED".to_owned() };
    Cell::new(text).fg(colour(cell.holds()))
}
