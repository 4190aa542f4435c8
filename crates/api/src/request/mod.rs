//! A request on the way through the checks to the handler.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod fetch;
pub(crate) mod intake;
pub(crate) mod query;
pub(crate) mod rate_limit;

use crate::answer::Failure;
use crate::app::App;
use axum::extract::{FromRequestParts, MatchedPath};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::Principal;
use counterfoil_wire::problem::{Code, Problem};
use http::request::Parts;
use http::{HeaderMap, Uri};
use std::mem;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// The state of a request, shared by dispatcher and handler.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) id: Ulid,
    pub(crate) started: Instant,
    route: Option<MatchedPath>,
    /// Set once the API key is known.
    pub(crate) principal: OnceLock<Arc<Principal>>,
}

impl Exchange {
    pub(crate) fn new(id: Ulid, route: Option<MatchedPath>) -> Exchange {
        Exchange { id, started: Instant::now(), route, principal: OnceLock::new() }
    }

    /// The route's template: the label in metrics and logs, taken from a closed list.
    pub(crate) fn route(&self) -> &str {
        self.route.as_ref().map_or("unmatched", MatchedPath::as_str)
    }
}

/// A request as seen by the handler, without the body.
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

impl FromRequestParts<Arc<App>> for Call {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Call, Failure> {
        let exchange = parts.extensions.get::<Arc<Exchange>>().cloned();
        Ok(Call {
            app: Arc::clone(app),
            exchange: exchange.ok_or(Problem::new(Code::InternalError))?,
            uri: mem::take(&mut parts.uri),
            headers: mem::take(&mut parts.headers),
        })
    }
}

impl Call {
    /// The path's parameter, still percent-encoded; empty for routes without parameter.
    pub(crate) fn parameter(&self) -> &str {
        let template = self.exchange.route().split('/');
        let mut segments = template.zip(self.uri.path().split('/'));
        segments.find(|(name, _)| name.starts_with('{')).map_or("", |(_, segment)| segment)
    }

    /// The id behind the reference in the path. A reference that was never issued is as absent as
    /// an unused one.
    pub(crate) fn id(&self, kind: ReferenceKind) -> Result<i64, Problem> {
        let references = self.app.service.references();
        references.open(kind, self.parameter()).ok_or(Problem::new(Code::NotFound))
    }

    /// When the request's time is over.
    pub(crate) fn deadline(&self) -> Instant {
        self.exchange.started + self.app.settings.request_timeout
    }
}
