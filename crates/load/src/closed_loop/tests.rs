//! Runs the load against a small server that keeps or breaks the promises about keys.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::charge::run;
use crate::limits::serve;
use crate::plan::tests::small;

/// The server's treatment of the second request with a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Faithful,
    ChargesAgain,
    ForgetsTheMark,
    SaysNotNow,
}

/// Charges by key: the request's body and the answer's.
type Charges = BTreeMap<String, (Bytes, Bytes)>;

struct Server {
    manner: Manner,
    charges: Mutex<Charges>,
    requests: AtomicUsize,
}

impl Server {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        assert_eq!(request.headers()["authorization"], "Bearer sk_test_demo");
        let key = request.headers()["idempotency-key"].to_str().unwrap().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let nth = self.requests.fetch_add(1, Ordering::Relaxed);
        let fresh = Bytes::from(format!("{{\"id\":\"ch_{nth}\"}}"));
        let mut charges = self.charges.lock().unwrap();
        let answer = Response::builder().status(StatusCode::CREATED).header("request-id", nth.to_string());
        let Some((first_body, first_answer)) = charges.get(&key) else {
            charges.insert(key, (body, fresh.clone()));
            return answer.body(Full::new(fresh)).unwrap();
        };
        assert_eq!(first_body, &body, "a replay must send the same body");
        let first = Full::new(first_answer.clone());
        let marked = answer.header("idempotent-replayed", "true");
        match self.manner {
            Manner::Faithful => marked.body(first).unwrap(),
            Manner::ChargesAgain => marked.body(Full::new(fresh)).unwrap(),
            Manner::ForgetsTheMark => Response::builder().status(StatusCode::CREATED).body(first).unwrap(),
            Manner::SaysNotNow => Response::builder().status(StatusCode::CONFLICT).body(first).unwrap(),
        }
    }
}

/// Runs the plan against such a server; returns the report and the charges.
async fn against(manner: Manner, adjust: impl Fn(Plan) -> Plan) -> (Result<Report, LoadError>, Charges) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = adjust(small(listener.local_addr().unwrap()));
    let server = Arc::new(Server { manner, charges: Mutex::default(), requests: AtomicUsize::new(0) });
    let serving = Arc::clone(&server);
    let report = tokio::select! {
        served = serve(listener, move |request| Arc::clone(&serving).answer(request)) => panic!("ended: {served:?}"),
        report = run(plan, |_| {}) => report,
    };
    let charges = std::mem::take(&mut *server.charges.lock().unwrap());
    (report, charges)
}

fn replaying(percent: u8) -> impl Fn(Plan) -> Plan {
    move |plan| Plan { replay_percent: percent, ..plan }
}

#[tokio::test]
async fn every_charge_has_a_key_of_its_own() {
    let (report, charges) = against(Manner::Faithful, replaying(0)).await;
    let report = report.unwrap();
    assert_eq!((report.ok, report.ok_replays), (report.requests, 0), "{report:?}");
    // One more than measured: the charge made before the measurement.
    assert_eq!(charges.len() as u64, report.requests + 1);
    assert!(charges.keys().all(|key| key.starts_with("run1-")));
    assert!(report.seconds >= 0.15 && report.per_second > 0.0);
}

#[tokio::test]
async fn faithful_replays_are_counted_as_such() {
    let (report, charges) = against(Manner::Faithful, replaying(50)).await;
    let report = report.unwrap();
    assert_eq!((report.ok, report.differing_replays), (report.requests, 0), "{report:?}");
    assert_eq!(charges.len() as u64, report.ok - report.ok_replays + 1);
    assert!(report.ok_replays > 0);
}

#[tokio::test]
async fn replays_alone_charge_only_the_seeds() {
    let (report, charges) = against(Manner::Faithful, replaying(100)).await;
    let report = report.unwrap();
    assert_eq!((report.ok_replays, report.differing_replays), (report.requests, 0), "{report:?}");
    assert_eq!(charges.len(), 4 * SEEDS_FOR_REPLAYS_ONLY);
}

#[tokio::test]
async fn a_second_charge_under_a_key_is_found() {
    let (report, _) = against(Manner::ChargesAgain, replaying(50)).await;
    let report = report.unwrap();
    assert!(report.differing_replays > 0 && report.ok_replays == 0, "{report:?}");
    assert_eq!(report.requests, report.ok + report.differing_replays);
}

#[tokio::test]
async fn a_replay_without_its_mark_is_found() {
    let (report, _) = against(Manner::ForgetsTheMark, replaying(50)).await;
    let report = report.unwrap();
    assert!(report.differing_replays > 0 && report.ok_replays == 0, "{report:?}");
}

#[tokio::test]
async fn a_replay_put_off_is_an_error_by_status() {
    let (report, _) = against(Manner::SaysNotNow, replaying(50)).await;
    let report = report.unwrap();
    assert_eq!(report.differing_replays, 0);
    assert_eq!(report.errors_by_status.keys().copied().collect::<Vec<_>>(), [409]);
    assert_eq!(report.requests, report.ok + report.errors_by_status[&409]);
}

#[tokio::test]
async fn the_warmup_is_not_counted() {
    let warm = |plan| Plan { warmup: Duration::from_millis(150), ..plan };
    let (report, charges) = against(Manner::Faithful, warm).await;
    let report = report.unwrap();
    assert!(charges.len() as u64 > report.requests + 1, "{report:?}");
}

#[tokio::test]
async fn keys_of_an_earlier_run_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = small(listener.local_addr().unwrap());
    let server = Arc::new(Server {
        manner: Manner::Faithful,
        charges: Mutex::default(),
        requests: AtomicUsize::new(0),
    });
    let twice = async {
        run(plan.clone(), |_| {}).await.unwrap();
        run(plan, |_| {}).await.unwrap_err().to_string()
    };
    let message = tokio::select! {
        served = serve(listener, move |request| Arc::clone(&server).answer(request)) => panic!("ended: {served:?}"),
        message = twice => message,
    };
    assert!(message.contains("choose another key prefix"), "{message}");
}

/// Answers every request of every connection with the same bytes; closes the connection if `close`
/// is set.
async fn fixed(listener: TcpListener, bytes: &'static [u8], close: bool) {
    let mut open = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        open.spawn(async move {
            let mut request = [0; 4096];
            while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                if stream.write_all(bytes).await.is_err() || close {
                    return;
                }
            }
        });
    }
}

async fn against_fixed(bytes: &'static [u8], close: bool) -> Result<Report, LoadError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = small(listener.local_addr().unwrap());
    tokio::select! {
        () = fixed(listener, bytes, close) => panic!("the server ended"),
        report = run(plan, |_| {}) => report,
    }
}

#[tokio::test]
async fn hopeless_servers_end_the_run_with_a_sentence() {
    for (bytes, says) in [
        (b"HTTP/1.1 401 X\r\ncontent-length: 9\r\n\r\nwho, you?".as_slice(), "401: who, you?"),
        (b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "chunked"),
        (b"220 mail.example.com ESMTP\r\n", "is this an HTTP server?"),
        (b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n", "with status 503"),
    ] {
        let message = against_fixed(bytes, false).await.unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }
    let message = against_fixed(b"HTTP/1.1 201 Cr", true).await.unwrap_err().to_string();
    assert!(message.contains("closed the connection before"), "{message}");
}

#[tokio::test]
async fn a_server_that_closes_politely_is_called_again() {
    let closing = b"HTTP/1.1 201 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let report = against_fixed(closing, true).await.unwrap();
    assert_eq!((report.ok, report.transport_errors), (report.requests, 0), "{report:?}");
    assert!(report.ok > 4, "{report:?}");
}

#[tokio::test]
async fn a_server_that_cuts_every_connection_costs_transport_errors() {
    // The server promises to keep the connection and closes it, so every second call finds it
    // closed.
    let report = against_fixed(b"HTTP/1.1 201 X\r\ncontent-length: 0\r\n\r\n", true).await.unwrap();
    assert!(report.transport_errors > 0 && report.first_transport_error.is_some(), "{report:?}");
    assert_eq!(report.requests, report.ok + report.transport_errors);
}

#[tokio::test]
async fn an_unreachable_server_is_a_clear_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = small(listener.local_addr().unwrap());
    drop(listener);
    let message = run(plan, |_| {}).await.unwrap_err().to_string();
    assert!(message.contains("is the server running"), "{message}");
}

#[tokio::test]
async fn progress_ends_at_the_total() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = small(listener.local_addr().unwrap());
    let told = Mutex::new(Vec::new());
    let report = tokio::select! {
        served = crate::limits::serve_echo(listener) => panic!("ended: {served:?}"),
        report = run(plan, |step| told.lock().unwrap().push(step)) => report.unwrap(),
    };
    let told = told.into_inner().unwrap();
    let last = told.last().unwrap();
    assert_eq!((last.elapsed, last.ok, last.failed), (last.total, report.ok, 0));
    assert!(told.windows(2).all(|pair| pair[0].elapsed <= pair[1].elapsed && pair[0].ok <= pair[1].ok));
}
