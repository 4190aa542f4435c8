//! Answers: headers and bodies of every kind. The dispatcher adds `Request-Id`.

use crate::request::query::Page;
use axum::body::Body;
use axum::response::IntoResponse;
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

pub(crate) type Answer = Response<Body>;

/// The result of a handler.
pub(crate) type Answered = Result<Answer, Failure>;

/// A handler's error. The dispatcher writes the problem, because its body names the request.
#[derive(Debug)]
pub(crate) struct Failure(Problem);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure(problem)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Answer {
        let mut answer = Answer::default();
        answer.extensions_mut().insert(self.0);
        answer
    }
}

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const IDEMPOTENCY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// 200 with a body of the given type.
pub(crate) fn ok(content_type: &'static str, body: impl Into<Body>) -> Answer {
    typed(StatusCode::OK, content_type, body.into())
}

/// 200 with JSON.
pub(crate) fn json(body: impl Into<Body>) -> Answer {
    ok(ReplyMedia::Json.content_type(), body)
}

/// 200 with one page of a list. `found` has one element more than the page if there are more.
pub(crate) fn list<'a, T>(page: &Page, found: &'a [T], write: impl FnMut(&mut Vec<u8>, &'a T)) -> Answer {
    json(list::write(found.iter().take(page.limit), found.len() > page.limit, write))
}

/// Any status with a body of the given type.
pub(crate) fn typed<B>(status: StatusCode, content_type: &'static str, body: B) -> Response<B> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// A stored answer, its bytes unchanged.
pub(crate) fn stored(settled: &Settled, replayed: bool) -> Answer {
    let reply = &settled.reply;
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = typed(status, reply.media.content_type(), reply.body.clone().into());
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

/// An error, for the request with that id.
pub(crate) fn problem(problem: &Problem, request: Ulid) -> Response<Bytes> {
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

/// The value of the `Request-Id` header.
pub(crate) fn request_id(id: Ulid) -> HeaderValue {
    // 30 ASCII characters are always a header value.
    HeaderValue::from_maybe_shared(Bytes::from(format!("req_{id}")))
        .unwrap_or_else(|_| HeaderValue::from_static("req_"))
}

/// The store could not be read.
pub(crate) fn store_unavailable() -> Problem {
    Problem::new(Code::StoreUnavailable).retry_after(1)
}
