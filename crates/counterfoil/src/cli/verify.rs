//! `verify`: checks every invariant of a store, one row per invariant.

use super::runtime::server_runtime;
use super::{Common, flag};
use crate::exit::Exit;
use crate::store_url::StoreUrl;
use clap::Args;
use comfy_table::{Cell, Color};
use counterfoil_engine::verify::{VerifyReport, verify};
use counterfoil_store_embedded::EmbeddedStore;
use counterfoil_store_postgres::{Options, PostgresStore};
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// Checks every invariant of a live or stopped store.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    common: Common,
    /// The store: a path, file:PATH or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Prints one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let flags = flag("store", "url", "--store", self.store.as_ref());
        let settings = self.common.settings(flags.into_iter().collect())?;
        let bar = if self.json || !std::io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            ProgressBar::new_spinner()
        };
        bar.enable_steady_tick(Duration::from_millis(120));
        let progress = |rows| bar.set_message(format!("{rows} rows looked at"));
        let checked = server_runtime(settings.server.threads)?.block_on(async {
            match StoreUrl::parse(settings.store.url.reveal())? {
                StoreUrl::Embedded(path) => {
                    let store = EmbeddedStore::open_read_only(&path).map_err(Exit::refused)?;
                    verify(&store, progress).await.map_err(Exit::failed)
                }
                StoreUrl::Postgres(url) => {
                    let opened = PostgresStore::open(url.reveal(), Options::default()).await;
                    verify(&opened.map_err(Exit::refused)?, progress).await.map_err(Exit::failed)
                }
                StoreUrl::Memory => Err(Exit::refused(
                    "a memory store lives in its own process only; there is nothing to verify",
                )),
            }
        });
        bar.finish_and_clear();
        let report = checked?;
        if self.json {
            println!("{}", json(&report));
        } else {
            println!("{}", table(&report));
        }
        Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn json(report: &VerifyReport) -> serde_json::Value {
    let findings: Vec<serde_json::Value> = report
        .findings()
        .into_iter()
        .map(|finding| {
            serde_json::json!({
                "invariant": finding.invariant,
                "meaning": finding.meaning,
                "looked_at": finding.looked_at,
                "violations": finding.violations,
                "examples": finding.examples,
            })
        })
        .collect();
    serde_json::json!({ "holds": report.holds(), "invariants": findings })
}

fn table(report: &VerifyReport) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["invariant", "looked at", "violations", "what it says"]);
    for finding in report.findings() {
        let colour = if finding.violations == 0 { Color::Green } else { Color::Red };
        let says = if finding.examples.is_empty() {
            finding.meaning.to_owned()
        } else {
            finding.examples.join("\n")
        };
        table.add_row([
            Cell::new(finding.invariant),
            Cell::new(finding.looked_at),
            Cell::new(finding.violations).fg(colour),
            Cell::new(says),
        ]);
    }
    table
}
