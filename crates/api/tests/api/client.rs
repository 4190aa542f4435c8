//! A client that sends exactly the given bytes and reads answers on arrival.

use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) line: String,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The single value of a header; panics if there are two.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, value) = values.next()?;
        assert!(values.next().is_none(), "{name} twice");
        Some(value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Checks for a complete problem with the given status and code, and returns the body.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?} {}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let id = self.header("request-id").unwrap();
        assert!(id.starts_with("req_") && id.len() == 30, "{id}");
        let body = self.json();
        assert_eq!(body["error"], code, "{body}");
        assert_eq!(body["type"], format!("/errors/{code}"));
        assert_eq!(body["status"], status);
        assert_eq!(body["request_id"], id);
        for field in ["title", "detail"] {
            assert!(!body[field].as_str().unwrap().is_empty(), "{field}");
        }
        body
    }
}

pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).await.unwrap();
        Connection { stream, read: Vec::new() }
    }

    /// Sends bytes. A connection the server has already closed is not an error.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// The next answer, or `None` if the server closes instead. `head` means that the answer has no
    /// body.
    pub(crate) async fn receive(&mut self, head: bool) -> Option<Reply> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more().await {
                return None;
            }
        };
        let text = String::from_utf8(self.read.drain(..end).collect()).unwrap();
        let mut lines = text.trim_end().split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let mut reply = Reply {
            status: line.split(' ').nth(1).unwrap().parse().unwrap(),
            line,
            headers,
            body: Vec::new(),
        };
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        if !head {
            while self.read.len() < length {
                assert!(self.more().await, "the server closed inside a body");
            }
            reply.body = self.read.drain(..length).collect();
        }
        Some(reply)
    }

    /// Sends bytes, for tests that check when the server closes the connection.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Closes the sending side; answers may still arrive.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Whether the server has closed and sent nothing more.
    pub(crate) async fn is_over(&mut self) -> bool {
        self.read.is_empty() && !self.more().await
    }

    async fn more(&mut self) -> bool {
        let mut buffer = vec![0; 16_384];
        match self.stream.read(&mut buffer).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }
}

/// A request to be written as bytes.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Request {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: vec![("Host".to_owned(), "localhost".to_owned())],
            body: Vec::new(),
        }
    }

    pub(crate) fn get(target: &str) -> Request {
        Request::new("GET", target).header("Authorization", "Bearer sk_acme")
    }

    /// A charge as `sk_acme` with this key and JSON body.
    pub(crate) fn charge(key: &str, body: &str) -> Request {
        Request::post("/v1/charges", key, body)
    }

    /// A write as `sk_acme` with this key and JSON body.
    pub(crate) fn post(target: &str, key: &str, body: &str) -> Request {
        Request::new("POST", target)
            .header("Authorization", "Bearer sk_acme")
            .header("Idempotency-Key", key)
            .header("Content-Type", "application/json")
            .body(body)
    }

    /// The same request with another API key.
    pub(crate) fn by(self, secret: &str) -> Request {
        self.without("Authorization").header("Authorization", &format!("Bearer {secret}"))
    }

    /// The same request with a form as its body.
    pub(crate) fn form(self, body: &str) -> Request {
        let typed = self.without("Content-Type").header("Content-Type", "application/x-www-form-urlencoded");
        typed.body(body)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn target(mut self, target: &str) -> Request {
        target.clone_into(&mut self.target);
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Request {
        self.body = body.as_ref().to_vec();
        self
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            text.extend_from_slice(format!("{name}: ").as_bytes());
            // Encodes as Latin-1, so that tests can put any byte into a header.
            text.extend(value.chars().map(|c| u8::try_from(u32::from(c)).unwrap()));
            text.extend_from_slice(b"\r\n");
        }
        if !self.body.is_empty() {
            text.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(&self.body);
        text
    }
}
