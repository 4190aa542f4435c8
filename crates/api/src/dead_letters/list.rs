//! `GET /v1/dead-letters`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::{PageQuery, QueryProblems};
use crate::exchange::{self, Exchange};
use crate::query::Page;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::dead_letter;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// What of the tenant's needs a human, newest first.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    tag = "Dead letters",
    security(("api_key" = [])),
    params(PageQuery),
    responses(
        (status = 200, description = "One page.", body = dead_letter::schema::DeadLetterList),
        QueryProblems,
    )
)]
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Admin, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let references = app.service.references();
    // The last one of a page may be resolved before the next page is asked for; it is a place to go on from all the same.
    let before = page.cursor(references, ReferenceKind::DeadLetter)?.map(SubjectId::from_i64);
    let found = app.service.dead_letters(principal.tenant, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    Ok(answer::list(&page, &found, |out, one| dead_letter::write(out, one, references)))
}
