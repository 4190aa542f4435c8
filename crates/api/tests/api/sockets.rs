//! HTTP itself, byte by byte.

use crate::client::Request;
use crate::fake::Next;
use crate::server::{Server, settings};
use std::time::Duration;

pub(crate) const GOOD: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;

/// The headers of a charge, for bodies that are not announced by their length.
pub(crate) fn head(more: &str) -> String {
    format!(
        "POST /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk_acme\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\n{more}\r\n"
    )
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[tokio::test]
async fn unparsable_requests_get_a_problem() {
    let server = Server::start().await;
    for (bytes, status, code) in [
        ("nonsense\r\n\r\n".to_owned(), 400, "malformed_request"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), 400, "malformed_request"),
        ("GET /healthz HTTP/1.1\r\nbad header\r\n\r\n".to_owned(), 400, "malformed_request"),
        ("GET /healthz HTTP/1.1\r\nA: b\r\n C: folded\r\n\r\n".to_owned(), 400, "malformed_request"),
        ("GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n".to_owned(), 400, "malformed_request"),
        (head("Content-Length: 5\r\nContent-Length: 6\r\n"), 400, "malformed_request"),
        (head("Content-Length: -1\r\n"), 400, "malformed_request"),
        (head("Content-Length: 1, 1\r\n"), 400, "malformed_request"),
        (head("Transfer-Encoding: gzip\r\n"), 400, "malformed_request"),
        (head("Transfer-Encoding: chunked, gzip\r\n"), 400, "malformed_request"),
        (
            head("A: b\r\n").replace("HTTP/1.1", "HTTP/1.0").replace("A: b", "Transfer-Encoding: chunked"),
            400,
            "malformed_request",
        ),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000)), 431, "headers_too_large"),
        (format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(20_000)), 431, "headers_too_large"),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65)), 431, "headers_too_large"),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200)), 431, "headers_too_large"),
    ] {
        let reply = server.send_raw(&bytes).await;
        let reply = reply.unwrap_or_else(|| panic!("no answer to {}", bytes.get(..200).unwrap_or(&bytes)));
        reply.problem(status, code);
    }
    assert_eq!(server.fake.submissions(), 0);
    let fits = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(63));
    assert_eq!(server.send_raw(&fits).await.unwrap().status, 200);
}

#[tokio::test]
async fn refusals_after_other_answers_are_complete() {
    let server = Server::start().await;
    let mut slow = server.connect().await;
    slow.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(slow.receive(false).await.unwrap().status, 200);
    slow.send("nonsense\r\n\r\n").await;
    slow.receive(false).await.unwrap().problem(400, "malformed_request");
    assert!(slow.is_over().await);

    let mut hasty = server.connect().await;
    let good = Request::charge("k", GOOD).bytes();
    hasty
        .send([good.as_slice(), &good, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n"].concat())
        .await;
    for status in [201, 201, 200] {
        assert_eq!(hasty.receive(false).await.unwrap().status, status);
    }
    hasty.receive(false).await.unwrap().problem(400, "malformed_request");
    assert!(hasty.is_over().await);
}

#[tokio::test]
async fn chunked_bodies_are_read() {
    let server = Server::start().await;
    let whole = head("Transfer-Encoding: chunked\r\n") + &chunked(GOOD);
    let first = server.send_raw(&whole).await.unwrap();
    assert_eq!(first.status, 201, "{}", first.text());
    let (left, right) = GOOD.split_at(9);
    let pieces = format!("9\r\n{left}\r\n{:x};ext=1\r\n{right}\r\n0\r\nTrailer: x\r\n\r\n", right.len());
    let again = server.send_raw(head("Transfer-Encoding: chunked\r\n") + &pieces).await.unwrap();
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));

    let much =
        head("Transfer-Encoding: chunked\r\n") + &format!("800\r\n{}\r\n", " ".repeat(2_048)).repeat(3);
    server.send_raw(&much).await.unwrap().problem(413, "body_too_large");
    let broken = head("Transfer-Encoding: chunked\r\n") + "zz\r\n";
    server.send_raw(&broken).await.unwrap().problem(400, "malformed_request");
}

#[tokio::test]
async fn body_limits_apply_before_reading() {
    let server = Server::start().await;
    // No body is sent, so only the announced length can cause the refusal.
    for (length, status, code) in [
        ("4097", 413, "body_too_large"),
        ("99999999999", 413, "body_too_large"),
        ("18446744073709551615", 431, "headers_too_large"),
        ("18446744073709551616", 400, "malformed_request"),
    ] {
        let reply = server.send_raw(head(&format!("Content-Length: {length}\r\n"))).await;
        reply.unwrap().problem(status, code);
    }
    let padded = format!("{GOOD}{}", " ".repeat(4_096 - GOOD.len()));
    assert_eq!(server.ask(Request::charge("k", &padded)).await.status, 201, "exactly the limit");
}

#[tokio::test]
async fn expect_100_continue_is_honored() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let length = format!("Expect: 100-continue\r\nContent-Length: {}\r\n", GOOD.len());
    connection.send(head(&length)).await;
    assert_eq!(connection.receive(true).await.unwrap().status, 100);
    connection.send(GOOD).await;
    assert_eq!(connection.receive(false).await.unwrap().status, 201);
}

#[tokio::test]
async fn http_1_0_and_head_requests_are_answered() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    connection.send("GET /healthz HTTP/1.0\r\n\r\n").await;
    let reply = connection.receive(false).await.unwrap();
    assert_eq!((reply.line.as_str(), reply.text().as_str()), ("HTTP/1.0 200 OK", r#"{"status":"ok"}"#));
    assert!(reply.header("request-id").is_some());
    assert!(connection.is_over().await);

    let get = server.ask(Request::new("GET", "/healthz")).await;
    let head = server.ask(Request::new("HEAD", "/healthz")).await;
    assert_eq!((head.status, head.header("content-length")), (200, get.header("content-length")));
    assert!(head.header("request-id").is_some());
    let head = server.ask(Request::new("HEAD", "/nowhere")).await;
    assert_eq!((head.status, head.header("content-type")), (404, Some("application/problem+json")));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    let mut bytes = Vec::new();
    for number in 0..20 {
        bytes.extend(
            Request::charge(&format!("k-{number}"), &GOOD.replace("1250", &(100 + number).to_string()))
                .bytes(),
        );
    }
    connection.send(&bytes).await;
    for number in 0..20 {
        assert_eq!(connection.receive(false).await.unwrap().json()["amount"], 100 + number);
    }
}

#[tokio::test]
async fn work_past_the_timeout_keeps_its_key() {
    let mut hasty = settings();
    hasty.request_timeout = Duration::from_millis(50);
    let server = Server::with(hasty, Duration::ZERO).await;
    server.fake.next(Next::Hang);
    let problem = server.ask(Request::charge("k", GOOD)).await.problem(409, "idempotency_key_in_use");
    assert_eq!(problem["safe_new_key"], false);
}
