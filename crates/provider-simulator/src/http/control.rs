//! `/_sim/…`: the control interface for tests. No API key.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::body::Body;
use super::{Cut, read, respond};
use crate::answer::Reply;
use crate::effects::List;
use crate::faults::Faults;
use crate::form::Form;
use crate::refusal::Refusal;
use crate::simulator::Simulator;

/// Answers a control request.
pub(crate) async fn control(sim: &Simulator, head: &Parts, body: Incoming) -> Result<Response<Body>, Cut> {
    let answered = match (&head.method, head.uri.path()) {
        (&Method::GET, "/_sim/effects") => list(sim, head.uri.query().unwrap_or_default()),
        (&Method::DELETE, "/_sim/effects") => {
            sim.reset();
            list(sim, "")
        }
        (&Method::GET, "/_sim/faults") => Ok(show(sim)),
        (&Method::PUT, "/_sim/faults") => read::body(body).await?.and_then(|json| set(sim, &json)),
        (&Method::DELETE, "/_sim/faults") => set(sim, b"{}"),
        (method, path) => Err(Refusal::no_route(method, path)),
    };
    Ok(answered.unwrap_or_else(|refusal| respond::reply(sim, Reply::refused(&refusal))))
}

fn list(sim: &Simulator, query: &str) -> Result<Response<Body>, Refusal> {
    let mut form = Form::parse(query.as_bytes())?;
    let after = match form.take("after") {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            let message = "Invalid after: must be the index of the first effect wanted, counted from 0.";
            Refusal::param("after", "parameter_invalid_integer", message)
        })?,
    };
    form.finish(&[])?;
    Ok(respond::json(sim, StatusCode::OK, Body::Effects(Box::new(List::new(sim.clone(), after)))))
}

fn set(sim: &Simulator, json: &[u8]) -> Result<Response<Body>, Refusal> {
    Faults::parse(json)
        .and_then(|faults| sim.set_faults(faults))
        .map_err(|error| Refusal::request(error.to_string()))?;
    Ok(show(sim))
}

fn show(sim: &Simulator) -> Response<Body> {
    // Numbers, a flag and an optional number always serialize.
    let json = serde_json::to_vec(&sim.faults()).unwrap_or_default();
    respond::reply(sim, Reply::new(StatusCode::OK, Bytes::from(json)))
}
