//! Every write, from its headers to its answer. The checks stand in the order in which they are made; after the last
//! one invalid input cannot exist, and what follows is the engine's word.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::body::{self, Media};
use crate::exchange::Exchange;
use crate::query;
use crate::route::Route;
use bytes::Bytes;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::fingerprint::{self, Fingerprint};
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::tenancy::{KeyPolicy, Scope};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::{Json, Object};
use counterfoil_core::types::reference::References;
use counterfoil_engine::service::{Principal, Submitted};
use counterfoil_wire::form;
use counterfoil_wire::layout::Layout;
use counterfoil_wire::present::conflict;
use counterfoil_wire::problem::{Code, Problem};
use http::HeaderMap;
use http::request::Parts;
use tokio::time::timeout_at;

/// What the contract names for a key that is still in use.
const IN_USE_RETRY_MS: u64 = 5_000;

/// What a write route takes.
pub(crate) struct Intake {
    pub(crate) route: Route,
    pub(crate) layout: Layout,
    /// Whether a request without a body is one without fields.
    pub(crate) may_be_empty: bool,
    /// What the API key must be allowed to do.
    pub(crate) scope: Scope,
}

impl Intake {
    /// A route that needs a body.
    pub(crate) const fn new(route: Route, layout: Layout) -> Intake {
        Intake { route, layout, may_be_empty: false, scope: Scope::Write }
    }

    /// A route whose fields are all optional.
    pub(crate) const fn optional(route: Route, layout: Layout) -> Intake {
        Intake { route, layout, may_be_empty: true, scope: Scope::Write }
    }

    /// A route for operators.
    pub(crate) const fn admin(route: Route, layout: Layout) -> Intake {
        Intake { route, layout, may_be_empty: false, scope: Scope::Admin }
    }

    /// Takes a request in: who asks, under which key, and what `read` makes of its body.
    pub(crate) async fn take<B, T>(
        &self,
        app: &App,
        head: &Parts,
        body: B,
        exchange: &mut Exchange,
        read: impl FnOnce(&Json, &References) -> Result<T, Vec<Flaw>>,
    ) -> Result<(Request, T), Problem>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let principal = auth::admit(app, &head.headers, self.scope, exchange).await?;
        let media = body::media(&head.headers, body.is_end_stream())?;
        let key = self.key(app, &head.headers, &principal, exchange)?;
        let deadline = exchange.started + app.settings.request_timeout;
        let bytes = body::read(body, app.settings.body_limit_bytes, deadline).await?;

        let mut flaws = query::none(head.uri.query());
        let parsed = match self.parse(media, &bytes) {
            Ok(parsed) => parsed,
            Err(flaw) => {
                flaws.push(flaw);
                return Err(query::invalid(flaws));
            }
        };
        let wanted = match read(&parsed, app.service.references()) {
            Ok(wanted) if flaws.is_empty() => wanted,
            Ok(_) => return Err(query::invalid(flaws)),
            Err(more) => {
                flaws.extend(more);
                return Err(query::invalid(flaws));
            }
        };
        let fingerprint = Fingerprint::of(fingerprint::FingerprintInput {
            tenant: principal.tenant,
            method: "POST",
            path: head.uri.path(),
            // No parameter is known, and unknown ones were refused.
            query: &[],
            body: &parsed,
        });
        let claim = ClaimId::new(principal.tenant, &key);
        Ok((Request { tenant: principal.tenant, claim, fingerprint, id: exchange.id }, wanted))
    }

    fn key(
        &self,
        app: &App,
        headers: &HeaderMap,
        principal: &Principal,
        exchange: &Exchange,
    ) -> Result<IdempotencyKey, Problem> {
        let invalid = |why: &str| {
            Problem::new(Code::IdempotencyKeyInvalid).detail(format!(
                "The Idempotency-Key header is not usable: {why}. Send one of 1 to 255 visible ASCII characters."
            ))
        };
        let mut values = headers.get_all("idempotency-key").iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                IdempotencyKey::parse(value.as_bytes()).map_err(|error| invalid(error.sentence()))
            }
            (Some(_), Some(_)) => Err(invalid("it was sent more than once")),
            (None, _) => match principal.key_policy.unwrap_or(app.settings.key_policy) {
                KeyPolicy::Required => Err(Problem::new(Code::IdempotencyKeyRequired)),
                KeyPolicy::Optional => {
                    app.metrics.key_missing(principal.tenant, self.route);
                    let generated = format!("auto_{}", exchange.id);
                    IdempotencyKey::from_text(generated.as_bytes()).map_err(|error| invalid(error.sentence()))
                }
            },
        }
    }

    fn parse(&self, media: Media, bytes: &[u8]) -> Result<Json, Flaw> {
        match media {
            Media::Json if bytes.is_empty() && self.may_be_empty => Ok(Json::Object(Object::new())),
            Media::Json if bytes.is_empty() => Err(Flaw::new("", "the body is empty; send a JSON object")),
            Media::Json => Json::parse(bytes).map_err(|error| {
                Flaw::new(error.pointer, format!("byte {}: {}", error.offset, error.message))
            }),
            Media::Form => form::parse(bytes, &self.layout),
        }
    }
}

/// The answer to a request that was taken in, once the engine has it or the request's time is over.
pub(crate) async fn conclude(
    app: &App,
    head: &Parts,
    exchange: &Exchange,
    submitted: impl Future<Output = Submitted>,
) -> Result<Answer, Problem> {
    let deadline = exchange.started + app.settings.request_timeout;
    match timeout_at(deadline, submitted).await {
        Ok(submitted) => answer_to(app, submitted).map_err(|problem| advise(problem, &head.headers)),
        // The work goes on without this request; a retry finds it under the same key.
        Err(_) => Err(in_use()),
    }
}

fn answer_to(app: &App, submitted: Submitted) -> Result<Answer, Problem> {
    match submitted {
        Submitted::Answer { settled, replayed } => Ok(answer::stored(&settled, replayed)),
        Submitted::Invalid(flaws) => Err(query::invalid(flaws)),
        Submitted::NotFound => Err(Problem::new(Code::NotFound)),
        Submitted::Mismatch => Err(Problem::new(Code::IdempotencyKeyFingerprintMismatch)),
        Submitted::InUse => Err(in_use()),
        Submitted::Expired { original_request_at } => {
            Err(Problem::new(Code::IdempotencyKeyExpired).original_request_at(original_request_at))
        }
        Submitted::InProgress => Err(conflict::busy()),
        Submitted::Pending { payment, retry_after } => Err(Problem::new(Code::OutcomePending)
            .retry_after(retry_after.ms().div_ceil(1_000))
            .payment(payment, app.service.references())
            .safe_new_key(false)),
        Submitted::StoreUnavailable => Err(store_unavailable()),
        Submitted::Draining => Err(Problem::new(Code::ShuttingDown).retry_after(1)),
    }
}

/// A request without a key must not be told to repeat it: it would be done anew.
fn advise(problem: Problem, headers: &HeaderMap) -> Problem {
    if problem.code() == Code::OutcomePending && !headers.contains_key("idempotency-key") {
        return problem.detail(
            "The outcome is not known yet. Do not send the request again: without a key it would be done anew. \
             Read GET /v1/charges/{charge} or GET /v1/payouts/{payout} until its status is final.",
        );
    }
    problem
}

fn in_use() -> Problem {
    Problem::new(Code::IdempotencyKeyInUse)
        .retry_after(IN_USE_RETRY_MS / 1_000)
        .retry_after_ms(IN_USE_RETRY_MS)
        .safe_new_key(false)
}
