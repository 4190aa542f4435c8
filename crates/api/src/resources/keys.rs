//! Idempotency keys: the state of a key, and whether a new key is safe.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::Problems;
use crate::request::{Call, query};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::form::{self, Plus};
use counterfoil_wire::key;
use counterfoil_wire::problem::{Code, Problem};

/// The record of an idempotency key.
#[utoipa::path(
    get,
    path = "/v1/idempotency-keys/{key}",
    tag = "Idempotency keys",
    security(("api_key" = [])),
    params(("key" = String, Path, description = "The key, percent-encoded where a path needs it")),
    responses(
        (status = 200, description = "The state of the key.", body = key::KeyRecord),
        (status = 404, description = "`not_found`: never used, or free again", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        Problems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    let principal = call.admit(Scope::Read).await?;
    query::must_be_empty(&call.uri)?;
    let invalid = |why: &str| {
        Problem::new(Code::IdempotencyKeyInvalid)
            .detail(format!("The key in the path is not usable: {why}. Percent-encode the key you sent."))
    };
    let text = form::decode(call.parameter().as_bytes(), Plus::Plus);
    let text = text.map_err(|error| invalid(&error.message))?;
    let key = IdempotencyKey::from_text(text.as_bytes()).map_err(|error| invalid(error.sentence()))?;
    let service = &call.app.service;
    let found = service.claim(principal.tenant, ClaimId::new(principal.tenant, &key)).await;
    let view = found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))?;
    let body = key::write(&view, service.references(), service.now());
    Ok(answer::json(body.ok_or(Problem::new(Code::NotFound))?))
}
