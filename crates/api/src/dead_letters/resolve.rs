//! `POST /v1/dead-letters/{id}/resolve`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, ResolutionProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::path;
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::dead_letter;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::admin(Route::Resolve, dead_letter::RESOLVE_LAYOUT);

/// Settles a dead letter as a human has decided, at most once per key.
#[utoipa::path(
    post,
    path = "/v1/dead-letters/{id}/resolve",
    tag = "Dead letters",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`dl_…`"), KeyHeader),
    request_body(
        content(
            (dead_letter::schema::ResolveDeadLetter = "application/json"),
            (dead_letter::schema::ResolveDeadLetter = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "It is resolved so.", body = dead_letter::schema::DeadLetterResolution),
        ResolutionProblems,
    )
)]
pub(crate) async fn resolve(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let read = |body: &_, _: &_| dead_letter::read_resolve(body);
    let (request, resolution) = INTAKE.take(app, head, body, exchange, read).await?;
    let id = SubjectId::from_i64(path::number(app, head, ReferenceKind::DeadLetter)?);
    conclude(app, head, exchange, app.service.resolve(request, id, resolution)).await
}
