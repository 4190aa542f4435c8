//! Parts that the descriptions of many routes share: error answers and parameters.

use std::collections::BTreeMap;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

/// Errors of every route.
pub(crate) struct Problems;

/// Errors of routes about one object.
pub(crate) struct AbsentProblems;

/// Errors of lists and other routes with query parameters.
pub(crate) struct QueryProblems;

/// Errors of charge creation.
pub(crate) struct WriteProblems;

/// Errors of captures, voids and refunds.
pub(crate) struct OperationProblems;

/// Errors of payout creation.
pub(crate) struct PayoutProblems;

/// Errors of resolving a dead letter.
pub(crate) struct ResolutionProblems;

/// Errors of webhooks.
pub(crate) struct WebhookProblems;

/// Errors of writes to the ledger.
pub(crate) struct LedgerProblems;

const DEFAULT: (&str, &str) =
    ("default", "Any other error: `unauthorized`, `forbidden`, `rate_limited`, … as `error` says");
const INVALID: (&str, &str) = ("400", "`invalid_request`");
const ABSENT: (&str, &str) = ("404", "`not_found`: absent, or another tenant's");
const EXPIRED: (&str, &str) = ("410", "`idempotency_key_expired`");
const MISMATCH: (&str, &str) =
    ("422", "`idempotency_key_fingerprint_mismatch`: the key belongs to another request");

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[DEFAULT])
    }
}

impl IntoResponses for AbsentProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[ABSENT, DEFAULT])
    }
}

impl IntoResponses for QueryProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[INVALID, DEFAULT])
    }
}

impl IntoResponses for WriteProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "`idempotency_key_required`, `idempotency_key_invalid`, `invalid_request`; stored and replayed: `insufficient_funds`, `gateway_rejected`",
            ),
            ("402", "`card_declined`; stored and replayed"),
            ("409", "`idempotency_key_in_use`: retry with the same key"),
            EXPIRED,
            MISMATCH,
            ("503", "`outcome_pending`, `store_unavailable`, `gateway_unavailable`, `shutting_down`"),
            DEFAULT,
        ])
    }
}

impl IntoResponses for OperationProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "`idempotency_key_required`, `idempotency_key_invalid`, `invalid_request`; stored and replayed: `insufficient_funds`, `gateway_rejected`",
            ),
            ("402", "`card_declined`; stored and replayed"),
            ABSENT,
            (
                "409",
                "`idempotency_key_in_use`, `payment_in_progress`: retry with the same key; stored and replayed: `charge_state_conflict`",
            ),
            EXPIRED,
            MISMATCH,
            ("502", "`gateway_unauthorized`, `marked_failed`; stored and replayed"),
            ("503", "`outcome_pending`, `store_unavailable`, `gateway_unavailable`, `shutting_down`"),
            DEFAULT,
        ])
    }
}

impl IntoResponses for PayoutProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "`idempotency_key_required`, `idempotency_key_invalid`, `invalid_request`; stored and replayed: `insufficient_funds`, `gateway_rejected`",
            ),
            ("402", "`payout_failed`; stored and replayed"),
            ("409", "`idempotency_key_in_use`, `payment_in_progress`: retry with the same key"),
            EXPIRED,
            MISMATCH,
            ("502", "`gateway_unauthorized`, `marked_failed`; stored and replayed"),
            ("503", "`outcome_pending`, `store_unavailable`, `gateway_unavailable`, `shutting_down`"),
            DEFAULT,
        ])
    }
}

impl IntoResponses for ResolutionProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            ("400", "`idempotency_key_required`, `idempotency_key_invalid`, `invalid_request`"),
            ABSENT,
            (
                "409",
                "`idempotency_key_in_use`: retry with the same key; stored and replayed: `dead_letter_unresolved`",
            ),
            EXPIRED,
            MISMATCH,
            ("503", "`store_unavailable`, `shutting_down`"),
            DEFAULT,
        ])
    }
}

impl IntoResponses for WebhookProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            ("400", "`invalid_signature`, `invalid_request`; nothing was done"),
            ("404", "`not_found`: no provider of that name sends here, or no secret is set for it"),
            ("503", "`store_unavailable`: send the event again"),
            DEFAULT,
        ])
    }
}

impl IntoResponses for LedgerProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "400",
                "`idempotency_key_required`, `idempotency_key_invalid`, `invalid_request`; stored and replayed: `insufficient_funds`, `cap_exceeded`",
            ),
            ABSENT,
            (
                "409",
                "`idempotency_key_in_use`: retry with the same key; stored and replayed: `account_exists`, `asset_exists`, `already_reversed`, `not_reversible`, `hold_ended`",
            ),
            EXPIRED,
            MISMATCH,
            ("503", "`store_unavailable`, `shutting_down`"),
            DEFAULT,
        ])
    }
}

fn problems(cases: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let problem = || Content::new(Some(Ref::from_schema_name("Problem")));
    let response = |description: &str| {
        ResponseBuilder::new().description(description).content("application/problem+json", problem()).build()
    };
    cases.iter().map(|(status, words)| ((*status).to_owned(), response(words).into())).collect()
}

/// The `Idempotency-Key` header of every write.
pub(crate) struct KeyHeader;

impl IntoParams for KeyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "1 to 255 visible ASCII characters, bare or quoted; the same on every retry of this request. Required unless the tenant's policy makes it optional.";
        let schema = text().min_length(Some(1)).max_length(Some(255)).pattern(Some("^[!-~]+$"));
        vec![parameter("Idempotency-Key", ParameterIn::Header, schema, description)]
    }
}

/// The query parameters of every list.
pub(crate) struct PageQuery;

impl IntoParams for PageQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let after = "Id of the last element of the previous page; in the list of assets, its code";
        let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
        vec![
            parameter("limit", ParameterIn::Query, limit, "1 to 100; 20 if absent"),
            parameter("starting_after", ParameterIn::Query, text().min_length(Some(1)), after),
        ]
    }
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn parameter(name: &str, location: ParameterIn, schema: ObjectBuilder, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema.build()))
        .build()
}
