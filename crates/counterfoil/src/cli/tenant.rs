//! `tenant`: tenants and their API keys, directly on a stopped store or through the server of a
//! live one.

use super::runtime::client_runtime;
use super::{Common, flag};
use crate::admin::{self, AdminReply, AdminRequest};
use crate::exit::Exit;
use crate::store_url::StoreUrl;
use clap::{Args, Subcommand};
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes};
use counterfoil_core::types::mask::Masked;
use std::process::ExitCode;

/// Manages tenants and their API keys.
#[derive(Args, Debug)]
pub(crate) struct Tenant {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
    /// The store: a path, file:PATH or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// Prints JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Creates a tenant and prints its first API key, once.
    Create {
        /// 1 to 64 lower-case letters, digits, '-' and '_'.
        name: String,
        /// Scopes of the key: read, write, admin, joined by commas.
        #[arg(long, default_value = "read,write")]
        scopes: String,
        /// Whether this tenant's writes need an idempotency key (required or optional); default:
        /// the server's policy.
        #[arg(long)]
        key_policy: Option<String>,
    },
    /// Creates and revokes API keys.
    #[command(subcommand)]
    Key(Key),
    /// Lists tenants and their keys.
    List,
}

#[derive(Debug, Subcommand)]
enum Key {
    /// Adds an API key to a tenant and prints it, once.
    Create {
        /// The tenant's name.
        name: String,
        /// Scopes of the key: read, write, admin, joined by commas.
        #[arg(long, default_value = "read,write")]
        scopes: String,
    },
    /// Revokes an API key; a running server follows within a second.
    Revoke {
        /// The key's id, `key_…`.
        id: String,
    },
}

impl Tenant {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let flags = flag("store", "url", "--store", self.store.as_ref());
        let settings = self.common.settings(flags.into_iter().collect())?;
        let store = StoreUrl::parse(settings.store.url.reveal())?;
        let secret = Masked::new(format!("sk_live_{}", random_text(32)?));
        let key_id = format!("key_{}", random_text(10)?);
        let digest = ApiKey::digest_of(&secret).hex();
        let (request, makes_key) = match self.command {
            Command::Create { name, scopes, key_policy } => (
                AdminRequest::CreateTenant {
                    name,
                    scopes: checked(scopes)?,
                    key_policy: policy(key_policy)?,
                    digest,
                    key_id,
                },
                true,
            ),
            Command::Key(Key::Create { name, scopes }) => {
                (AdminRequest::CreateKey { name, scopes: checked(scopes)?, digest, key_id }, true)
            }
            Command::Key(Key::Revoke { id }) => (AdminRequest::RevokeKey { id }, false),
            Command::List => (AdminRequest::List, false),
        };
        let reply = client_runtime()?.block_on(admin::run(&settings, &store, request))?;
        print(&reply, makes_key.then_some(&secret), self.json);
        Ok(ExitCode::SUCCESS)
    }
}

fn checked(scopes: String) -> Result<String, Exit> {
    match Scopes::parse(&scopes) {
        Some(_) => Ok(scopes),
        None => Err(Exit::refused(format!(
            "--scopes {scopes}: choose from read, write and admin, joined by commas"
        ))),
    }
}

fn policy(policy: Option<String>) -> Result<Option<String>, Exit> {
    match policy {
        Some(word) if KeyPolicy::parse(&word).is_none() => {
            Err(Exit::refused(format!("--key-policy {word}: choose required or optional")))
        }
        fine => Ok(fine),
    }
}

/// Base 32 text, in lower case, of `bytes` random bytes.
pub(super) fn random_text(bytes: usize) -> Result<String, Exit> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut chance = vec![0; bytes.saturating_mul(8).div_ceil(5)];
    getrandom::fill(&mut chance)
        .map_err(|error| Exit::failed(format!("the operating system has no random bytes: {error}")))?;
    let digit = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied().unwrap_or(b'a');
    Ok(chance.iter().map(|byte| char::from(digit(byte))).collect())
}

fn print(reply: &AdminReply, secret: Option<&Masked<String>>, json: bool) {
    if json {
        let mut value = serde_json::to_value(reply).unwrap_or_default();
        if let (Some(secret), Some(object)) = (secret, value.as_object_mut()) {
            object.insert("secret".into(), serde_json::Value::String(secret.reveal().clone()));
        }
        println!("{value}");
        return;
    }
    match reply {
        AdminReply::Tenants { tenants } => println!("{}", table(tenants)),
        AdminReply::Key { key_id, tenant, .. } => match secret {
            Some(secret) => println!(
                "tenant   {tenant}\nkey id   {key_id}\napi key  {}\n\nThe API key is shown only now. next: counterfoil tenant list",
                secret.reveal()
            ),
            None => println!("{key_id} of {tenant} is revoked"),
        },
        AdminReply::Refused { why } => println!("{why}"),
        // Replies to other commands.
        AdminReply::Letters { .. } | AdminReply::Resolved { .. } => {}
    }
}

fn table(tenants: &[admin::TenantRow]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["tenant", "key policy", "key id", "scopes", "state"]);
    for tenant in tenants {
        for key in &tenant.keys {
            let state = if key.revoked { "revoked" } else { "active" };
            table.add_row([&tenant.name, &tenant.key_policy, &key.id, &key.scopes, state]);
        }
    }
    table
}
