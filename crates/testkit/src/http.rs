//! A small HTTP/1.1 client for tests and tools. It shares no code with the server, so it shares
//! none of its mistakes.
//!
//! Speaks plain HTTP to loopback. Reads bodies with a length, in chunks, or until the end of the
//! connection. Three test clients are not this one on purpose: `api` sends damaged bytes, the
//! hostile corpus sends damaged heads, and `load` must not allocate.

use std::fmt::Write as _;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The servers under test send far shorter heads.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// The provider's list of effects is the largest body.
const BODY_BYTES_MAX: u64 = 1 << 30;
/// Loopback accepts at once; a slower connection will never be accepted.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A whole answer. Header names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A request without its length and host, which the client adds.
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a str,
}

impl Request<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", self.method, self.path);
        for (name, value) in self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let _ = write!(text, "content-length: {}\r\n\r\n{}", self.body.len(), self.body);
        text.into_bytes()
    }
}

/// A keep-alive connection.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = timeout(CONNECT_LIMIT, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Sends a request and reads its answer. After an error the connection is unusable.
    pub async fn send(&mut self, request: &Request<'_>, limit: Duration) -> Result<Answer> {
        timeout(limit, async {
            self.0.get_mut().write_all(&request.bytes()).await?;
            read_answer(&mut self.0).await
        })
        .await?
    }
}

/// Sends a JSON request on a new connection.
pub async fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
    limit: Duration,
) -> Result<Answer> {
    let mut connection = Connection::open(address).await?;
    let json = [("content-type", "application/json"), ("connection", "close")];
    connection.send(&Request { method, path, headers: &json, body }, limit).await
}

/// Sends a request on a new connection, from a thread without a runtime.
pub fn ask_blocking(address: SocketAddr, request: &Request<'_>, limit: Duration) -> Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Connection::open(address).await?.send(request, limit).await })
}

async fn read_answer<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Answer> {
    let status_line = read_line(reader).await?;
    let status = status_line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .ok_or_else(|| bad("the status line is unreadable"))?;
    let mut headers = Vec::new();
    let mut head_bytes = 0_u64;
    loop {
        let line = read_line(reader).await?;
        if line.is_empty() {
            break;
        }
        head_bytes = head_bytes.saturating_add(line.len() as u64);
        if head_bytes > HEAD_BYTES_MAX {
            return Err(bad("the head is too long"));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    answer.body = read_body(reader, &answer).await?;
    Ok(answer)
}

async fn read_body<R: AsyncBufRead + Unpin>(reader: &mut R, head: &Answer) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        loop {
            let line = read_line(reader).await?;
            let size = u64::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .map_err(|_| bad("a chunk has no size"))?;
            read_exactly(reader, &mut body, size).await?;
            if !read_line(reader).await?.is_empty() {
                return Err(bad("a chunk does not end where it should"));
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }
    if let Some(length) = head.header("content-length") {
        let length = length.parse().map_err(|_| bad("the content length is no number"))?;
        read_exactly(reader, &mut body, length).await?;
    } else if !matches!(head.status, 204 | 304) {
        reader.take(BODY_BYTES_MAX).read_to_end(&mut body).await?;
    }
    Ok(body)
}

async fn read_exactly<R: AsyncBufRead + Unpin>(reader: &mut R, body: &mut Vec<u8>, bytes: u64) -> Result<()> {
    if bytes.saturating_add(body.len() as u64) > BODY_BYTES_MAX {
        return Err(bad("the body is too long"));
    }
    let read = reader.take(bytes).read_to_end(body).await?;
    if read as u64 == bytes { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<String> {
    let mut line = Vec::new();
    reader.take(HEAD_BYTES_MAX).read_until(b'\n', &mut line).await?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        return Err(ErrorKind::UnexpectedEof.into());
    };
    String::from_utf8(line.to_vec()).map_err(|_| bad("the head is not text"))
}

fn bad(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> Result<Answer> {
        read_answer(&mut text.as_bytes()).await
    }

    #[tokio::test]
    async fn all_three_kinds_of_bodies_are_read() {
        for text in [
            "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nX: y\r\n\r\nabcdNEXT",
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\n1;e=f\r\nd\r\n0\r\n\r\n",
            "HTTP/1.1 201 Created\r\nX: y\r\n\r\nabcd",
        ] {
            let answer = read(text).await.unwrap();
            assert_eq!(
                (answer.status, answer.body.as_slice(), answer.header("x")),
                (201, &b"abcd"[..], Some("y"))
            );
        }
        assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n").await.unwrap().body, b"");
    }

    #[tokio::test]
    async fn an_answer_cut_anywhere_is_an_error() {
        for whole in [
            "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nabcd",
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
        ] {
            for end in 0..whole.len() {
                assert!(read(&whole[..end]).await.is_err(), "{:?}", &whole[..end]);
            }
            assert!(read(whole).await.is_ok());
        }
    }

    #[test]
    fn a_request_has_host_and_length() {
        let request = Request { method: "POST", path: "/v1/charges", headers: &[("a", "b")], body: "{}" };
        let text = String::from_utf8(request.bytes()).unwrap();
        assert_eq!(
            text,
            "POST /v1/charges HTTP/1.1\r\nhost: localhost\r\na: b\r\ncontent-length: 2\r\n\r\n{}"
        );
    }
}
