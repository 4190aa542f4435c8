//! Runs the load against a small server that posts transfers, or only says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;
use crate::limits::serve;
use crate::plan::tests::small;

pub(crate) fn pairs(count: usize) -> Vec<(String, String)> {
    (0..count).map(|number| (format!("ac_from{number:04}"), format!("ac_to{number:04}"))).collect()
}

/// The server's treatment of requests.
#[derive(Clone, Copy)]
enum Manner {
    Posts,
    /// Refuses every fifth transfer of a bulk request.
    RefusesSome,
    SaysAccepted,
    SaysItIsAReplay,
}

/// Answers a request with one transfer or many, and counts posted transfers.
async fn answer(manner: Manner, posted: Arc<AtomicU64>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let many = match request.uri().path() {
        "/v1/transfers" => false,
        "/v1/transactions/bulk" => true,
        other => panic!("no such route: {other}"),
    };
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let asked = if many { body["transactions"].as_array().unwrap().len() } else { 1 };
    let refused = |nth: &usize| many && matches!(manner, Manner::RefusesSome) && nth % 5 == 4;
    let result = |nth: usize| {
        let word = if refused(&nth) { "refused" } else { "posted" };
        format!("{{\"status\":\"{word}\",\"note\":\"{nth}\"}}")
    };
    posted.fetch_add((0..asked).filter(|nth| !refused(nth)).count() as u64, Ordering::Relaxed);
    let results: Vec<String> = (0..asked).map(result).collect();
    let status = match manner {
        Manner::SaysAccepted => 202,
        Manner::Posts | Manner::RefusesSome | Manner::SaysItIsAReplay if many => 200,
        Manner::Posts | Manner::RefusesSome | Manner::SaysItIsAReplay => 201,
    };
    let told = Response::builder().status(status);
    let told = match manner {
        Manner::SaysItIsAReplay => told.header("idempotent-replayed", "true"),
        Manner::Posts | Manner::RefusesSome | Manner::SaysAccepted => told,
    };
    told.body(Full::new(Bytes::from(format!("[{}]", results.join(","))))).unwrap()
}

/// Runs the load; returns the report and the server's count of posted transfers.
async fn against(manner: Manner, batch: usize) -> (Result<Report, LoadError>, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = small(listener.local_addr().unwrap());
    let posted = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&posted);
    let serving = serve(listener, move |request| answer(manner, Arc::clone(&counted), request));
    let report = tokio::select! {
        served = serving => panic!("ended: {served:?}"),
        report = run(plan, Transfers { pairs: pairs(20), batch }, |_| {}) => report,
    };
    (report, posted.load(Ordering::Relaxed))
}

#[test]
fn transfers_out_of_bounds_are_refused() {
    let plan = small("127.0.0.1:1".parse().unwrap());
    let good = Transfers { pairs: pairs(3), batch: 10 };
    assert!(good.check(&plan).is_ok());
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let odd = [
        Transfers { pairs: Vec::new(), ..good.clone() },
        Transfers { batch: 0, ..good.clone() },
        Transfers { batch: BATCH_MAX + 1, ..good.clone() },
        Transfers { pairs: vec![pair("a", "b"), pair("aa", "b")], ..good.clone() },
        Transfers { pairs: vec![pair("a", "b"), pair("a", "bb")], ..good.clone() },
        Transfers { pairs: vec![pair("a\"", "b")], ..good.clone() },
        Transfers { pairs: vec![pair("", "b")], ..good.clone() },
    ];
    for (number, transfers) in odd.iter().enumerate() {
        assert!(matches!(transfers.check(&plan), Err(LoadError::Plan(_))), "transfers {number}");
    }
    let replaying = Plan { replay_percent: 1, ..plan };
    assert!(matches!(good.check(&replaying), Err(LoadError::Plan(_))));
    assert!(Transfers { batch: 1, ..good }.check(&replaying).is_ok());
}

#[tokio::test]
async fn an_answer_that_does_not_say_created_is_no_transfer() {
    for batch in [1, 10] {
        let message = against(Manner::SaysAccepted, batch).await.0.unwrap_err().to_string();
        assert!(message.contains("none of") && message.contains("with status 202"), "{message}");
    }
}

#[tokio::test]
async fn a_replay_is_no_new_transfer() {
    for batch in [1, 10] {
        let message = against(Manner::SaysItIsAReplay, batch).await.0.unwrap_err().to_string();
        assert!(message.contains("choose another key prefix"), "{message}");
    }
}

#[tokio::test]
async fn refused_items_of_a_request_are_not_counted_as_transfers() {
    let (report, posted) = against(Manner::RefusesSome, 10).await;
    let report = report.unwrap();
    assert_eq!(report.errors_by_status.keys().copied().collect::<Vec<_>>(), [200]);
    assert_eq!(report.errors_by_status[&200] * 4, report.ok, "{report:?}");
    // The first request tests whether transfers are possible, and is not measured.
    assert_eq!(report.ok + 8, posted);
}

#[tokio::test]
async fn every_posted_transfer_is_counted() {
    for batch in [1, 10, BATCH_MAX] {
        let (report, posted) = against(Manner::Posts, batch).await;
        let report = report.unwrap();
        assert_eq!(report.ok, report.requests, "{report:?}");
        assert_eq!(report.ok + batch as u64, posted);
    }
}
