//! The bytes of one connection, with two duties that the HTTP library does not have.
//!
//! The library answers an unparsable request with a bare status. A problem with a `Request-Id`
//! replaces the bare answer, and the connection closes after it. A bare answer is recognized by its
//! first line and by the absence of a `Request-Id`. No body of this server contains a raw CR LF, so
//! nothing else can be mistaken for a bare answer.
//!
//! A client that reads no answer is disconnected after the request timeout.

use super::dispatch::refuse_unparsed;
use crate::answer;
use crate::app::App;
use counterfoil_wire::problem::Code;
use http::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::{Sleep, sleep};

const BARE: [(&[u8], Code); 3] = [
    (b"HTTP/1.1 400 Bad Request\r\n", Code::MalformedRequest),
    (b"HTTP/1.1 414 URI Too Long\r\n", Code::UriTooLong),
    (b"HTTP/1.1 431 Request Header Fields Too Large\r\n", Code::HeadersTooLarge),
];

pub(super) struct ConnectionIo<I> {
    io: I,
    app: Arc<App>,
    replacement: Option<Replacement>,
    /// Runs while the client reads nothing; its end disconnects the client.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The problem written in place of a bare answer.
struct Replacement {
    bytes: Vec<u8>,
    written: usize,
}

impl<I: Write + Unpin> ConnectionIo<I> {
    pub(super) const fn new(io: I, app: Arc<App>) -> ConnectionIo<I> {
        ConnectionIo { io, app, replacement: None, stalled: None }
    }

    /// Writes the replacement of an answer of `bare` bytes. Reports those bytes as written once the
    /// replacement is complete.
    fn write_replacement(&mut self, cx: &mut Context<'_>, bare: usize) -> Poll<io::Result<usize>> {
        while let Some(replacement) = &mut self.replacement {
            let rest = replacement.bytes.get(replacement.written..).unwrap_or_default();
            if rest.is_empty() {
                self.replacement = None;
                break;
            }
            let written = Pin::new(&mut self.io).poll_write(cx, rest);
            let written = ready!(or_stalled(&mut self.stalled, &self.app, cx, written))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            replacement.written += written;
        }
        Poll::Ready(Ok(bare))
    }

    /// Whether `bytes` are a bare answer; if so, prepares its replacement.
    fn replace_if_bare(&mut self, bytes: &[u8]) -> bool {
        if self.replacement.is_some() {
            return true;
        }
        if !bytes.starts_with(b"HTTP/1.1 4") {
            return false;
        }
        let found = BARE.iter().find(|(line, _)| bytes.starts_with(line));
        let Some((line, code)) = found.filter(|_| !has_request_id(bytes)) else {
            return false;
        };
        let (id, problem) = refuse_unparsed(&self.app, *code);
        let mut text = line.to_vec();
        let length = HeaderValue::from(problem.body().len());
        let request = answer::request_id(id);
        let own = [("content-length", &length), ("request-id", &request)];
        let stated = problem.headers().iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in stated.chain(own) {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"connection: close\r\n\r\n");
        text.extend_from_slice(problem.body());
        self.replacement = Some(Replacement { bytes: text, written: 0 });
        true
    }
}

/// The result of a write, or a timeout if the client has read nothing for too long.
fn or_stalled(
    stalled: &mut Option<Pin<Box<Sleep>>>,
    app: &App,
    cx: &mut Context<'_>,
    written: Poll<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    if written.is_ready() {
        *stalled = None;
        return written;
    }
    let until = stalled.get_or_insert_with(|| Box::pin(sleep(app.settings.request_timeout)));
    until.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
}

fn has_request_id(head: &[u8]) -> bool {
    const NAME: &[u8] = b"\r\nrequest-id:";
    head.windows(NAME.len()).any(|window| window == NAME)
}

impl<I: Write + Unpin> Write for ConnectionIo<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replace_if_bare(bytes) {
            return self.write_replacement(cx, bytes.len());
        }
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        let this = &mut *self;
        or_stalled(&mut this.stalled, &this.app, cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A bare answer has no body and fills one slice; the caller writes the other slices later.
        if let Some(first) = slices.iter().find(|slice| !slice.is_empty())
            && self.replace_if_bare(first)
        {
            return self.write_replacement(cx, first.len());
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        let this = &mut *self;
        or_stalled(&mut this.stalled, &this.app, cx, written)
    }
}

impl<I: Read + Unpin> Read for ConnectionIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}
