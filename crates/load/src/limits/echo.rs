//! The cost of HTTP alone: the server reads every request and answers with the same charge.

use std::io;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::net::TcpListener;

use super::serve::serve;
use crate::report::{Progress, Report};
use crate::{LoadError, Plan};

/// As long as the answer to the load's charge.
const CHARGE: &str = r#"{"id":"ch_01JCQ2W8Z5T7K3M9N4P6R8S0VX","object":"charge","amount":1250,"currency":"USD","status":"succeeded","captured":true,"amount_refunded":0,"payment_method":"pm_card_visa","destination":"ac_01JCQ2W8Z5T7K3M9N4P6R8S0VX","gateway":{"name":"stripe","reference":"pi_01JCQ2W8Z5T7K3M9N4P6R8S0VX"},"failure":null,"description":"bench","metadata":{"order":"0000000000"},"created_at":"2026-01-01T00:00:00.000Z"}"#;

/// Serves until the listener fails.
pub async fn serve_echo(listener: TcpListener) -> io::Result<()> {
    serve(listener, echo).await
}

/// Runs the load on an echo server, without the plan's replays, because the server stores nothing.
pub async fn run_echo(plan: Plan, progress: impl Fn(Progress)) -> Result<Report, LoadError> {
    crate::charge::run(Plan { replay_percent: 0, ..plan }, progress).await
}

async fn echo(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let whole = request.into_body().collect().await.is_ok();
    charge_answer(
        if whole { StatusCode::CREATED } else { StatusCode::BAD_REQUEST },
        Bytes::from_static(CHARGE.as_bytes()),
    )
}

/// An answer with the headers that a charge has.
pub fn charge_answer(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(LOCATION, HeaderValue::from_static("/v1/charges/ch_01JCQ2W8Z5T7K3M9N4P6R8S0VX"));
    let request_id = HeaderName::from_static("request-id");
    headers.insert(request_id, HeaderValue::from_static("req_01JCQ2W8Z5T7K3M9N4P6R8S0VX"));
    let expires = HeaderName::from_static("idempotency-expires");
    headers.insert(expires, HeaderValue::from_static("2026-01-02T00:00:00.000Z"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_echo_server_carries_load() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plan = crate::plan::tests::small(listener.local_addr().unwrap());
        let report = tokio::select! {
            served = serve_echo(listener) => panic!("the server ended: {served:?}"),
            report = run_echo(Plan { replay_percent: 50, ..plan }, |_| {}) => report.unwrap(),
        };
        assert!(report.ok > 0 && report.ok == report.requests, "{report:?}");
        assert!(report.p50_us <= report.p99_us && report.p99_us <= report.max_us);
    }
}
