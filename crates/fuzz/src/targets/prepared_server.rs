//! The other end of a connector: a real socket that sends prepared answers to any request.

use counterfoil_core::types::limits::PROVIDER_REFERENCE_BYTES_MAX;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Starts the server; returns the next answer and the address. It keeps one connection for all
/// requests, or closes after each.
pub(super) async fn prepared_server(stays: bool) -> (Arc<Mutex<Vec<u8>>>, SocketAddr) {
    let says = Arc::new(Mutex::new(Vec::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let said = Arc::clone(&says);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream, Arc::clone(&said), stays));
        }
    });
    (says, address)
}

/// Statuses without a body get none; otherwise it would belong to the next answer.
pub(super) fn http(status: u16, body: &[u8]) -> Vec<u8> {
    let body = if status == 304 { &[][..] } else { body };
    let head = format!("HTTP/1.1 {status} X\r\nretry-after: 7\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The body of a believed answer. `None` if serde's values cannot hold the JSON: half a surrogate
/// pair, a number beyond doubles, or a hundred levels, in a field that the connector ignores.
pub(super) fn read(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).expect("a believed answer is text");
    match serde_json::from_str(text) {
        Ok(json) => Some(json),
        Err(error) => {
            let said = error.to_string();
            let beyond = ["surrogate", "hex escape", "out of range", "recursion limit"];
            assert!(beyond.iter().any(|words| said.contains(words)), "a believed answer is JSON: {said}");
            None
        }
    }
}

/// Whether a store can hold the text.
pub(super) fn storable(word: &str) -> bool {
    (1..=PROVIDER_REFERENCE_BYTES_MAX).contains(&word.len()) && !word.contains(char::is_control)
}

/// Answers each request, on one connection or on one per request.
async fn serve(mut stream: TcpStream, says: Arc<Mutex<Vec<u8>>>, stays: bool) {
    let mut chunk = [0; 4_096];
    loop {
        let mut read = Vec::new();
        while !is_whole(&read) {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read.extend_from_slice(&chunk[..count]),
            }
        }
        let answer = says.lock().expect("one thread").clone();
        if stream.write_all(&answer).await.is_err() || !stays {
            return;
        }
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0)
}
