//! Timelines: the audited steps of whatever a path names, in order.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::exchange::Exchange;
use crate::path;
use crate::query::Page;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::timeline as entry;
use http::request::Parts;

/// One page of the timeline of what the path names, a reference of that kind.
pub(crate) async fn page(
    app: &App,
    head: &Parts,
    exchange: &mut Exchange,
    kind: ReferenceKind,
) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let after = match &page.starting_after {
        None => None,
        Some(text) => Some(entry::read_id(text).ok_or_else(Page::bad_cursor)?),
    };
    let subject = SubjectId::from_i64(path::number(app, head, kind)?);
    let found = app.service.timeline(principal.tenant, subject, after, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))?;
    Ok(answer::list(&page, &found, entry::write))
}
