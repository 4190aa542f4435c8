//! Administrative acts. Only one process may write an embedded store, so while a server runs the acts go through it: a
//! Unix socket in the store's directory, open to the directory's owner only, one JSON line each way. A database takes
//! them directly. Only what asks the payment provider needs an engine; where no server can be asked, one is started for
//! the act.

mod letters;

use crate::config::Settings;
use crate::exit::Exit;
use crate::store_url::{StoreUrl, open_database};
use crate::wire_up;
use counterfoil_api::Metrics;
use counterfoil_core::tenancy::{KeyPolicy, Scopes};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::{AdminError, NewKey, NewTenant, Service};
use counterfoil_engine::{IdMint, Register};
use counterfoil_store::Store;
use counterfoil_store_embedded::{EmbeddedStore, OpenError};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// An act. Secrets never travel: only their digests do.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Act {
    CreateTenant { name: String, scopes: String, key_policy: Option<String>, digest: String, key_id: String },
    CreateKey { name: String, scopes: String, digest: String, key_id: String },
    RevokeKey { id: String },
    List,
    DeadLetters,
    DeadLetter { id: String },
    Resolve { id: String, resolution: String, reason: Option<String>, key: String },
}

impl Act {
    /// How long it may take: the provider may have to be asked.
    const fn patience(&self) -> Duration {
        match self {
            Act::Resolve { .. } => Duration::from_mins(2),
            Act::CreateTenant { .. }
            | Act::CreateKey { .. }
            | Act::RevokeKey { .. }
            | Act::List
            | Act::DeadLetters
            | Act::DeadLetter { .. } => PATIENCE,
        }
    }
}

/// What came of it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Told {
    Tenants { tenants: Vec<TenantTold> },
    Key { tenant: String, key_id: String, scopes: String, revoked: bool },
    Letters { letters: Vec<LetterTold>, more: bool },
    Resolved { resolved: serde_json::Value },
    Refused { why: String },
}

/// A tenant, as told.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct TenantTold {
    pub(crate) name: String,
    pub(crate) key_policy: String,
    pub(crate) keys: Vec<KeyTold>,
}

/// A key, as told.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct KeyTold {
    pub(crate) id: String,
    pub(crate) scopes: String,
    pub(crate) revoked: bool,
}

/// A dead letter in its public form, and whose it is.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct LetterTold {
    pub(crate) tenant: String,
    pub(crate) letter: serde_json::Value,
}

const SOCKET: &str = "admin.sock";
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Room for as many dead letters as are told at once.
const ANSWER_BYTES_MAX: u64 = 2 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Performs an act on a store: directly, or through the server that holds it.
pub(crate) async fn perform(settings: &Settings, store: &StoreUrl, act: Act) -> Result<Told, Exit> {
    let told = match store {
        StoreUrl::Embedded(path) => on_directory(settings, path, act).await?,
        StoreUrl::Postgres(url) => {
            let store = open_database(url, counterfoil_store_postgres::Options::default()).await?;
            directly(settings, store, act).await?
        }
        StoreUrl::Memory => {
            return Err(Exit::refused("a memory store lives in its own process only; give --store URL"));
        }
    };
    match told {
        Told::Refused { why } => Err(Exit::refused(why)),
        fine @ (Told::Tenants { .. } | Told::Key { .. } | Told::Letters { .. } | Told::Resolved { .. }) => {
            Ok(fine)
        }
    }
}

async fn directly<S: Store>(settings: &Settings, store: S, act: Act) -> Result<Told, Exit> {
    if matches!(act, Act::Resolve { .. }) {
        return resolve_alone(settings, store, act).await;
    }
    let ids = IdMint::claim(&store).await.map_err(Exit::refused)?;
    Ok(act_on(&Register { store: &store, ids: &ids }, act).await)
}

/// Resolves a dead letter with an engine of its own.
async fn resolve_alone<S: Store>(settings: &Settings, store: S, act: Act) -> Result<Told, Exit> {
    if settings.gateway.url.is_none() {
        return Err(Exit::refused(
            "no server can be asked, and the payment provider is not known; start the server, or give --gateway URL",
        ));
    }
    let gateway = wire_up::gateway(settings)?;
    let engine = wire_up::start(settings, gateway, store, &Arc::new(Metrics::new())).await?;
    let told = act_through(&engine, act).await;
    engine.close();
    engine.drain(Span::from_ms(settings.server.drain_ms)).await;
    Ok(told)
}

async fn on_directory(settings: &Settings, path: &Path, act: Act) -> Result<Told, Exit> {
    if !path.exists() && !matches!(act, Act::CreateTenant { .. }) {
        return Err(Exit::refused(format!("there is no store at {}; check --store", path.display())));
    }
    match EmbeddedStore::open(path, counterfoil_store_embedded::Options::default()) {
        Ok(store) => directly(settings, store, act).await,
        Err(locked @ OpenError::Locked { .. }) => {
            ask_server(&path.join(SOCKET), &act).await.map_err(|error| {
                Exit::refused(format!("{locked}; its server could not be asked either: {error}"))
            })
        }
        Err(error) => Err(Exit::refused(error)),
    }
}

async fn ask_server(socket: &Path, act: &Act) -> std::io::Result<Told> {
    let asking = async {
        let mut stream = UnixStream::connect(socket).await?;
        let mut line = serde_json::to_vec(act)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer).await?;
        Ok(serde_json::from_str(&answer)?)
    };
    tokio::time::timeout(act.patience(), asking).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Listens for acts in the store's directory, for the life of the server.
pub(crate) fn listen(directory: &Path) -> std::io::Result<(UnixListener, PathBuf)> {
    let path = directory.join(SOCKET);
    // The directory's lock is held, so a socket that is still there belongs to a dead process.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// Serves acts one after another.
pub(crate) async fn serve(listener: UnixListener, service: Arc<dyn Service>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        match answer(stream, &*service).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                tracing::warn!("an administrative request took too long");
            }
            Err(error) => tracing::warn!(%error, "an administrative request could not be answered"),
        }
    }
}

async fn answer(stream: UnixStream, service: &dyn Service) -> std::io::Result<()> {
    let operator = stream.peer_cred()?.uid();
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(read.take(LINE_BYTES_MAX));
    within(PATIENCE, reader.read_line(&mut line)).await??;
    let told = match serde_json::from_str::<Act>(&line) {
        Ok(act) => {
            if let Act::Resolve { id, resolution, .. } = &act {
                // The timeline has the decision; who made it on this machine is known only here.
                tracing::info!(operator, dead_letter = %id, resolution, "an operator resolves a dead letter");
            }
            within(act.patience(), act_through(service, act)).await?
        }
        Err(error) => Told::Refused { why: format!("the request cannot be read: {error}") },
    };
    let mut line = serde_json::to_vec(&told)?;
    line.push(b'\n');
    within(PATIENCE, write.write_all(&line)).await?
}

async fn within<T>(patience: Duration, work: impl Future<Output = T>) -> std::io::Result<T> {
    tokio::time::timeout(patience, work).await.map_err(|_| ErrorKind::TimedOut.into())
}

/// The same acts on a bare register and on a running service.
macro_rules! act {
    ($on:expr, $act:expr, $id:ident => $revoke:expr, $letters:expr, $resolve:expr) => {{
        let refused = |error: AdminError| Told::Refused { why: error.to_string() };
        match $act {
            Act::CreateTenant { name, scopes, key_policy, digest, key_id } => {
                let (Some(digest), Some(granted)) = (parse_digest(&digest), Scopes::parse(&scopes)) else {
                    return malformed();
                };
                let key_policy = key_policy.as_deref().and_then(KeyPolicy::parse);
                let new = NewTenant { name, key_policy, digest, key_id: key_id.clone(), scopes: granted };
                match $on.create_tenant(new).await {
                    Ok(tenant) => {
                        Told::Key { tenant: tenant.name.to_string(), key_id, scopes, revoked: false }
                    }
                    Err(error) => refused(error),
                }
            }
            Act::CreateKey { name, scopes, digest, key_id } => {
                let (Some(digest), Some(granted)) = (parse_digest(&digest), Scopes::parse(&scopes)) else {
                    return malformed();
                };
                match $on.create_key(NewKey { tenant: name, digest, key_id, scopes: granted }).await {
                    Ok(key) => told_key(&key),
                    Err(error) => refused(error),
                }
            }
            Act::RevokeKey { id: $id } => match $revoke.await {
                Ok(key) => told_key(&key),
                Err(error) => refused(error),
            },
            Act::List => match $on.tenants().await {
                Ok(tenants) => told_tenants(tenants),
                Err(error) => Told::Refused { why: error.to_string() },
            },
            Act::DeadLetters => letters::list(&$letters).await,
            Act::DeadLetter { id } => letters::show(&$letters, &id).await,
            Act::Resolve { id, resolution, reason, key } => {
                $resolve(letters::Decision { id, resolution, reason, key }).await
            }
        }
    }};
}

async fn act_on<S: Store>(register: &Register<'_, S>, act: Act) -> Told {
    let letters = letters::Stopped::of(register);
    // Whoever has no engine has been told so before.
    let resolve = async |_: letters::Decision| malformed();
    act!(register, act, id => register.revoke_key(&id), letters, resolve)
}

async fn act_through(service: &dyn Service, act: Act) -> Told {
    let resolve = |decision| letters::resolve(service, decision);
    act!(service, act, id => service.revoke_key(id), letters::Served(service), resolve)
}

fn malformed() -> Told {
    Told::Refused { why: "the request cannot be read; use the same version as the server".into() }
}

fn told_key(key: &counterfoil_core::tenancy::ApiKey) -> Told {
    Told::Key {
        tenant: key.tenant.to_string(),
        key_id: key.id.clone(),
        scopes: key.scopes.names(),
        revoked: key.revoked_at.is_some(),
    }
}

fn told_tenants(
    tenants: Vec<(counterfoil_core::tenancy::Tenant, Vec<counterfoil_core::tenancy::ApiKey>)>,
) -> Told {
    let told = tenants.into_iter().map(|(tenant, keys)| TenantTold {
        name: tenant.name.to_string(),
        key_policy: tenant.key_policy.map_or("server's", KeyPolicy::name).to_owned(),
        keys: keys
            .into_iter()
            .map(|key| KeyTold { revoked: key.revoked_at.is_some(), scopes: key.scopes.names(), id: key.id })
            .collect(),
    });
    Told::Tenants { tenants: told.collect() }
}

fn parse_digest(hex: &str) -> Option<Digest> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(Digest::from_bytes(bytes))
}
