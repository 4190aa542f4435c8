//! A bad request and its expected answer.

use crate::support::text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// The expected answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) status: u16,
    pub(crate) error: String,
    /// The pointers of `errors`, in any order; `None` for problems without that member.
    pub(crate) pointers: Option<Vec<String>>,
    /// The methods in `Allow`, in order; `None` if the header is absent.
    pub(crate) allow: Option<Vec<String>>,
}

impl Expected {
    pub(crate) fn new(status: u16, error: &str) -> Expected {
        Expected { status, error: error.to_owned(), pointers: None, allow: None }
    }

    /// `method_not_allowed` with exactly these allowed methods.
    pub(crate) fn not_allowed(methods: &BTreeSet<&str>) -> Expected {
        let head = methods.contains("GET").then_some("HEAD");
        let allow: BTreeSet<&str> = methods.iter().copied().chain(head).collect();
        let allow = Some(allow.into_iter().map(str::to_owned).collect());
        Expected { allow, ..Expected::new(405, "method_not_allowed") }
    }

    /// `invalid_request` with exactly these pointers.
    pub(crate) fn invalid(pointers: &[&str]) -> Expected {
        let mut pointers: Vec<String> = pointers.iter().map(|place| (*place).to_owned()).collect();
        pointers.sort();
        Expected { pointers: Some(pointers), ..Expected::new(400, "invalid_request") }
    }

    pub(crate) fn absent() -> Expected {
        Expected::new(404, "not_found")
    }
}

/// A bad request.
#[derive(Clone, Debug)]
pub(crate) struct BadRequest {
    /// The rule that made the request, for failure reports.
    pub(crate) rule: String,
    pub(crate) request: Request,
    pub(crate) expected: Expected,
}

impl BadRequest {
    pub(crate) fn new(rule: impl Into<String>, request: Request, expected: Expected) -> BadRequest {
        BadRequest { rule: rule.into(), request, expected }
    }

    /// Sends the request and describes what is wrong with the answer, if anything.
    pub(crate) fn complaint(&self, port: u16) -> Option<String> {
        let answer = match self.request.send(port) {
            Ok(answer) => answer,
            Err(error) => return Some(format!("{}: no answer: {error}", self.rule)),
        };
        let found = answer.found();
        let whole = answer.is_whole_problem();
        (found != self.expected || !whole).then(|| {
            let shown: String = text(&self.request.bytes()).chars().take(900).collect();
            let body = text(&answer.body);
            format!(
                "{}\n  expected {:?}\n  found    {found:?}, whole: {whole}\n  {body}\n  {shown}",
                self.rule, self.expected
            )
        })
    }
}

/// A request built header by header, so that a rule can damage a single header.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: Vec<u8>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Request {
        Request {
            method: method.to_owned(),
            target: target.as_bytes().to_vec(),
            headers: vec![("Host".to_owned(), b"localhost".to_vec())],
            body: Vec::new(),
        }
    }

    pub(crate) fn by(self, secret: &str) -> Request {
        self.header("Authorization", format!("Bearer {secret}"))
    }

    pub(crate) fn json(self, key: &str, body: impl Into<Vec<u8>>) -> Request {
        self.header("Idempotency-Key", key).header("Content-Type", "application/json").body(body)
    }

    pub(crate) fn form(self, key: &str, body: impl Into<Vec<u8>>) -> Request {
        let typed = self.header("Idempotency-Key", key);
        typed.header("Content-Type", "application/x-www-form-urlencoded").body(body)
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Request {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// Replaces the value of a header.
    pub(crate) fn instead(self, name: &str, value: impl Into<Vec<u8>>) -> Request {
        self.without(name).header(name, value)
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    pub(crate) fn target(mut self, target: impl Into<Vec<u8>>) -> Request {
        self.target = target.into();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all =
            [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\nConnection: close\r\n"].concat();
        for (name, value) in &self.headers {
            all.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        let framed = self
            .headers
            .iter()
            .any(|(name, _)| ["Content-Length", "Transfer-Encoding"].contains(&name.as_str()));
        if !self.body.is_empty() && !framed {
            all.extend(format!("Content-Length: {}\r\n", self.body.len()).into_bytes());
        }
        [&all, &b"\r\n"[..], &self.body].concat()
    }

    /// Sends the request on its own connection and reads the whole answer.
    pub(crate) fn send(&self, port: u16) -> std::io::Result<Answer> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        // Ignore write errors: a server that answers early may close the connection, and its answer
        // counts.
        let _ = stream.write_all(&self.bytes());
        let mut read = Vec::new();
        let closed = stream.read_to_end(&mut read);
        let _ = stream.shutdown(Shutdown::Both);
        match (Answer::parse(&read), closed) {
            (Some(answer), _) => Ok(answer),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => Err(std::io::Error::other(format!("no whole answer: {:?}", text(&read)))),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn parse(read: &[u8]) -> Option<Answer> {
        let end = read.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(read[..end].to_vec()).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers: Vec<_> =
            headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
        let answer = Answer { status, headers, body: read[end + 4..].to_vec() };
        let length: usize = answer.header("content-length")?.parse().ok()?;
        (answer.body.len() == length).then_some(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The answer, reduced to the form of an expectation.
    pub(crate) fn found(&self) -> Expected {
        let body = self.json();
        let pointers = body["errors"].as_array().map(|errors| {
            let mut all: Vec<String> =
                errors.iter().map(|error| error["pointer"].as_str().unwrap_or("?").to_owned()).collect();
            all.sort();
            all
        });
        let allow = self.header("allow").map(|methods| {
            let mut all: Vec<String> = methods.split(',').map(|method| method.trim().to_owned()).collect();
            all.sort();
            all
        });
        let error = body["error"].as_str().unwrap_or_default().to_owned();
        Expected { status: self.status, error, pointers, allow }
    }

    /// Whether the answer is a problem document with all its members.
    fn is_whole_problem(&self) -> bool {
        let body = self.json();
        let says = |name: &str| body[name].as_str().is_some_and(|text| !text.is_empty());
        let messages = body["errors"].as_array().into_iter().flatten();
        self.header("content-type") == Some("application/problem+json")
            && self.header("request-id") == body["request_id"].as_str()
            && body["status"] == self.status
            && (self.header("www-authenticate") == Some("Bearer")) == (self.status == 401)
            && self.header("cache-control") == Some("no-store")
            && body["type"].as_str() == Some(&format!("/errors/{}", body["error"].as_str().unwrap_or("?")))
            && ["title", "detail", "request_id"].into_iter().all(says)
            && messages
                .into_iter()
                .all(|error| error["message"].as_str().is_some_and(|text| !text.is_empty()))
    }
}
