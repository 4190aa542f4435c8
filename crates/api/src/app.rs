//! The state shared by all handlers, and the server's settings.

use crate::metrics::Metrics;
use crate::request::rate_limit::{Rate, RateLimiter};
use bytes::Bytes;
use counterfoil_core::tenancy::KeyPolicy;
use counterfoil_engine::service::Service;
use counterfoil_gateway::Inbox;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The server's settings, taken from the binary's configuration.
#[derive(Clone, Copy, Debug)]
pub struct ApiSettings {
    pub body_limit_bytes: usize,
    /// Longest time from a request's headers to its answer.
    pub request_timeout: Duration,
    /// Longest time a client may take to send the headers of a request.
    pub header_timeout: Duration,
    /// Most open connections; further ones wait to be accepted.
    pub connections_max: usize,
    /// Whether writes need an idempotency key, for tenants without a policy of their own.
    pub key_policy: KeyPolicy,
    /// Requests per second of one tenant; 0 means no limit.
    pub tenant_requests_per_second: u32,
    /// Requests a tenant may send at once before the rate counts; 0 means the same as the rate.
    pub tenant_burst: u32,
    pub request_log: RequestLog,
}

/// The choice of requests to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestLog {
    Off,
    /// Requests answered with an error.
    Errors,
    All,
}

impl RequestLog {
    pub(crate) const fn wants(self, status: u16) -> bool {
        match self {
            RequestLog::Off => false,
            RequestLog::Errors => status >= 400,
            RequestLog::All => true,
        }
    }
}

/// The state shared by all handlers.
pub struct App {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: ApiSettings,
    pub(crate) rate_limiter: Option<RateLimiter>,
    /// Verify the webhooks of providers, one inbox per provider.
    pub(crate) inboxes: Vec<Box<dyn Inbox>>,
    /// The text of `/openapi.json`, set once the router is built.
    pub(crate) openapi: OnceLock<Bytes>,
}

impl App {
    /// The state for `service`, with one inbox per provider of webhooks.
    pub fn new(
        service: Arc<dyn Service>,
        metrics: Arc<Metrics>,
        settings: ApiSettings,
        inboxes: Vec<Box<dyn Inbox>>,
    ) -> Arc<App> {
        metrics.set_references(service.references());
        let rate = Rate::new(settings.tenant_requests_per_second, settings.tenant_burst);
        Arc::new(App {
            service,
            metrics,
            settings,
            rate_limiter: rate.map(RateLimiter::new),
            inboxes,
            openapi: OnceLock::new(),
        })
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("settings", &self.settings).finish_non_exhaustive()
    }
}
