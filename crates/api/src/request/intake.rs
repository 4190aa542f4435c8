//! The checks of a write request, in order, and the answer. After the last check, invalid input
//! cannot exist.

use super::Call;
use super::body::{self, Media};
use super::query;
use crate::answer::{self, Answered, store_unavailable};
use axum::body::Body;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::fingerprint::{Fingerprint, FingerprintInput};
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
use http_body::Body as _;
use tokio::time::timeout_at;

/// `retry_after_ms` for a key that is still in use; part of the public contract.
const IN_USE_RETRY_MS: u64 = 5_000;

/// The body and the scope that a write route requires.
pub(crate) struct Intake {
    layout: Layout,
    /// Whether a missing body means an object without fields.
    may_be_empty: bool,
    scope: Scope,
}

impl Intake {
    /// A route with a required body.
    pub(crate) const fn new(layout: Layout) -> Intake {
        Intake { layout, may_be_empty: false, scope: Scope::Write }
    }

    /// A route with optional fields only.
    pub(crate) const fn optional(layout: Layout) -> Intake {
        Intake { layout, may_be_empty: true, scope: Scope::Write }
    }

    /// A route for operators.
    pub(crate) const fn admin(layout: Layout) -> Intake {
        Intake { layout, may_be_empty: false, scope: Scope::Admin }
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

impl Call {
    /// Checks a write request. Returns the request and the result of `read` on its body.
    pub(crate) async fn accept<T>(
        &self,
        body: Body,
        intake: &Intake,
        read: impl FnOnce(&Json, &References) -> Result<T, Vec<Flaw>>,
    ) -> Result<(Request, T), Problem> {
        let principal = self.admit(intake.scope).await?;
        let media = body::media(&self.headers, body.is_end_stream())?;
        let key = self.idempotency_key(&principal)?;
        let bytes = body::read(body, self.app.settings.body_limit_bytes, self.deadline()).await?;

        let mut flaws = query::unexpected(self.uri.query());
        let parsed = match intake.parse(media, &bytes) {
            Ok(parsed) => parsed,
            Err(flaw) => {
                flaws.push(flaw);
                return Err(query::invalid(flaws));
            }
        };
        let wanted = match read(&parsed, self.app.service.references()) {
            Ok(wanted) if flaws.is_empty() => wanted,
            Ok(_) => return Err(query::invalid(flaws)),
            Err(more) => {
                flaws.extend(more);
                return Err(query::invalid(flaws));
            }
        };
        let fingerprint = Fingerprint::of(FingerprintInput {
            tenant: principal.tenant,
            method: "POST",
            path: self.uri.path(),
            // Write routes have no query parameters; unknown ones were refused above.
            query: &[],
            body: &parsed,
        });
        let claim = ClaimId::new(principal.tenant, &key);
        Ok((Request { tenant: principal.tenant, claim, fingerprint, id: self.exchange.id }, wanted))
    }

    fn idempotency_key(&self, principal: &Principal) -> Result<IdempotencyKey, Problem> {
        let invalid = |why: &str| {
            Problem::new(Code::IdempotencyKeyInvalid).detail(format!(
                "The Idempotency-Key header is not usable: {why}. Send one of 1 to 255 visible ASCII characters."
            ))
        };
        let mut values = self.headers.get_all("idempotency-key").iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                IdempotencyKey::parse(value.as_bytes()).map_err(|error| invalid(error.sentence()))
            }
            (Some(_), Some(_)) => Err(invalid("it was sent more than once")),
            (None, _) => match principal.key_policy.unwrap_or(self.app.settings.key_policy) {
                KeyPolicy::Required => Err(Problem::new(Code::IdempotencyKeyRequired)),
                KeyPolicy::Optional => {
                    self.app.metrics.key_missing(principal.tenant, self.exchange.route());
                    let generated = format!("auto_{}", self.exchange.id);
                    IdempotencyKey::from_text(generated.as_bytes()).map_err(|error| invalid(error.sentence()))
                }
            },
        }
    }

    /// Answers an accepted request once the engine has its result, or when the request's time is
    /// over.
    pub(crate) async fn respond(&self, submitted: impl Future<Output = Submitted>) -> Answered {
        let Ok(submitted) = timeout_at(self.deadline(), submitted).await else {
            // The work goes on without this request; a retry finds it under the same key.
            return Err(in_use().into());
        };
        let problem = match submitted {
            Submitted::Answer { settled, replayed } => return Ok(answer::stored(&settled, replayed)),
            Submitted::Invalid(flaws) => query::invalid(flaws),
            Submitted::NotFound => Problem::new(Code::NotFound),
            Submitted::Mismatch => Problem::new(Code::IdempotencyKeyFingerprintMismatch),
            Submitted::InUse => in_use(),
            Submitted::Expired { original_request_at } => {
                Problem::new(Code::IdempotencyKeyExpired).original_request_at(original_request_at)
            }
            Submitted::InProgress => conflict::busy(),
            Submitted::Pending { payment, retry_after } => pending_advice(&self.headers)
                .retry_after(retry_after.ms().div_ceil(1_000))
                .payment(payment, self.app.service.references())
                .safe_new_key(false),
            Submitted::StoreUnavailable => store_unavailable(),
            Submitted::Draining => Problem::new(Code::ShuttingDown).retry_after(1),
        };
        Err(problem.into())
    }
}

/// A client that sent no key must not repeat its request: the repetition would be executed as a new
/// one.
fn pending_advice(headers: &HeaderMap) -> Problem {
    let problem = Problem::new(Code::OutcomePending);
    if headers.contains_key("idempotency-key") {
        return problem;
    }
    problem.detail(
        "The outcome is not known yet. Do not send the request again: without a key it would be done anew. \
         Read GET /v1/charges/{charge} or GET /v1/payouts/{payout} until its status is final.",
    )
}

fn in_use() -> Problem {
    Problem::new(Code::IdempotencyKeyInUse)
        .retry_after(IN_USE_RETRY_MS / 1_000)
        .retry_after_ms(IN_USE_RETRY_MS)
        .safe_new_key(false)
}
