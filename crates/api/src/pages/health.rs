//! `/healthz`: the process is alive. `/readyz`: the process should receive requests.

use crate::answer::{self, Answered};
use crate::request::Call;
use axum::body::Body;
use counterfoil_wire::json;
use http::StatusCode;

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "Operation", responses((status = 200, description = "The process answers.")))]
pub(crate) async fn healthz() -> Answered {
    Ok(answer::json(&br#"{"status":"ok"}"#[..]))
}

/// Whether new requests should be sent here.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "Operation",
    responses(
        (status = 200, description = "Send requests here."),
        (status = 503, description = "Send no requests here; `reason` says why."),
    )
)]
pub(crate) async fn readyz(call: Call) -> Answered {
    let Err(reason) = call.app.service.ready().await else {
        return Ok(answer::json(&br#"{"status":"ready"}"#[..]));
    };
    let mut body = Vec::new();
    json::object(&mut body, |all| {
        all.string("status", "unavailable").string("reason", &reason);
    });
    Ok(answer::typed(StatusCode::SERVICE_UNAVAILABLE, "application/json", Body::from(body)))
}
