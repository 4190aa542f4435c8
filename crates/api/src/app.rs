//! What every handler shares, and the settings of the face.

use crate::limits::{Limiter, Rate};
use crate::metrics::Metrics;
use bytes::Bytes;
use counterfoil_core::tenancy::KeyPolicy;
use counterfoil_engine::service::Service;
use counterfoil_gateway::Inbox;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The settings of the face; the binary fills them from its table.
#[derive(Clone, Copy, Debug)]
pub struct ApiSettings {
    /// The largest body accepted.
    pub body_limit_bytes: usize,
    /// How long one request may take from its headers to its answer.
    pub request_timeout: Duration,
    /// How long a client may take to send the headers of a request.
    pub header_timeout: Duration,
    /// How many connections may be open; more wait to be accepted.
    pub connections_max: usize,
    /// Whether writes need a key, where the tenant does not say.
    pub key_policy: KeyPolicy,
    /// Requests per second of one tenant; 0 means no limit.
    pub tenant_requests_per_second: u32,
    /// Requests a tenant may send at once before the rate counts; 0 means the same as the rate.
    pub tenant_burst: u32,
    /// Which requests are logged.
    pub request_log: RequestLog,
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestLog {
    /// None.
    Off,
    /// Those answered with an error.
    Errors,
    /// Every one.
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

/// What every handler shares.
pub struct App {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: ApiSettings,
    pub(crate) limiter: Option<Limiter>,
    /// How what providers send on their own is told from what others do.
    pub(crate) inboxes: Vec<Box<dyn Inbox>>,
    /// The text of `/openapi.json`, known once the router is built.
    pub(crate) openapi: OnceLock<Bytes>,
}

impl App {
    /// A face for `service`, with an inbox for each provider that may send something on its own.
    pub fn new(
        service: Arc<dyn Service>,
        metrics: Arc<Metrics>,
        settings: ApiSettings,
        inboxes: Vec<Box<dyn Inbox>>,
    ) -> Arc<App> {
        metrics.name_accounts_by(service.references());
        let rate = Rate::new(settings.tenant_requests_per_second, settings.tenant_burst);
        Arc::new(App {
            service,
            metrics,
            settings,
            limiter: rate.map(Limiter::new),
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
