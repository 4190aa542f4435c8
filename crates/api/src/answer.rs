//! Answers: the headers and bytes of each kind. `Request-Id` is added to all of them in one place, by the face.

use crate::query::Page;
use bytes::Bytes;
use counterfoil_core::idempotency::claim::Settled;
use counterfoil_core::idempotency::reply::ReplyMedia;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_wire::list;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::time::Stamp;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};

/// An answer before it is put on the wire.
pub(crate) type Answer = Response<Bytes>;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const IDEMPOTENCY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// 200 with a body of that type.
pub(crate) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    typed(StatusCode::OK, content_type, body.into())
}

/// 200 with JSON.
pub(crate) fn json(body: impl Into<Bytes>) -> Answer {
    ok(ReplyMedia::Json.content_type(), body)
}

/// 200 with one page of a list. One more than asked for was looked up, and says whether there are more.
pub(crate) fn list<'a, T>(page: &Page, found: &'a [T], write: impl FnMut(&mut Vec<u8>, &'a T)) -> Answer {
    json(list::write(found.iter().take(page.limit), found.len() > page.limit, write))
}

/// Any status with a body of that type.
pub(crate) fn typed(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// A stored answer, its bytes unchanged.
pub(crate) fn stored(settled: &Settled, replayed: bool) -> Answer {
    let reply = &settled.reply;
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = typed(status, reply.media.content_type(), reply.body.clone());
    let headers = answer.headers_mut();
    if let Some(location) = reply.location.as_deref().and_then(|path| HeaderValue::from_str(path).ok()) {
        headers.insert(LOCATION, location);
    }
    if let Ok(expires) = HeaderValue::from_str(Stamp::of(settled.windows.replay_until).as_str()) {
        headers.insert(IDEMPOTENCY_EXPIRES, expires);
    }
    if replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    answer
}

/// An error for the request of that id.
pub(crate) fn problem(problem: &Problem, request: Ulid) -> Answer {
    let status = StatusCode::from_u16(problem.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = typed(status, ReplyMedia::Problem.content_type(), problem.body(request));
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = problem.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.code() == Code::Unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// The `Request-Id` header.
pub(crate) fn request_id(id: Ulid) -> HeaderValue {
    // 30 ASCII characters are always a header value.
    HeaderValue::from_maybe_shared(Bytes::from(format!("req_{id}")))
        .unwrap_or_else(|_| HeaderValue::from_static("req_"))
}

/// The store could not be read.
pub(crate) fn store_unavailable() -> Problem {
    Problem::new(Code::StoreUnavailable).retry_after(1)
}
