//! Every route of the provider on one screen.

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use super::body::Body;
use super::control::control;
use super::{Cut, read, respond};
use crate::answer::Reply;
use crate::execute::{Command, Job, Outcome, post};
use crate::form::Form;
use crate::intents::{self, Cancel, Capture, Create, Search};
use crate::payouts::{self, CreatePayout};
use crate::refunds::CreateRefund;
use crate::refusal::Refusal;
use crate::simulator::Simulator;
use crate::state::State;

/// Longest time that a hung request stays open.
const HANG_MS_MAX: u64 = 600_000;

/// The operation of a request under `/v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route<'a> {
    Create,
    Capture(&'a str),
    Cancel(&'a str),
    Refund,
    Payout,
    GetPayout(&'a str),
    Get(&'a str),
    Search,
}

/// Answers a request, or asks for its connection to be cut.
pub(crate) async fn dispatch(sim: Simulator, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    if head.uri.path().starts_with("/_sim/") {
        return control(&sim, &head, body).await;
    }
    let outcome = match accept(&head) {
        Err(refusal) => refused(&refusal),
        Ok(Route::Get(id)) => query(&sim, |state, as_of_ms| intents::get(state, id, as_of_ms)).await,
        Ok(Route::GetPayout(id)) => query(&sim, |state, as_of_ms| payouts::get(state, id, as_of_ms)).await,
        Ok(Route::Search) => search(&sim, &head).await,
        Ok(
            route @ (Route::Create | Route::Capture(_) | Route::Cancel(_) | Route::Refund | Route::Payout),
        ) => match read::body(body).await?.and_then(|form| job(&head, route, &form)) {
            Ok(job) => post(&sim, job).await,
            Err(refusal) => refused(&refusal),
        },
    };
    match outcome {
        Outcome::Reply(reply) => Ok(respond::reply(&sim, reply)),
        Outcome::Cut => Err(Cut),
        Outcome::Hang => {
            sim.clock().wait(HANG_MS_MAX).await;
            Err(Cut)
        }
    }
}

fn accept(head: &Parts) -> Result<Route<'_>, Refusal> {
    read::check_api_key(&head.headers)?;
    route(&head.method, head.uri.path()).ok_or_else(|| Refusal::no_route(&head.method, head.uri.path()))
}

fn route<'a>(method: &Method, path: &'a str) -> Option<Route<'a>> {
    if path == "/v1/refunds" {
        return (method == Method::POST).then_some(Route::Refund);
    }
    if let Some(rest) = path.strip_prefix("/v1/payouts") {
        return match (method, rest.strip_prefix('/')) {
            (&Method::POST, None) if rest.is_empty() => Some(Route::Payout),
            (&Method::GET, Some(id)) if !id.is_empty() && !id.contains('/') => Some(Route::GetPayout(id)),
            (_, _) => None,
        };
    }
    let rest = path.strip_prefix("/v1/payment_intents")?;
    if rest.is_empty() {
        return (method == Method::POST).then_some(Route::Create);
    }
    let mut parts = rest.strip_prefix('/')?.split('/');
    match (method, parts.next()?, parts.next(), parts.next()) {
        (&Method::GET, "search", None, None) => Some(Route::Search),
        (&Method::GET, id, None, None) if !id.is_empty() => Some(Route::Get(id)),
        (&Method::POST, id, Some("capture"), None) if !id.is_empty() => Some(Route::Capture(id)),
        (&Method::POST, id, Some("cancel"), None) if !id.is_empty() => Some(Route::Cancel(id)),
        // Other paths exist at Stripe, but not here.
        (_, _, _, _) => None,
    }
}

fn job(head: &Parts, route: Route<'_>, body: &[u8]) -> Result<Job, Refusal> {
    read::check_form_type(&head.headers)?;
    let key = read::idempotency_key(&head.headers)?;
    let form = Form::parse(body)?;
    let fingerprint = form.fingerprint(head.uri.path());
    let command = match route {
        Route::Create => Command::Create(Create::parse(form)?),
        Route::Capture(id) => Command::Capture(Capture::parse(id, form)?),
        Route::Cancel(id) => Command::Cancel(Cancel::parse(id, form)?),
        Route::Refund => Command::Refund(CreateRefund::parse(form)?),
        Route::Payout => Command::Payout(CreatePayout::parse(form)?),
        Route::Get(_) | Route::GetPayout(_) | Route::Search => {
            return Err(Refusal::no_route(&head.method, head.uri.path()));
        }
    };
    Ok(Job { command, key, fingerprint })
}

async fn query(sim: &Simulator, get: impl FnOnce(&State, u64) -> Reply) -> Outcome {
    lag(sim).await;
    let state = sim.state();
    let as_of_ms = sim.now_ms().saturating_sub(state.injector.faults().query_lag_ms);
    Outcome::Reply(get(&state, as_of_ms))
}

async fn search(sim: &Simulator, head: &Parts) -> Outcome {
    let query = head.uri.query().unwrap_or_default();
    let search = match Form::parse(query.as_bytes()).and_then(Search::parse) {
        Ok(search) => search,
        Err(refusal) => return refused(&refusal),
    };
    lag(sim).await;
    let state = sim.state();
    let as_of_ms = sim.now_ms().saturating_sub(state.injector.faults().query_lag_ms);
    Outcome::Reply(Reply::new(StatusCode::OK, intents::search(&state, &search, as_of_ms)))
}

async fn lag(sim: &Simulator) {
    let latency_ms = sim.state().injector.faults().latency_ms;
    if latency_ms > 0 {
        sim.clock().wait(latency_ms).await;
    }
}

fn refused(refusal: &Refusal) -> Outcome {
    Outcome::Reply(Reply::refused(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_exact() {
        assert_eq!(route(&Method::POST, "/v1/payment_intents"), Some(Route::Create));
        assert_eq!(route(&Method::GET, "/v1/payment_intents/search"), Some(Route::Search));
        assert_eq!(route(&Method::GET, "/v1/payment_intents/pi_1"), Some(Route::Get("pi_1")));
        assert_eq!(route(&Method::POST, "/v1/payment_intents/pi_1/capture"), Some(Route::Capture("pi_1")));
        assert_eq!(route(&Method::POST, "/v1/payment_intents/pi_1/cancel"), Some(Route::Cancel("pi_1")));
        assert_eq!(route(&Method::POST, "/v1/refunds"), Some(Route::Refund));
        assert_eq!(route(&Method::POST, "/v1/payouts"), Some(Route::Payout));
        assert_eq!(route(&Method::GET, "/v1/payouts/po_1"), Some(Route::GetPayout("po_1")));
        for (method, path) in [
            (Method::GET, "/v1/payment_intents"),
            (Method::GET, "/v1/refunds"),
            (Method::GET, "/v1/payouts"),
            (Method::GET, "/v1/payouts/"),
            (Method::POST, "/v1/payouts/po_1"),
            (Method::GET, "/v1/payouts/po_1/x"),
            (Method::POST, "/v1/payoutsx"),
            (Method::POST, "/v1/payment_intentsx"),
            (Method::POST, "/v1/payment_intents/"),
            (Method::POST, "/v1/payment_intents/pi_1"),
            (Method::POST, "/v1/payment_intents/pi_1/capture/x"),
            (Method::POST, "/v1/payment_intents//capture"),
            (Method::DELETE, "/v1/payment_intents/pi_1"),
            (Method::GET, "/"),
        ] {
            assert_eq!(route(&method, path), None, "{method} {path}");
        }
    }
}
