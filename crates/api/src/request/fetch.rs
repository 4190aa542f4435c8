//! The read routes that all resources have: one object, one page of a list, the timeline of an
//! object.

use super::Call;
use super::query::{self, Page};
use crate::answer::{self, Answered, store_unavailable};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{SubjectId, TenantId};
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_engine::service::{Principal, Service, ServiceFuture};
use counterfoil_store::ReadError;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::timeline;
use std::sync::Arc;

pub(crate) type Found<'a, T> = ServiceFuture<'a, Result<T, ReadError>>;

/// The checked parts of a list request: the principal, the page, and the id the page starts after.
pub(crate) struct PageStart {
    pub(crate) principal: Arc<Principal>,
    pub(crate) page: Page,
    pub(crate) before: Option<i64>,
}

impl Call {
    /// Answers with the object named in the path; `find` looks up an id.
    pub(crate) async fn fetch_one<'a, T>(
        &'a self,
        scope: Scope,
        kind: ReferenceKind,
        find: impl FnOnce(&'a dyn Service, TenantId, i64) -> Found<'a, Option<T>>,
        write: impl FnOnce(&mut Vec<u8>, &T, &References),
    ) -> Answered {
        let principal = self.admit(scope).await?;
        query::must_be_empty(&self.uri)?;
        let id = self.id(kind)?;
        let found = find(&*self.app.service, principal.tenant, id).await.map_err(|_| store_unavailable())?;
        let mut body = Vec::with_capacity(512);
        write(&mut body, &found.ok_or(Problem::new(Code::NotFound))?, self.app.service.references());
        Ok(answer::json(body))
    }

    /// Answers with one page of a tenant's objects, newest first. `find` looks up the object the
    /// page starts after, `list` the objects older than that one.
    pub(crate) async fn fetch_page<'a, O, T>(
        &'a self,
        kind: ReferenceKind,
        find: impl FnOnce(&'a dyn Service, TenantId, i64) -> Found<'a, Option<O>>,
        list: impl FnOnce(&'a dyn Service, TenantId, Option<i64>, usize) -> Found<'a, Vec<T>>,
        write: impl Fn(&mut Vec<u8>, &T, &References),
    ) -> Answered {
        let PageStart { principal, page, before } = self.page_start(kind, find).await?;
        let found = list(&*self.app.service, principal.tenant, before, page.limit + 1).await;
        let found = found.map_err(|_| store_unavailable())?;
        let references = self.app.service.references();
        Ok(answer::list(&page, &found, |out, one| write(out, one, references)))
    }

    /// Checks the API key and the query of a list. The object a page starts after must be the
    /// tenant's own: another tenant's object is refused exactly as an absent one.
    pub(crate) async fn page_start<'a, O>(
        &'a self,
        kind: ReferenceKind,
        find: impl FnOnce(&'a dyn Service, TenantId, i64) -> Found<'a, Option<O>>,
    ) -> Result<PageStart, Problem> {
        let principal = self.admit(Scope::Read).await?;
        let page = Page::read(self.uri.query())?;
        let before = page.cursor(self.app.service.references(), kind)?;
        if let Some(id) = before {
            let own = find(&*self.app.service, principal.tenant, id).await;
            own.map_err(|_| store_unavailable())?.ok_or_else(Page::bad_cursor)?;
        }
        Ok(PageStart { principal, page, before })
    }

    /// Answers with one page of the timeline of the object named in the path.
    pub(crate) async fn fetch_timeline(&self, kind: ReferenceKind) -> Answered {
        let principal = self.admit(Scope::Read).await?;
        let page = Page::read(self.uri.query())?;
        let after = match &page.starting_after {
            None => None,
            Some(text) => Some(timeline::read_id(text).ok_or_else(Page::bad_cursor)?),
        };
        let subject = SubjectId::from_i64(self.id(kind)?);
        let found = self.app.service.timeline(principal.tenant, subject, after, page.limit + 1).await;
        let found = found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))?;
        Ok(answer::list(&page, &found, timeline::write))
    }
}
