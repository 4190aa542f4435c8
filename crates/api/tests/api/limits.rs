//! The limit of connections, and how serving ends.

use crate::client::Request;
use crate::fake::Next;
use crate::server::{Server, settings};
use counterfoil_api::Drained;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;

const GOOD: &str = r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa"}"#;

async fn until_submitted(server: &Server) {
    while server.fake.submissions() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_above_the_limit_wait() {
    let mut few = settings();
    few.connections_max = 1;
    let server = Server::with(few, Duration::ZERO).await;
    let mut first = server.connect().await;
    first.send(Request::get("/healthz").bytes()).await;
    assert_eq!(first.receive(false).await.unwrap().status, 200);
    let mut second = server.connect().await;
    second.send(Request::get("/healthz").bytes()).await;
    // The first connection holds the only slot: its requests are answered, the second one waits.
    first.send(Request::get("/readyz").bytes()).await;
    tokio::select! {
        biased;
        _ = second.receive(false) => panic!("answered before its turn"),
        reply = first.receive(false) => assert_eq!(reply.unwrap().status, 200),
    }
    drop(first);
    assert_eq!(second.receive(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn stopping_finishes_requests_in_flight() {
    let mut server = Server::start().await;
    let mut idle = server.connect().await;
    idle.send(Request::get("/healthz").bytes()).await;
    assert_eq!(idle.receive(false).await.unwrap().status, 200);
    // The body of this request is still incomplete when the server is told to stop.
    let mut busy = server.connect().await;
    let bytes = Request::charge("k", GOOD).bytes();
    let (begun, rest) = bytes.split_at(bytes.len() - 10);
    busy.send(begun).await;
    while server.fake.principals_asked.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    server.stop();
    assert!(idle.is_over().await, "an idle connection is closed");
    assert!(refuses(&server).await, "no new connection is accepted");
    busy.send(rest).await;
    let reply = busy.receive(false).await.unwrap();
    assert_eq!((reply.status, reply.header("connection")), (201, Some("close")));
    assert!(busy.is_over().await);
    assert_eq!(server.ended().await, Drained { cut: 0 });
}

async fn refuses(server: &Server) -> bool {
    TcpStream::connect(server.address).await.is_err()
}

#[tokio::test]
async fn stopping_keeps_its_deadline() {
    let mut server = Server::with(settings(), Duration::from_millis(50)).await;
    server.fake.next(Next::Hang);
    let mut stuck = server.connect().await;
    stuck.send(Request::charge("k", GOOD).bytes()).await;
    until_submitted(&server).await;
    server.stop();
    assert_eq!(server.ended().await, Drained { cut: 1 });
    assert!(stuck.is_over().await);
}
