//! Connects the adapters to the engine.

use crate::admin;
use crate::cli::DEMO_KEY;
use crate::config::{KeyPolicy as PolicyWord, RequestLog, Reuse, Settings};
use crate::exit::Exit;
use crate::shared_services::shared_services;
use crate::store_url::{StoreUrl, open_database};
use counterfoil_api::{ApiSettings, App, Metrics};
use counterfoil_core::idempotency::claim::LeasePolicy;
use counterfoil_core::idempotency::window;
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes};
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{AdminError, NewTenant, Service};
use counterfoil_engine::world::TokioWorld;
use counterfoil_engine::{Engine, Parts, SharedServices};
use counterfoil_gateway::profile::PROFILES;
use counterfoil_gateway::{Inbox, ProviderProfile, Routes, breaker};
use counterfoil_gateway_peer::PeerGateway;
use counterfoil_gateway_stripe::signature::WebhookSecret;
use counterfoil_gateway_stripe::{ProfileOverrides, StripeGateway, StripeInbox};
use counterfoil_store::Store;
use counterfoil_store::memory::MemoryStore;
use counterfoil_store_embedded::EmbeddedStore;
use counterfoil_transport::TransportLimits;
use counterfoil_wire::present::Presenter;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Called once the server is ready. Only `dev` has one, and also gets the demo tenant.
pub(crate) type Greeting = Box<dyn FnOnce() + Send>;

/// The connectors of a server: to the provider and to each peer.
pub(crate) type Connectors = Routes<StripeGateway, PeerGateway>;

/// The connectors named by the settings.
pub(crate) fn gateway(settings: &Settings) -> Result<Connectors, Exit> {
    let mut peers = BTreeMap::new();
    for (name, url) in &settings.peers {
        let peer = PeerGateway::new(counterfoil_gateway_peer::PeerSettings {
            name: name.clone(),
            url: Masked::new(url.reveal().to_owned()),
            retention: Span::from_ms(settings.peering.retention_ms),
            limits: TransportLimits {
                timeout: Duration::from_millis(settings.peering.timeout_ms),
                connections_max: settings.peering.connections_max,
            },
        });
        peers.insert(name.clone(), peer.map_err(|error| Exit::refused(format!("peers.{name}: {error}")))?);
    }
    Ok(Routes::new(provider(settings)?, peers))
}

fn provider(settings: &Settings) -> Result<StripeGateway, Exit> {
    let Some(url) = &settings.gateway.url else {
        return Err(Exit::refused(
            "no payment provider; give --gateway URL, for example stripe+https://KEY@api.stripe.com",
        ));
    };
    let Some(profile) = PROFILES.iter().find(|profile| profile.name == settings.gateway.profile) else {
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        return Err(Exit::refused(format!(
            "gateway.profile `{}` is not known; known are {}",
            settings.gateway.profile,
            known.join(", ")
        )));
    };
    StripeGateway::new(counterfoil_gateway_stripe::StripeSettings {
        url: Masked::new(url.reveal().to_owned()),
        profile,
        bounds: ProfileOverrides {
            dedup_window: nonzero_span(settings.gateway.dedup_window_ms),
            late_delivery: nonzero_span(settings.gateway.late_delivery_ms),
            query_lag: nonzero_span(settings.gateway.query_lag_ms),
        },
        timeout: Duration::from_millis(settings.gateway.timeout_ms),
        connections_max: settings.gateway.connections_max,
    })
    .map_err(Exit::refused)
}

/// The provider's inbox, under the provider name of its charges; none without a secret.
fn inboxes(settings: &Settings) -> Vec<Box<dyn Inbox>> {
    let secrets: Vec<WebhookSecret> =
        settings.gateway.webhook_secrets.iter().map(|secret| WebhookSecret::new(secret.reveal())).collect();
    match ProviderProfile::named(&settings.gateway.profile) {
        Some(profile) if !secrets.is_empty() => vec![Box::new(StripeInbox::new(profile.name, secrets))],
        Some(_) | None => Vec::new(),
    }
}

/// A configured bound; zero means none.
fn nonzero_span(ms: u64) -> Option<Span> {
    (ms > 0).then(|| Span::from_ms(ms))
}

/// Opens the store, serves until a signal, then drains.
pub(crate) async fn serve(
    settings: &Settings,
    listener: TcpListener,
    gateway: Connectors,
    greeting: Option<Greeting>,
) -> Result<(), Exit> {
    let metrics = Arc::new(Metrics::new());
    let shared = shared_services(settings)?;
    let server = Server { settings, listener, gateway, shared, metrics: Arc::clone(&metrics), greeting };
    match StoreUrl::parse(settings.store.url.reveal())? {
        StoreUrl::Embedded(path) => {
            let observed = metrics;
            let options = counterfoil_store_embedded::Options {
                observe: Some(Arc::new(move |sets, took| {
                    observed.observe_commit_batch(sets, took.as_secs_f64());
                })),
                ..Default::default()
            };
            let store = EmbeddedStore::open(&path, options).map_err(Exit::refused)?;
            server.run(store, Some(path)).await
        }
        StoreUrl::Postgres(url) => {
            let observed = metrics;
            let options = counterfoil_store_postgres::Options {
                replay_window: Span::from_ms(settings.idempotency.replay_window_ms),
                observe: Some(Arc::new(move |sets, took| {
                    observed.observe_commit_batch(sets, took.as_secs_f64());
                })),
                ..Default::default()
            };
            let store = open_database(&url, options).await?;
            server.run(store, None).await
        }
        StoreUrl::Memory => {
            let start = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
            let clock = move || {
                let now = start.1.saturating_add(start.0.elapsed());
                Time::from_ms(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
            };
            server.run(MemoryStore::new(Arc::new(clock)), None).await
        }
    }
}

/// Starts an engine.
pub(crate) async fn start<S: Store>(
    settings: &Settings,
    gateway: Connectors,
    shared: SharedServices,
    store: S,
    metrics: &Arc<Metrics>,
) -> Result<Engine<S, Connectors, TokioWorld>, Exit> {
    let references = References::new(MacKey::new(store.secret().reveal()));
    let parts = Parts {
        present: Arc::new(Presenter::new(references)),
        watch: Arc::clone(metrics) as Arc<dyn counterfoil_engine::signal::Watch>,
        world: TokioWorld::new(),
        policy: policy(settings),
        store,
        gateway,
    };
    Engine::start_with(parts, shared).await.map_err(Exit::refused)
}

/// A server, complete except for the store.
struct Server<'a> {
    settings: &'a Settings,
    listener: TcpListener,
    gateway: Connectors,
    shared: SharedServices,
    metrics: Arc<Metrics>,
    greeting: Option<Greeting>,
}

impl Server<'_> {
    /// Serves until a signal, then drains. A store in a directory also gets an admin socket there.
    async fn run<S: Store>(self, store: S, directory: Option<PathBuf>) -> Result<(), Exit> {
        let Server { settings, listener, gateway, shared, metrics, greeting } = self;
        let engine = start(settings, gateway, shared, store, &metrics).await?;
        let service: Arc<dyn Service> = Arc::new(engine.clone());
        if greeting.is_some() {
            demo_tenant(&*service).await?;
        }
        let admin_socket = match directory {
            Some(directory) => {
                let (socket, path) = admin::listen(&directory).map_err(|error| {
                    Exit::refused(format!(
                        "the admin socket in the store's directory cannot be made: {error}"
                    ))
                })?;
                Some((tokio::spawn(admin::serve(socket, Arc::clone(&service))), path))
            }
            None => None,
        };
        let app = App::new(service, metrics, api_settings(settings), inboxes(settings));
        if let Some(greet) = greeting {
            greet();
        }
        let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
        tracing::info!(address, "ready");
        let drain = Duration::from_millis(settings.server.drain_ms);
        let draining = engine.clone();
        let stop_requested_at = Arc::new(OnceLock::new());
        let requested_at = Arc::clone(&stop_requested_at);
        let shutdown = async move {
            termination_signal().await;
            requested_at.get_or_init(Instant::now);
            tracing::info!("draining: no new claims, finishing work under way");
            // Refuse new claims at once; work under way is awaited below.
            draining.close();
        };
        counterfoil_api::serve(listener, app, shutdown, drain).await;
        // Connections and work share one deadline.
        let spent = stop_requested_at.get().map_or(Duration::ZERO, Instant::elapsed);
        let rest = u64::try_from(drain.saturating_sub(spent).as_millis()).unwrap_or(0);
        let left = engine.drain(Span::from_ms(rest)).await;
        if left > 0 {
            tracing::warn!(left, "drain time is over; other servers take over the remaining work");
        }
        if let Some((serving, path)) = admin_socket {
            serving.abort();
            let _ = std::fs::remove_file(path);
        }
        tracing::info!("stopped");
        Ok(())
    }
}

async fn demo_tenant(service: &dyn Service) -> Result<(), Exit> {
    let secret = Masked::new(DEMO_KEY.to_owned());
    let tenant = NewTenant {
        name: "demo".into(),
        key_policy: None,
        digest: ApiKey::digest_of(&secret),
        key_id: "key_demo".into(),
        scopes: Scopes::ALL,
    };
    match service.create_tenant(tenant).await {
        Ok(_) | Err(AdminError::Exists) => Ok(()),
        Err(error @ (AdminError::BadName | AdminError::NotFound | AdminError::Store(_))) => {
            Err(Exit::failed(error))
        }
    }
}

fn policy(settings: &Settings) -> EnginePolicy {
    let idempotency = &settings.idempotency;
    EnginePolicy {
        lease: LeasePolicy {
            lease: Span::from_ms(idempotency.lease_ms),
            ceiling: Span::from_ms(idempotency.lease_ceiling_ms),
        },
        heartbeat: Span::from_ms(idempotency.heartbeat_ms),
        wait: Span::from_ms(idempotency.wait_ms),
        windows: window::WindowPolicy {
            replay: Span::from_ms(idempotency.replay_window_ms),
            tombstone: Span::from_ms(idempotency.tombstone_ms),
            reuse: match idempotency.reuse {
                Reuse::AfterTombstone => window::Reuse::AfterTombstone,
                Reuse::Never => window::Reuse::Never,
            },
        },
        attempts_max: idempotency.attempts_max,
        backoff: Backoff {
            base: Span::from_ms(settings.outbox.backoff_base_ms),
            cap: Span::from_ms(settings.outbox.backoff_cap_ms),
        },
        poll: Span::from_ms(settings.outbox.poll_ms),
        batch: settings.outbox.batch,
        breaker: breaker::BreakerPolicy {
            failures: settings.gateway.breaker_failures,
            open: Span::from_ms(settings.gateway.breaker_open_ms),
        },
    }
}

fn api_settings(settings: &Settings) -> ApiSettings {
    let server = &settings.server;
    ApiSettings {
        body_limit_bytes: server.body_limit_bytes,
        request_timeout: Duration::from_millis(server.request_timeout_ms),
        header_timeout: Duration::from_millis(server.header_timeout_ms),
        connections_max: server.connections_max,
        key_policy: match settings.idempotency.key_policy {
            PolicyWord::Required => KeyPolicy::Required,
            PolicyWord::Optional => KeyPolicy::Optional,
        },
        tenant_requests_per_second: settings.limits.tenant_requests_per_second,
        tenant_burst: settings.limits.tenant_burst,
        request_log: match server.request_log {
            RequestLog::Off => counterfoil_api::RequestLog::Off,
            RequestLog::Errors => counterfoil_api::RequestLog::Errors,
            RequestLog::All => counterfoil_api::RequestLog::All,
        },
    }
}

/// Ends when the process is asked to stop.
pub(crate) async fn termination_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without signal handlers the process can only be killed, which is safe.
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
