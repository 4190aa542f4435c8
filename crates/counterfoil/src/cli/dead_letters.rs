//! `dead-letters`: work that needs a human, through the server that holds the store or on the store
//! itself.

use super::runtime::client_runtime;
use super::tenant::random_text;
use super::{Common, flag, peers};
use crate::admin::{self, AdminReply, AdminRequest, DeadLetterRow};
use crate::exit::Exit;
use crate::store_url::StoreUrl;
use clap::{ArgGroup, Args, Subcommand};
use comfy_table::{Cell, Color, Table};
use serde_json::Value;
use std::process::ExitCode;

/// Lists, shows and resolves work that needs a human.
#[derive(Args, Debug)]
pub(crate) struct DeadLetters {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
    /// The store: a path, file:PATH or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// The payment provider, needed to resolve without a running server: stripe+https://KEY@host.
    #[arg(long, value_name = "URL", global = true)]
    gateway: Option<String>,
    /// A peer, needed like --gateway: NAME=counterfoil+https://KEY@host/ACCOUNT. May be repeated.
    #[arg(long, value_name = "NAME=URL", global = true)]
    peer: Vec<String>,
    /// Prints JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the dead letters of all tenants.
    List,
    /// Shows a dead letter with its evidence.
    Show {
        /// The dead letter's id, `dl_…`.
        id: String,
    },
    /// Settles a dead letter by your decision.
    Resolve(Resolve),
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("resolution").required(true)))]
struct Resolve {
    /// The dead letter's id, `dl_…`.
    id: String,
    /// Adopts the provider's answer, even if it differs from the order.
    #[arg(long, group = "resolution")]
    adopt: bool,
    /// Voids the amount held at the provider, then marks the payment failed.
    #[arg(long, group = "resolution")]
    void: bool,
    /// Marks the payment failed for this reason, because nothing happened.
    #[arg(long, value_name = "REASON", group = "resolution")]
    fail: Option<String>,
    /// Continues as if the payment had not been parked.
    #[arg(long, group = "resolution")]
    retry: bool,
}

impl Resolve {
    fn request(self) -> Result<AdminRequest, Exit> {
        let resolution = match (self.adopt, self.void, &self.fail) {
            (true, ..) => "adopt",
            (_, true, _) => "void",
            (.., Some(_)) => "fail",
            (.., None) => "retry",
        };
        let key = format!("operator_{}", random_text(20)?);
        Ok(AdminRequest::Resolve { id: self.id, resolution: resolution.to_owned(), reason: self.fail, key })
    }
}

impl DeadLetters {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let flags = [
            flag("store", "url", "--store", self.store.as_ref()),
            flag("gateway", "url", "--gateway", self.gateway.as_ref()),
        ];
        let flags = flags.into_iter().flatten().chain(peers(&self.peer)).collect();
        let settings = self.common.settings(flags)?;
        let store = StoreUrl::parse(settings.store.url.reveal())?;
        let (request, whole) = match self.command {
            Command::List => (AdminRequest::DeadLetters, false),
            Command::Show { id } => (AdminRequest::DeadLetter { id }, true),
            Command::Resolve(resolve) => (resolve.request()?, false),
        };
        let reply = client_runtime()?.block_on(admin::run(&settings, &store, request))?;
        if self.json {
            println!("{}", serde_json::to_value(&reply).unwrap_or_default());
        } else {
            print(&reply, whole);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(reply: &AdminReply, whole: bool) {
    match reply {
        AdminReply::Letters { letters, .. } if letters.is_empty() => println!("nothing needs a human"),
        AdminReply::Letters { letters, .. } if whole => {
            for row in letters {
                println!("{}", sheet(row));
            }
        }
        AdminReply::Letters { letters, more } => {
            println!("{}", table(letters));
            if *more {
                println!("There are more; resolve some of these and look again.");
            }
            println!("next: counterfoil dead-letters show ID");
        }
        AdminReply::Resolved { resolved } => {
            let word = |name: &str| plain(resolved.get(name));
            let shown = |name: &str| resolved.get(name).filter(|one| !one.is_null());
            let (what, payment) = match shown("charge") {
                Some(charge) => ("charge", Some(charge)),
                None => ("payout", shown("payout")),
            };
            let (id, status) =
                (payment.and_then(|one| one.get("id")), payment.and_then(|one| one.get("status")));
            println!(
                "{} is resolved: {}. The {what} {} is {}.",
                word("dead_letter"),
                word("resolution"),
                plain(id),
                plain(status)
            );
        }
        // Replies to other commands; refusals return earlier.
        AdminReply::Tenants { .. } | AdminReply::Key { .. } | AdminReply::Refused { .. } => {}
    }
}

fn table(letters: &[DeadLetterRow]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["dead letter", "tenant", "flow", "reason", "money at risk", "since", "suggestions"]);
    for DeadLetterRow { tenant, letter } in letters {
        let word = |name: &str| plain(letter.get(name));
        table.add_row([
            Cell::new(word("id")),
            Cell::new(tenant),
            Cell::new(word("flow")),
            Cell::new(word("reason")).fg(Color::Yellow),
            Cell::new(format!("{} {}", word("money_at_risk"), word("currency"))).fg(Color::Red),
            Cell::new(word("created_at")),
            Cell::new(word("suggestions")).fg(Color::Green),
        ]);
    }
    table
}

/// All data of a dead letter, one row per field.
fn sheet(row: &DeadLetterRow) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.add_row([Cell::new("tenant"), Cell::new(&row.tenant)]);
    for (name, value) in row.letter.as_object().into_iter().flatten() {
        match value {
            Value::Object(parts) => {
                for (part, value) in parts {
                    table.add_row([Cell::new(format!("{name}.{part}")), Cell::new(plain(Some(value)))]);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let colour = match name.as_str() {
                    "reason" => Color::Yellow,
                    "money_at_risk" => Color::Red,
                    "suggestions" => Color::Green,
                    _ => Color::Reset,
                };
                table.add_row([Cell::new(name), Cell::new(plain(Some(value))).fg(colour)]);
            }
        }
    }
    table
}

/// A JSON value as plain text.
fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(words)) => {
            words.iter().map(|word| plain(Some(word))).collect::<Vec<_>>().join(", ")
        }
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => other.to_string(),
    }
}
