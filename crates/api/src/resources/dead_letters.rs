//! Dead letters, work that needs an operator: reading and resolution.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::{AbsentProblems, KeyHeader, PageQuery, QueryProblems, ResolutionProblems};
use crate::request::Call;
use crate::request::intake::Intake;
use crate::request::query::Page;
use axum::body::Body;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::dead_letter;

/// The tenant's dead letters, newest first.
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
pub(crate) async fn list(call: Call) -> Answered {
    let principal = call.admit(Scope::Admin).await?;
    let page = Page::read(call.uri.query())?;
    let references = call.app.service.references();
    // The cursor need not exist: the last dead letter of a page may be resolved before the next
    // page is read.
    let before = page.cursor(references, ReferenceKind::DeadLetter)?.map(SubjectId::from_i64);
    let found = call.app.service.dead_letters(principal.tenant, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    Ok(answer::list(&page, &found, |out, one| dead_letter::write(out, one, references)))
}

/// A dead letter with the evidence; not found after the resolution.
#[utoipa::path(
    get,
    path = "/v1/dead-letters/{id}",
    tag = "Dead letters",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`dl_…`")),
    responses(
        (status = 200, description = "The dead letter in its current state.", body = dead_letter::schema::DeadLetter),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    call.fetch_one(
        Scope::Admin,
        ReferenceKind::DeadLetter,
        |service, tenant, id| service.dead_letter(tenant, SubjectId::from_i64(id)),
        dead_letter::write,
    )
    .await
}

/// Resolves a dead letter by an operator's decision, at most once per key.
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
        (status = 200, description = "The dead letter is resolved.", body = dead_letter::schema::DeadLetterResolution),
        ResolutionProblems,
    )
)]
pub(crate) async fn resolve(call: Call, body: Body) -> Answered {
    let intake = Intake::admin(dead_letter::RESOLVE_LAYOUT);
    let read = |body: &_, _: &_| dead_letter::read_resolve(body);
    let (request, resolution) = call.accept(body, &intake, read).await?;
    let id = SubjectId::from_i64(call.id(ReferenceKind::DeadLetter)?);
    call.respond(call.app.service.resolve(request, id, resolution)).await
}
