//! Writing response heads.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Body;
use crate::answer::Reply;
use crate::simulator::Simulator;

const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A reply with its headers.
pub(crate) fn reply(sim: &Simulator, reply: Reply) -> Response<Body> {
    let mut response = json(sim, reply.status, Body::Whole(Some(reply.body)));
    if reply.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// A JSON body with its headers.
pub(crate) fn json(sim: &Simulator, status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_maybe_shared(Bytes::from(sim.next_request_id())) {
        headers.insert(REQUEST_ID, id);
    }
    response
}
