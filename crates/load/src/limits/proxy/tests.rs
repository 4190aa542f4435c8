use super::*;
use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::plan::tests::small;
use crate::{LoadError, Report};

type Seen = Arc<Mutex<BTreeSet<String>>>;

/// A provider that checks each call and records its key.
async fn provider(seen: Seen, request: Request<Incoming>) -> Response<Full<Bytes>> {
    assert_eq!(request.uri().path(), "/v1/payment_intents");
    assert_eq!(request.headers()["authorization"], PROVIDER_KEY);
    assert_eq!(request.headers()["content-type"], "application/x-www-form-urlencoded");
    let key = request.headers()["idempotency-key"].to_str().unwrap().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let form = std::str::from_utf8(&body).unwrap();
    assert!(form.contains(&format!("counterfoil_payment%5D={key}&")), "{form}");
    seen.lock().unwrap().insert(key);
    Response::new(Full::new(Bytes::from_static(b"{\"id\":\"pi_1\",\"status\":\"succeeded\"}")))
}

async fn loaded(provider: SocketAddr) -> Result<Report, LoadError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = small(listener.local_addr().unwrap());
    tokio::select! {
        served = serve_proxy(listener, provider) => panic!("the proxy ended: {served:?}"),
        report = crate::charge::run(plan, |_| {}) => report,
    }
}

#[tokio::test]
async fn each_request_calls_the_provider_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let report = tokio::select! {
        served = serve(listener, move |request| provider(Arc::clone(&noted), request)) => panic!("ended: {served:?}"),
        report = loaded(addr) => report.unwrap(),
    };
    assert_eq!(report.ok, report.requests, "{report:?}");
    // One more than measured: the charge made before the measurement.
    assert_eq!(seen.lock().unwrap().len() as u64, report.requests + 1);
}

#[tokio::test]
async fn a_provider_that_is_away_is_a_clear_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let message = loaded(addr).await.unwrap_err().to_string();
    assert!(message.contains("none of") && message.contains("with status 502"), "{message}");
}
