//! Connections to servers, each moved along by who uses it.
//!
//! A connection has no task of its own: its messages move while somebody waits for an answer on it, and the bytes of an idle one
//! are looked at when it is next taken. So an exchange is not handed from task to task and back, and who gives up takes the
//! connection along. A request that a dying connection did not take goes to the next one; one that it took is never sent again.

use crate::letter::Letter;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection as HyperConnection, SendRequest};
use hyper::rt::{Read, Write};
use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tower_service::Service;

/// Servers close idle connections after a minute or more; leaving first avoids sending into a closing connection.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How often a connection and who waits for it have their turn in one step: a body comes when it was asked for, and what was asked in
/// the first pass is there in the second.
const PASSES: usize = 2;

/// Why there is no answer.
pub(crate) type Trouble = Box<dyn Error + Send + Sync>;

/// What makes connections.
pub(crate) trait Connect:
    Service<Uri, Response: Read + Write + Unpin, Error: Into<Trouble>, Future: Send> + Clone
{
}

impl<C> Connect for C where
    C: Service<Uri, Response: Read + Write + Unpin, Error: Into<Trouble>, Future: Send> + Clone
{
}

/// Connections that nobody uses now, by server; of each server, the one used last at the end.
type Idle<C> = HashMap<Server, Vec<(Connection<<C as Service<Uri>>::Response>, Instant)>>;

/// Whom a connection leads to. The scheme counts: what is meant for TLS must not travel without.
type Server = (Scheme, Authority);

/// Connections to servers, made when they are needed.
pub(crate) struct Pool<C: Connect> {
    connector: C,
    idle: Mutex<Idle<C>>,
}

/// One connection, in the hands of who uses it.
pub(crate) struct Connection<I: Read + Write> {
    sender: SendRequest<Letter>,
    /// Nothing once it has ended: whoever still hopes for an answer learns by that. Boxed, or every call would have room for it
    /// twice, with TLS and without.
    connection: Option<Box<HyperConnection<I, Letter>>>,
}

/// A request as it is sent, and where to.
struct Addressed {
    request: Request<Letter>,
    server: Server,
    uri: Uri,
}

impl<C: Connect> Pool<C> {
    pub(crate) fn new(connector: C) -> Pool<C> {
        Pool { connector, idle: Mutex::default() }
    }

    /// Sends a request and waits for the head of its answer, whose body comes while the line is asked to [`Connection::carry`] it.
    pub(crate) async fn ask(
        &self,
        request: Request<Letter>,
    ) -> Result<(Response<Incoming>, Connection<C::Response>, Server), Trouble> {
        let Addressed { mut request, server, uri } = Addressed::of(request)?;
        loop {
            let (mut line, is_new) = match self.take(&server) {
                Some(mut line) => {
                    if !line.is_free().await {
                        continue;
                    }
                    (line, false)
                }
                None => (self.connect(uri.clone()).await?, true),
            };
            let answer = line.sender.try_send_request(request);
            match line.carry(answer).await {
                Ok(response) => return Ok((response, line, server)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(failed.into_error().into()),
                },
            }
        }
    }

    /// Takes a line back, if it can be used again.
    pub(crate) async fn put_back(&self, server: Server, mut line: Connection<C::Response>) {
        if !line.is_free().await {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle();
        let lines = idle.entry(server).or_default();
        // The first have waited longest.
        let stale = lines.iter().take_while(|(_, since)| now.duration_since(*since) > IDLE_MAX).count();
        lines.drain(..stale);
        lines.push((line, now));
    }

    /// The line that was used last; those before it may close while nobody needs them.
    fn take(&self, server: &Server) -> Option<Connection<C::Response>> {
        let mut idle = self.idle();
        let lines = idle.get_mut(server)?;
        let (line, since) = lines.pop()?;
        if since.elapsed() > IDLE_MAX {
            lines.clear();
            return None;
        }
        Some(line)
    }

    async fn connect(&self, uri: Uri) -> Result<Connection<C::Response>, Trouble> {
        let mut connector = self.connector.clone();
        poll_fn(|context| connector.poll_ready(context)).await.map_err(Into::into)?;
        let io = connector.call(uri).await.map_err(Into::into)?;
        let (sender, connection) =
            Builder::new().max_buf_size(HEAD_BYTES_MAX).writev(false).handshake(io).await?;
        Ok(Connection { sender, connection: Some(Box::new(connection)) })
    }

    fn idle(&self) -> MutexGuard<'_, Idle<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Read + Write + Unpin> Connection<I> {
    /// Moves the connection's messages until `wanted` is there.
    pub(crate) async fn carry<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = pin!(wanted);
        poll_fn(|context| {
            for _ in 0..PASSES {
                self.step(context);
                if let Poll::Ready(found) = wanted.as_mut().poll(context) {
                    return Poll::Ready(found);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Whether it takes another request, by what has come in meanwhile.
    async fn is_free(&mut self) -> bool {
        poll_fn(|context| {
            self.step(context);
            Poll::Ready(self.connection.is_some() && self.sender.is_ready())
        })
        .await
    }

    fn step(&mut self, context: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(context).is_ready()
        {
            self.connection = None;
        }
    }
}

impl Addressed {
    /// The server is named in a header, and only the path in the first line.
    fn of(mut request: Request<Letter>) -> Result<Addressed, Trouble> {
        let uri = request.uri().clone();
        let parts = uri.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err("the request names no server".into());
        };
        let host = HeaderValue::from_str(authority.as_str())?;
        request.headers_mut().insert(HOST, host);
        *request.uri_mut() = Uri::from(parts.path_and_query.unwrap_or(PathAndQuery::from_static("/")));
        Ok(Addressed { request, server: (scheme, authority), uri })
    }
}
