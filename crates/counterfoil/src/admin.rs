//! Administrative commands. Only a single process may write an embedded store, so a running server
//! executes the commands on its store. The server listens on a Unix socket in the store's
//! directory, open to the directory's owner only; requests and replies are JSON lines. Commands on
//! a database run directly. Only resolving a dead letter needs an engine; without a server, the
//! command starts a temporary engine.

mod letters;

use crate::config::Settings;
use crate::exit::Exit;
use crate::shared_services::shared_services;
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

/// An administrative request. Only digests of secrets are sent.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum AdminRequest {
    CreateTenant { name: String, scopes: String, key_policy: Option<String>, digest: String, key_id: String },
    CreateKey { name: String, scopes: String, digest: String, key_id: String },
    RevokeKey { id: String },
    List,
    DeadLetters,
    DeadLetter { id: String },
    Resolve { id: String, resolution: String, reason: Option<String>, key: String },
}

impl AdminRequest {
    /// The timeout; resolving may ask the payment provider.
    const fn timeout(&self) -> Duration {
        match self {
            AdminRequest::Resolve { .. } => Duration::from_mins(2),
            AdminRequest::CreateTenant { .. }
            | AdminRequest::CreateKey { .. }
            | AdminRequest::RevokeKey { .. }
            | AdminRequest::List
            | AdminRequest::DeadLetters
            | AdminRequest::DeadLetter { .. } => TIMEOUT,
        }
    }
}

/// The reply to an administrative request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum AdminReply {
    Tenants { tenants: Vec<TenantRow> },
    Key { tenant: String, key_id: String, scopes: String, revoked: bool },
    Letters { letters: Vec<DeadLetterRow>, more: bool },
    Resolved { resolved: serde_json::Value },
    Refused { why: String },
}

/// A tenant with its keys.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct TenantRow {
    pub(crate) name: String,
    pub(crate) key_policy: String,
    pub(crate) keys: Vec<KeyRow>,
}

/// An API key without its secret.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) scopes: String,
    pub(crate) revoked: bool,
}

/// A dead letter in its public form, with its tenant.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct DeadLetterRow {
    pub(crate) tenant: String,
    pub(crate) letter: serde_json::Value,
}

const SOCKET: &str = "admin.sock";
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Room for a full list of dead letters.
const ANSWER_BYTES_MAX: u64 = 2 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a request on a store, directly or through the server that holds it.
pub(crate) async fn run(
    settings: &Settings,
    store: &StoreUrl,
    request: AdminRequest,
) -> Result<AdminReply, Exit> {
    let reply = match store {
        StoreUrl::Embedded(path) => run_on_directory(settings, path, request).await?,
        StoreUrl::Postgres(url) => {
            let store = open_database(url, counterfoil_store_postgres::Options::default()).await?;
            run_on_store(settings, store, request).await?
        }
        StoreUrl::Memory => {
            return Err(Exit::refused("a memory store lives in its own process only; give --store URL"));
        }
    };
    match reply {
        AdminReply::Refused { why } => Err(Exit::refused(why)),
        fine @ (AdminReply::Tenants { .. }
        | AdminReply::Key { .. }
        | AdminReply::Letters { .. }
        | AdminReply::Resolved { .. }) => Ok(fine),
    }
}

async fn run_on_store<S: Store>(
    settings: &Settings,
    store: S,
    request: AdminRequest,
) -> Result<AdminReply, Exit> {
    if matches!(request, AdminRequest::Resolve { .. }) {
        return resolve_with_own_engine(settings, store, request).await;
    }
    let ids = IdMint::claim(&store).await.map_err(Exit::refused)?;
    Ok(run_on_register(&Register { store: &store, ids: &ids }, request).await)
}

/// Resolves a dead letter with a temporary engine.
async fn resolve_with_own_engine<S: Store>(
    settings: &Settings,
    store: S,
    request: AdminRequest,
) -> Result<AdminReply, Exit> {
    if settings.gateway.url.is_none() {
        return Err(Exit::refused(
            "no server can be asked, and the payment provider is not known; start the server, or give --gateway URL",
        ));
    }
    let gateway = wire_up::gateway(settings)?;
    let shared = shared_services(settings)?;
    let engine = wire_up::start(settings, gateway, shared, store, &Arc::new(Metrics::new())).await?;
    let reply = run_on_service(&engine, request).await;
    engine.close();
    engine.drain(Span::from_ms(settings.server.drain_ms)).await;
    Ok(reply)
}

async fn run_on_directory(
    settings: &Settings,
    path: &Path,
    request: AdminRequest,
) -> Result<AdminReply, Exit> {
    if !path.exists() && !matches!(request, AdminRequest::CreateTenant { .. }) {
        return Err(Exit::refused(format!("there is no store at {}; check --store", path.display())));
    }
    match EmbeddedStore::open(path, counterfoil_store_embedded::Options::default()) {
        Ok(store) => run_on_store(settings, store, request).await,
        Err(locked @ OpenError::Locked { .. }) => {
            ask_server(&path.join(SOCKET), &request).await.map_err(|error| {
                Exit::refused(format!("{locked}; its server could not be asked either: {error}"))
            })
        }
        Err(error) => Err(Exit::refused(error)),
    }
}

async fn ask_server(socket: &Path, request: &AdminRequest) -> std::io::Result<AdminReply> {
    let asking = async {
        let mut stream = UnixStream::connect(socket).await?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer).await?;
        Ok(serde_json::from_str(&answer)?)
    };
    tokio::time::timeout(request.timeout(), asking).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Opens the admin socket in the store's directory. The server removes the socket when stopping.
pub(crate) fn listen(directory: &Path) -> std::io::Result<(UnixListener, PathBuf)> {
    let path = directory.join(SOCKET);
    // We hold the directory's lock, so an existing socket belongs to a dead process.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// Serves administrative requests one after another.
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
    within(TIMEOUT, reader.read_line(&mut line)).await??;
    let reply = match serde_json::from_str::<AdminRequest>(&line) {
        Ok(request) => {
            if let AdminRequest::Resolve { id, resolution, .. } = &request {
                // The timeline records the decision; only this log records the operating-system
                // user.
                tracing::info!(operator, dead_letter = %id, resolution, "an operator resolves a dead letter");
            }
            within(request.timeout(), run_on_service(service, request)).await?
        }
        Err(error) => AdminReply::Refused { why: format!("the request cannot be read: {error}") },
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    within(TIMEOUT, write.write_all(&line)).await?
}

async fn within<T>(timeout: Duration, work: impl Future<Output = T>) -> std::io::Result<T> {
    tokio::time::timeout(timeout, work).await.map_err(|_| ErrorKind::TimedOut.into())
}

/// Runs a request on a bare register or on a running service.
macro_rules! run_request {
    ($on:expr, $request:expr, $id:ident => $revoke:expr, $letters:expr, $resolve:expr) => {{
        let refused = |error: AdminError| AdminReply::Refused { why: error.to_string() };
        match $request {
            AdminRequest::CreateTenant { name, scopes, key_policy, digest, key_id } => {
                let (Some(digest), Some(granted)) = (parse_digest(&digest), Scopes::parse(&scopes)) else {
                    return malformed();
                };
                let key_policy = key_policy.as_deref().and_then(KeyPolicy::parse);
                let new = NewTenant { name, key_policy, digest, key_id: key_id.clone(), scopes: granted };
                match $on.create_tenant(new).await {
                    Ok(tenant) => {
                        AdminReply::Key { tenant: tenant.name.to_string(), key_id, scopes, revoked: false }
                    }
                    Err(error) => refused(error),
                }
            }
            AdminRequest::CreateKey { name, scopes, digest, key_id } => {
                let (Some(digest), Some(granted)) = (parse_digest(&digest), Scopes::parse(&scopes)) else {
                    return malformed();
                };
                match $on.create_key(NewKey { tenant: name, digest, key_id, scopes: granted }).await {
                    Ok(key) => key_reply(&key),
                    Err(error) => refused(error),
                }
            }
            AdminRequest::RevokeKey { id: $id } => match $revoke.await {
                Ok(key) => key_reply(&key),
                Err(error) => refused(error),
            },
            AdminRequest::List => match $on.tenants().await {
                Ok(tenants) => tenants_reply(tenants),
                Err(error) => AdminReply::Refused { why: error.to_string() },
            },
            AdminRequest::DeadLetters => letters::list(&$letters).await,
            AdminRequest::DeadLetter { id } => letters::show(&$letters, &id).await,
            AdminRequest::Resolve { id, resolution, reason, key } => {
                $resolve(letters::Decision { id, resolution, reason, key }).await
            }
        }
    }};
}

async fn run_on_register<S: Store>(register: &Register<'_, S>, request: AdminRequest) -> AdminReply {
    let letters = letters::StoreReader::of(register);
    // Requests that need an engine never get here.
    let resolve = async |_: letters::Decision| malformed();
    run_request!(register, request, id => register.revoke_key(&id), letters, resolve)
}

async fn run_on_service(service: &dyn Service, request: AdminRequest) -> AdminReply {
    let resolve = |decision| letters::resolve(service, decision);
    run_request!(service, request, id => service.revoke_key(id), letters::EngineReader(service), resolve)
}

fn malformed() -> AdminReply {
    AdminReply::Refused { why: "the request cannot be read; use the same version as the server".into() }
}

fn key_reply(key: &counterfoil_core::tenancy::ApiKey) -> AdminReply {
    AdminReply::Key {
        tenant: key.tenant.to_string(),
        key_id: key.id.clone(),
        scopes: key.scopes.names(),
        revoked: key.revoked_at.is_some(),
    }
}

fn tenants_reply(
    tenants: Vec<(counterfoil_core::tenancy::Tenant, Vec<counterfoil_core::tenancy::ApiKey>)>,
) -> AdminReply {
    let reply = tenants.into_iter().map(|(tenant, keys)| TenantRow {
        name: tenant.name.to_string(),
        key_policy: tenant.key_policy.map_or("server's", KeyPolicy::name).to_owned(),
        keys: keys
            .into_iter()
            .map(|key| KeyRow { revoked: key.revoked_at.is_some(), scopes: key.scopes.names(), id: key.id })
            .collect(),
    });
    AdminReply::Tenants { tenants: reply.collect() }
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
