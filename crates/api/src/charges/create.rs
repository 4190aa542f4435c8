//! `POST /v1/charges`. The checks stand in the order in which they are made; after the last one invalid input
//! cannot exist.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::body::{self, Media};
use crate::exchange::Exchange;
use crate::query;
use crate::route::Route;
use axum::extract::{Request, State};
use bytes::Bytes;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::fingerprint::{self, Fingerprint};
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::tenancy::{KeyPolicy, Scope};
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::Kind;
use counterfoil_engine::service::{Principal, Submitted};
use counterfoil_wire::problem::{Code, FieldError, Problem};
use counterfoil_wire::{charge, form};
use http::request::Parts;
use http::{HeaderMap, Response};
use std::sync::Arc;
use tokio::time::timeout_at;

/// What the contract names for a key that is still in use.
const IN_USE_RETRY_MS: u64 = 5_000;

/// Makes a charge, at most once per key.
#[utoipa::path(
    post,
    path = "/v1/charges",
    tag = "Charges",
    security(("api_key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, bare or quoted; the same on every retry of this payment. Required unless the tenant's policy makes it optional.")),
    request_body(
        content(
            (charge::schema::CreateCharge = "application/json"),
            (charge::schema::CreateCharge = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The charge succeeded or is held for capture.", body = charge::schema::Charge),
        (status = 400, description = "`idempotency_key_required`, `idempotency_key_invalid`, `invalid_request`, `gateway_rejected`", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = 402, description = "`card_declined`; stored and replayed", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = 409, description = "`idempotency_key_in_use`: retry with the same key", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = 410, description = "`idempotency_key_expired`", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = 422, description = "`idempotency_key_fingerprint_mismatch`: the key belongs to another request", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`outcome_pending`, `store_unavailable`, `gateway_unavailable`, `shutting_down`", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other error: `unauthorized`, `forbidden`, `rate_limited`, … as `error` says", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let (head, body) = request.into_parts();
    let mut exchange = Exchange::of(&app, &head.extensions);
    let worked = run(&app, &head, body, &mut exchange).await;
    exchange.finish(worked)
}

/// The same without the router: the face calls it directly, since most requests are these.
pub(crate) async fn run<B>(
    app: &App,
    head: &Parts,
    body: B,
    exchange: &mut Exchange,
) -> Result<Answer, Problem>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let principal = auth::admit(app, &head.headers, Scope::Write, exchange).await?;
    let media = body::media(&head.headers, body.is_end_stream())?;
    let key = key(app, &head.headers, &principal, exchange)?;
    let deadline = exchange.started + app.settings.request_timeout;
    let bytes = body::read(body, app.settings.body_limit_bytes, deadline).await?;

    let mut errors = query::none(head.uri.query());
    let parsed = match parse(media, &bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(error);
            return Err(query::invalid(errors));
        }
    };
    let order = match charge::read(&parsed, app.service.references(), principal.main_account) {
        Ok(order) if errors.is_empty() => order,
        Ok(_) => return Err(query::invalid(errors)),
        Err(more) => {
            errors.extend(more);
            return Err(query::invalid(errors));
        }
    };
    let fingerprint = Fingerprint::of(fingerprint::Request {
        tenant: principal.tenant,
        method: "POST",
        path: Route::Charges.template(),
        // No parameter is known, and unknown ones were refused.
        query: &[],
        body: &parsed,
    });

    // Accepted: what follows is the engine's word.
    let submitted = app.service.submit(CreateCharge {
        tenant: principal.tenant,
        claim: ClaimId::new(principal.tenant, &key),
        fingerprint,
        request: exchange.id,
        order,
    });
    match timeout_at(deadline, submitted).await {
        Ok(submitted) => conclude(app, submitted).map_err(|problem| advise(problem, &head.headers)),
        // The work goes on without this request; a retry finds it under the same key.
        Err(_) => Err(in_use()),
    }
}

fn key(
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
                app.metrics.key_missing(principal.tenant, Route::Charges);
                let generated = format!("auto_{}", exchange.id);
                IdempotencyKey::from_text(generated.as_bytes()).map_err(|error| invalid(error.sentence()))
            }
        },
    }
}

fn parse(media: Media, bytes: &[u8]) -> Result<Json, FieldError> {
    match media {
        Media::Json if bytes.is_empty() => Err(FieldError::new("", "the body is empty; send a JSON object")),
        Media::Json => Json::parse(bytes).map_err(|error| {
            FieldError::new(error.pointer, format!("byte {}: {}", error.offset, error.message))
        }),
        Media::Form => form::parse(bytes, charge::shape),
    }
}

fn conclude(app: &App, submitted: Submitted) -> Result<Answer, Problem> {
    match submitted {
        Submitted::Answer { settled, replayed } => Ok(answer::stored(&settled, replayed)),
        Submitted::Mismatch => Err(Problem::new(Code::IdempotencyKeyFingerprintMismatch)),
        Submitted::InUse => Err(in_use()),
        Submitted::Expired { original_request_at } => {
            Err(Problem::new(Code::IdempotencyKeyExpired).original_request_at(original_request_at))
        }
        Submitted::Pending { charge, retry_after } => {
            let charge = app.service.references().seal(Kind::Charge, charge.to_i64());
            Err(Problem::new(Code::OutcomePending)
                .retry_after(retry_after.ms().div_ceil(1_000))
                .charge(charge)
                .safe_new_key(false))
        }
        Submitted::StoreUnavailable => Err(store_unavailable()),
        Submitted::Draining => Err(Problem::new(Code::ShuttingDown).retry_after(1)),
    }
}

/// A request without a key must not be told to repeat it: that would be a new charge.
fn advise(problem: Problem, headers: &HeaderMap) -> Problem {
    if problem.code() == Code::OutcomePending && !headers.contains_key("idempotency-key") {
        return problem.detail(
            "The outcome is not known yet. Do not send the request again: without a key that would be a new charge. \
             Read GET /v1/charges/{charge} until its status is final.",
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
