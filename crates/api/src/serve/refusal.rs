//! Requests that cannot be parsed are answered by the HTTP library itself, with a bare status. Here such an answer
//! is replaced, on its way out, by a problem with a `Request-Id`, as every answer of this server is.
//!
//! It is recognised by its first line together with the absence of a `Request-Id`. No body this server writes
//! holds a raw CR LF, so nothing else can be mistaken for it. The connection closes after it.
//!
//! A client that takes nothing of what is written to it for as long as a request may take is given up: it would hold its
//! connection for ever otherwise.

use super::face::Face;
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

pub(super) struct Refusing<I> {
    io: I,
    face: Arc<Face>,
    instead: Option<Instead>,
    /// Until when the client may take nothing, while it takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// What is written in the place of a bare answer, and how far that has gone.
struct Instead {
    bytes: Vec<u8>,
    written: usize,
}

impl<I: Write + Unpin> Refusing<I> {
    pub(super) const fn new(io: I, face: Arc<Face>) -> Refusing<I> {
        Refusing { io, face, instead: None, stalled: None }
    }

    /// Writes what stands in for `bare`, which counts as written once all of that is.
    fn write_instead(&mut self, cx: &mut Context<'_>, bare: usize) -> Poll<io::Result<usize>> {
        while let Some(instead) = &mut self.instead {
            let rest = instead.bytes.get(instead.written..).unwrap_or_default();
            if rest.is_empty() {
                self.instead = None;
                break;
            }
            let written = Pin::new(&mut self.io).poll_write(cx, rest);
            let written = ready!(patiently(&mut self.stalled, &self.face, cx, written))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            instead.written += written;
        }
        Poll::Ready(Ok(bare))
    }

    /// Whether `bytes` are a bare answer; if so, what is written instead is ready.
    fn is_bare(&mut self, bytes: &[u8]) -> bool {
        if self.instead.is_some() {
            return true;
        }
        if !bytes.starts_with(b"HTTP/1.1 4") {
            return false;
        }
        let found = BARE.iter().find(|(line, _)| bytes.starts_with(line));
        let Some((line, code)) = found.filter(|_| !has_request_id(bytes)) else {
            return false;
        };
        let (id, answer) = self.face.refuse(*code);
        let mut text = line.to_vec();
        let length = HeaderValue::from(answer.body().len());
        let request = crate::answer::request_id(id);
        let own = [("content-length", &length), ("request-id", &request)];
        let stated = answer.headers().iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in stated.chain(own) {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"connection: close\r\n\r\n");
        text.extend_from_slice(answer.body());
        self.instead = Some(Instead { bytes: text, written: 0 });
        true
    }
}

/// What came of a write, or the end of waiting for it.
fn patiently(
    stalled: &mut Option<Pin<Box<Sleep>>>,
    face: &Face,
    cx: &mut Context<'_>,
    written: Poll<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    if written.is_ready() {
        *stalled = None;
        return written;
    }
    let until = stalled.get_or_insert_with(|| Box::pin(sleep(face.patience())));
    until.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
}

fn has_request_id(head: &[u8]) -> bool {
    const NAME: &[u8] = b"\r\nrequest-id:";
    head.windows(NAME.len()).any(|window| window == NAME)
}

impl<I: Write + Unpin> Write for Refusing<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_bare(bytes) {
            return self.write_instead(cx, bytes.len());
        }
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        let this = &mut *self;
        patiently(&mut this.stalled, &this.face, cx, written)
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
        // A bare answer has no body, so it is a slice of its own; what follows it is written afterwards.
        if let Some(first) = slices.iter().find(|slice| !slice.is_empty())
            && self.is_bare(first)
        {
            return self.write_instead(cx, first.len());
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        let this = &mut *self;
        patiently(&mut this.stalled, &this.face, cx, written)
    }
}

impl<I: Read + Unpin> Read for Refusing<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}
