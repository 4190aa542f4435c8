//! Where one request ends and the next begins. Two readers of the same bytes must agree about it.

use crate::client::Request;
use crate::server::Server;
use crate::sockets::{GOOD, head};

/// A smuggled request. It stands in a place where only a lax parser would find a request.
const SMUGGLED: &str = "GET /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk_acme\r\n\r\n";

/// Sends bytes that contain `SMUGGLED`. Expects a single answer, a refusal, and then a closed
/// connection.
async fn refused(server: &Server, bytes: impl AsRef<[u8]>, code: &str) {
    let mut connection = server.connect().await;
    connection.send(bytes.as_ref()).await;
    let shown = String::from_utf8_lossy(bytes.as_ref()).into_owned();
    let reply = connection.receive(false).await.unwrap_or_else(|| panic!("no answer to {shown}"));
    assert_eq!(reply.json()["error"], code, "{shown}");
    reply.problem(400, code);
    assert!(connection.is_over().await, "what follows is read as a request: {shown}");
}

#[tokio::test]
async fn length_and_chunks_together_are_refused() {
    let server = Server::start().await;
    for (first, second) in [
        ("Content-Length: 6\r\n", "Transfer-Encoding: chunked\r\n"),
        ("Transfer-Encoding: chunked\r\n", "Content-Length: 6\r\n"),
        ("Content-Length: 6\r\n", "transfer-encoding: CHUNKED\r\n"),
        ("Content-Length: 0\r\n", "Transfer-Encoding:\tchunked\r\n"),
    ] {
        // By its length, the body ends before the second request; by its chunks, the body never
        // begins. Chunks take precedence (RFC 9112, section 6.3), and the connection closes.
        let bytes = format!("{}0\r\n\r\n{SMUGGLED}", head(&format!("{first}{second}")));
        refused(&server, bytes, "invalid_request").await;
    }
    assert_eq!(server.fake.submissions(), 0);
}

#[tokio::test]
async fn lengths_that_can_be_read_in_two_ways_are_refused() {
    let server = Server::start().await;
    for lengths in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5;\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\t: 5\r\n",
        "Content-Length: 5\r\n 0\r\n",
        "Content-Length: 5\r\n\t0\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding: chunked\u{0}\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: chu\r\n nked\r\n",
        "Content-Length: 5\rTransfer-Encoding: chunked\r\n",
        "A: b\r\rTransfer-Encoding: chunked\r\n",
        "A\u{0}: b\r\n",
        "A: b\u{0}c\r\n",
        "A: b\u{7f}\r\n",
        ": nameless\r\n",
        "A B: c\r\n",
        "A(): c\r\n",
        "\u{e9}: c\r\n",
    ] {
        refused(&server, format!("{}{GOOD}{SMUGGLED}", head(lengths)), "malformed_request").await;
    }
    assert_eq!(server.fake.submissions(), 0);
}

#[tokio::test]
async fn chunks_that_can_be_read_in_two_ways_are_refused() {
    let server = Server::start().await;
    let size = format!("{:x}", GOOD.len());
    for chunks in [
        format!("0x{size}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("+{size}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("-{size}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("{size}{size} {size}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("{size}\n{GOOD}\r\n0\r\n\r\n"),
        format!("{size}\r{GOOD}\r\n0\r\n\r\n"),
        format!("{size};a\nb\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("{size}\r\n{GOOD}\n0\r\n\r\n"),
        format!("{size}\r\n{GOOD}0\r\n\r\n"),
        format!("{size}\r\n{GOOD}xx\r\n0\r\n\r\n"),
        format!("10000000000000000{size}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("\r\n{size}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("{size}\u{0}\r\n{GOOD}\r\n0\r\n\r\n"),
        format!("{size};{}\r\n{GOOD}\r\n0\r\n\r\n", "x".repeat(20_000)),
    ] {
        let bytes = format!("{}{chunks}{SMUGGLED}", head("Transfer-Encoding: chunked\r\n"));
        refused(&server, bytes, "malformed_request").await;
    }
    assert_eq!(server.fake.submissions(), 0);
}

#[tokio::test]
async fn malformed_request_lines_are_refused() {
    let server = Server::start().await;
    for line in [
        "GET /healthz",
        "GET  /healthz HTTP/1.1",
        "GET /healthz  HTTP/1.1",
        "GET\t/healthz\tHTTP/1.1",
        " GET /healthz HTTP/1.1",
        "GET /healthz http/1.1",
        "GET /healthz HTTP/1.2",
        "GET /healthz HTTP/2.0",
        "GET /healthz HTTP/1.1 ",
        "GET /healthz HTTP/1.1\0",
        "GET /he althz HTTP/1.1",
        "GET /he\0althz HTTP/1.1",
        "GET  HTTP/1.1",
        "G(T /healthz HTTP/1.1",
        "PRI * HTTP/2.0",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
    ] {
        refused(&server, format!("{line}\r\nHost: x\r\n\r\n{SMUGGLED}"), "malformed_request").await;
    }
}

#[tokio::test]
async fn requests_name_exactly_one_host() {
    let server = Server::start().await;
    let asked = |hosts: &str| format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n");
    for hosts in [
        "",
        "Host: a\r\nHost: a\r\n",
        "Host: a\r\nhost: b\r\n",
        "Host: a b\r\n",
        "Host: user@a\r\n",
        "Host: a/b\r\n",
        "Host: a, b\r\n",
        "Host: a:b:c\r\n",
        "Host: http://a\r\n",
        "Host: \u{e9}\r\n",
    ] {
        refused(&server, asked(hosts) + SMUGGLED, "malformed_request").await;
    }
    for host in ["", "localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "EXAMPLE.com"] {
        let reply = server.send_raw(asked(&format!("Host: {host}\r\n"))).await.unwrap();
        assert_eq!(reply.status, 200, "{host}");
    }
}

#[tokio::test]
async fn every_form_of_a_target_is_handled() {
    let server = Server::start().await;
    for (method, target, status) in [
        ("GET", "http://other.example/healthz", 200),
        ("GET", "http://other.example:80/healthz?x=1", 200),
        ("GET", "http://other.example", 404),
        ("GET", "http://other.example/v1/charges", 401),
        ("OPTIONS", "*", 404),
        ("GET", "*", 404),
        ("CONNECT", "other.example:443", 404),
        ("CONNECT", "/healthz", 405),
        ("GET", "//other.example/healthz", 404),
        ("GET", "healthz", 400),
        ("GET", "other.example:443", 400),
        ("POST", "v1/charges", 400),
    ] {
        let mut connection = server.connect().await;
        connection.send(Request::new(method, target).header("Connection", "close").bytes()).await;
        let reply = connection.receive(false).await.unwrap();
        assert_eq!(reply.status, status, "{method} {target}: {}", reply.text());
        assert!(connection.is_over().await, "{method} {target}");
    }
}

#[tokio::test]
async fn empty_lines_and_bare_line_feeds_are_tolerated() {
    let server = Server::start().await;
    // RFC 9112, section 2.2, allows both. The body after them must still be framed as usual.
    let mut connection = server.connect().await;
    let charge = String::from_utf8(Request::charge("k", GOOD).bytes()).unwrap();
    let (lines, body) = charge.split_once("\r\n\r\n").unwrap();
    let bare = format!("{}\n\n{body}", lines.replace("\r\n", "\n"));
    connection.send(format!("\r\n\r\n{bare}{SMUGGLED}")).await;
    assert_eq!(connection.receive(false).await.unwrap().status, 201);
    assert_eq!(
        connection.receive(false).await.unwrap().json()["object"],
        "list",
        "the second answer belongs to the second request"
    );
    assert_eq!(server.fake.submissions(), 1);
}
