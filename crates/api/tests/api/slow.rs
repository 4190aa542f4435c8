//! Slow, stalled and vanishing clients. Each may hold its own connection for a bounded time, and
//! nothing else.

use crate::client::Request;
use crate::server::{Server, settings};
use crate::sockets::{GOOD, head};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const SHORT: Duration = Duration::from_millis(60);
/// The pause between two bytes, far below the limit, which applies to the whole request.
const PAUSE: Duration = Duration::from_millis(5);

async fn server_with_timeouts(request: Duration, header: Duration) -> Server {
    let mut hasty = settings();
    (hasty.request_timeout, hasty.header_timeout) = (request, header);
    Server::with(hasty, Duration::ZERO).await
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn missing_bodies_time_out() {
    let server = server_with_timeouts(SHORT, LONG).await;
    server.send_raw(head("Content-Length: 10\r\n") + "{").await.unwrap().problem(408, "request_timeout");
    server
        .send_raw(head("Transfer-Encoding: chunked\r\n") + "5\r\n{")
        .await
        .unwrap()
        .problem(408, "request_timeout");
    server
        .send_raw(head("Transfer-Encoding: chunked\r\n") + "1\r\n{\r\n")
        .await
        .unwrap()
        .problem(408, "request_timeout");
    assert_eq!(server.fake.submissions(), 0);
}

#[tokio::test]
async fn trickling_bodies_time_out_as_well() {
    let server = server_with_timeouts(SHORT, LONG).await;
    let mut connection = server.connect().await;
    connection.send(head("Content-Length: 1000\r\n")).await;
    let reply = loop {
        connection.send(" ").await;
        tokio::select! {
            reply = connection.receive(false) => break reply,
            () = sleep(PAUSE) => {}
        }
    };
    reply.unwrap().problem(408, "request_timeout");
    assert!(connection.is_over().await);
    assert_eq!(server.fake.submissions(), 0);
}

#[tokio::test]
async fn trickling_bodies_that_end_in_time_are_read() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    connection.send(head(&format!("Content-Length: {}\r\n", GOOD.len()))).await;
    for byte in GOOD.bytes() {
        connection.send([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(connection.receive(false).await.unwrap().status, 201);
}

#[tokio::test]
async fn unfinished_headers_close_the_connection() {
    let server = server_with_timeouts(LONG, SHORT).await;
    let mut connection = server.connect().await;
    connection.send("GET /healthz HTTP/1.1\r\nA: ").await;
    assert!(connection.is_over().await, "closed without an answer");
    let mut idle = server.connect().await;
    assert!(idle.is_over().await);
    let mut trickle = server.connect().await;
    trickle.send("GET /healthz HTTP/1.1\r\n").await;
    loop {
        trickle.send("A: b\r\n").await;
        tokio::select! {
            over = trickle.is_over() => break assert!(over, "closed without an answer"),
            () = sleep(PAUSE) => {}
        }
    }
    // The wait between two requests has the same limit.
    let mut again = server.connect().await;
    again.send(Request::get("/healthz").bytes()).await;
    assert_eq!(again.receive(false).await.unwrap().status, 200);
    assert!(again.is_over().await);
}

#[tokio::test]
async fn clients_that_read_nothing_are_disconnected() {
    let server = server_with_timeouts(SHORT, LONG).await;
    let mut connection = server.connect().await;
    // The answers exceed all buffers in between, and the client reads none of them.
    connection.send(Request::get("/openapi.json").bytes().repeat(1_000)).await;
    let given_up = async {
        while connection.try_send(b"x").await.is_ok() {
            sleep(PAUSE).await;
        }
    };
    assert!(timeout(LONG, given_up).await.is_ok(), "the connection is kept for ever");
    assert_eq!(server.ask(Request::get("/healthz")).await.status, 200);
}

#[tokio::test]
async fn half_closed_clients_get_their_answer() {
    let server = Server::start().await;
    let mut connection = server.connect().await;
    connection.send(Request::charge("k", GOOD).bytes()).await;
    connection.finish().await;
    assert_eq!(connection.receive(false).await.unwrap().status, 201);
    assert!(connection.is_over().await);
    assert_eq!(server.fake.submissions(), 1);
}

#[tokio::test]
async fn aborted_requests_have_no_effect() {
    let server = Server::start().await;
    let bytes = Request::charge("k", GOOD).bytes();
    for length in [1, 20, bytes.len() / 2, bytes.len() - 1] {
        let mut connection = server.connect().await;
        connection.send(&bytes[..length]).await;
        drop(connection);
        let mut connection = server.connect().await;
        connection.send(&bytes[..length]).await;
        connection.finish().await;
        if let Some(reply) = connection.receive(false).await {
            reply.problem(400, "malformed_request");
        }
        assert!(connection.is_over().await);
    }
    assert_eq!(server.fake.submissions(), 0);
    assert_eq!(server.ask(Request::charge("k", GOOD)).await.status, 201);
}
