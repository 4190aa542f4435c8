//! `migrate`: upgrades the tables of a database. Servers of the previous release may keep serving
//! meanwhile.

use super::runtime::client_runtime;
use super::{Common, flag};
use crate::exit::Exit;
use crate::store_url::StoreUrl;
use clap::Args;
use counterfoil_store_postgres::Reach;
use std::process::ExitCode;

/// Upgrades the tables of a database to this release. Running the command again changes nothing.
#[derive(Args, Debug)]
pub(crate) struct Migrate {
    #[command(flatten)]
    common: Common,
    /// The database: postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Also removes the parts that only servers of older releases need. Stop all of those servers
    /// first.
    #[arg(long)]
    contract: bool,
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Migrate {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let flags = flag("store", "url", "--store", self.store.as_ref());
        let settings = self.common.settings(flags.into_iter().collect())?;
        let url = match StoreUrl::parse(settings.store.url.reveal())? {
            StoreUrl::Postgres(url) => url,
            StoreUrl::Embedded(_) | StoreUrl::Memory => {
                return Err(Exit::refused(
                    "an embedded store is upgraded when it is opened; give --store postgres://USER@HOST/DATABASE",
                ));
            }
        };
        let reach = if self.contract { Reach::Newest } else { Reach::Needed };
        let done = client_runtime()?
            .block_on(counterfoil_store_postgres::migrate(url.reveal(), reach))
            .map_err(Exit::refused)?;
        if self.json {
            let (steps, left) = (&done.steps, &done.left);
            println!(
                "{}",
                serde_json::json!({ "from": done.from, "to": done.to, "steps": steps, "left": left })
            );
        } else if done.steps.is_empty() {
            println!("schema {} is up to date; nothing was changed", done.to);
        } else {
            println!("schema {} -> {}: {}", done.from, done.to, done.steps.join(", "));
        }
        if !self.json && !done.left.is_empty() {
            let left = done.left.join(", ");
            println!(
                "left until no server of an older release runs: {left}; then run `counterfoil migrate --contract`"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}
