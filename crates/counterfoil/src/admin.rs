//! Administrative acts. Only one process may write an embedded store, so while a server runs the acts go through it: a
//! Unix socket in the store's directory, open to the directory's owner only, one JSON line each way. A database takes
//! them directly.

use crate::exit::Exit;
use crate::store_url::{StoreUrl, open_database};
use counterfoil_core::tenancy::{KeyPolicy, Scopes};
use counterfoil_core::types::digest::Digest;
use counterfoil_engine::service::{AdminError, NewKey, NewTenant, Service};
use counterfoil_engine::{Ids, Register};
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
}

/// What came of it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Told {
    Tenants { tenants: Vec<TenantTold> },
    Key { tenant: String, key_id: String, scopes: String, revoked: bool },
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

const SOCKET: &str = "admin.sock";
const LINE_BYTES_MAX: u64 = 64 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Performs an act on a store: directly, or through the server that holds it.
pub(crate) async fn perform(store: &StoreUrl, act: Act) -> Result<Told, Exit> {
    let told = match store {
        StoreUrl::Embedded(path) => on_directory(path, act).await?,
        StoreUrl::Postgres(url) => {
            let store = open_database(url, counterfoil_store_postgres::Options::default()).await?;
            directly(&store, act).await?
        }
        StoreUrl::Memory => {
            return Err(Exit::refused("a memory store lives in its own process only; give --store URL"));
        }
    };
    match told {
        Told::Refused { why } => Err(Exit::refused(why)),
        fine @ (Told::Tenants { .. } | Told::Key { .. }) => Ok(fine),
    }
}

async fn directly<S: Store>(store: &S, act: Act) -> Result<Told, Exit> {
    let ids = Ids::claim(store).await.map_err(Exit::refused)?;
    Ok(act_on(&Register { store, ids: &ids }, act).await)
}

async fn on_directory(path: &Path, act: Act) -> Result<Told, Exit> {
    if !path.exists() && !matches!(act, Act::CreateTenant { .. }) {
        return Err(Exit::refused(format!("there is no store at {}; check --store", path.display())));
    }
    match EmbeddedStore::open(path, counterfoil_store_embedded::Options::default()) {
        Ok(store) => directly(&store, act).await,
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
        BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut answer).await?;
        Ok(serde_json::from_str(&answer)?)
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
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
        match tokio::time::timeout(PATIENCE, answer(stream, &*service)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an administrative request could not be answered"),
            Err(_) => tracing::warn!("an administrative request took too long"),
        }
    }
}

async fn answer(stream: UnixStream, service: &dyn Service) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    let told = match serde_json::from_str(&line) {
        Ok(act) => act_through(service, act).await,
        Err(error) => Told::Refused { why: format!("the request cannot be read: {error}") },
    };
    let mut line = serde_json::to_vec(&told)?;
    line.push(b'\n');
    write.write_all(&line).await
}

/// The same acts on a bare register and on a running service.
macro_rules! act {
    ($on:expr, $act:expr, $id:ident => $revoke:expr) => {{
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
        }
    }};
}

async fn act_on<S: Store>(register: &Register<'_, S>, act: Act) -> Told {
    act!(register, act, id => register.revoke_key(&id))
}

async fn act_through(service: &dyn Service, act: Act) -> Told {
    act!(service, act, id => service.revoke_key(id))
}

fn malformed() -> Told {
    Told::Refused { why: "the request's digest or scopes cannot be read".into() }
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
