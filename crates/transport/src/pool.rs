//! A connection pool in which the caller drives the connection.
//!
//! Connections have no task of their own. A connection makes progress while its caller waits for an
//! answer, and an idle connection is polled when it is taken from the pool. An exchange therefore
//! needs no hand-over between tasks, and a cancelled caller drops its connection. A request that a
//! closing connection did not take is sent on the next one. A request that was taken is never sent
//! again.

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

/// Servers close idle connections after a minute or more; closing first avoids sending into a
/// closing connection.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// Largest response head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Polls of connection and caller per wake-up: the first pass asks for the body, the second finds
/// it.
const PASSES: usize = 2;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

pub(crate) trait Connect:
    Service<Uri, Response: Read + Write + Unpin, Error: Into<BoxError>, Future: Send> + Clone
{
}

impl<C> Connect for C where
    C: Service<Uri, Response: Read + Write + Unpin, Error: Into<BoxError>, Future: Send> + Clone
{
}

/// Idle connections by server, the most recently used last.
type Idle<C> = HashMap<Server, Vec<(Connection<<C as Service<Uri>>::Response>, Instant)>>;

/// The scheme is part of the key: a request meant for TLS must not use a plain connection.
type Server = (Scheme, Authority);

/// A connection pool for any number of servers. Connections are made on demand.
pub(crate) struct Pool<C: Connect> {
    connector: C,
    idle: Mutex<Idle<C>>,
}

/// A connection, owned by its current caller.
pub(crate) struct Connection<I: Read + Write> {
    sender: SendRequest<Letter>,
    /// `None` once the connection has ended, which also fails the pending request. Boxed to keep
    /// the future of a call small.
    driver: Option<Box<HyperConnection<I, Letter>>>,
}

/// A request ready to be sent, and its destination.
struct AddressedRequest {
    request: Request<Letter>,
    server: Server,
    uri: Uri,
}

impl<C: Connect> Pool<C> {
    pub(crate) fn new(connector: C) -> Pool<C> {
        Pool { connector, idle: Mutex::default() }
    }

    /// Sends a request and returns the head of the response. The caller reads the body while
    /// [`Connection::drive_until`] polls the connection.
    pub(crate) async fn send(
        &self,
        request: Request<Letter>,
    ) -> Result<(Response<Incoming>, Connection<C::Response>, Server), BoxError> {
        let AddressedRequest { mut request, server, uri } = AddressedRequest::new(request)?;
        loop {
            let (mut connection, is_new) = match self.take(&server) {
                Some(mut connection) => {
                    if !connection.is_reusable().await {
                        continue;
                    }
                    (connection, false)
                }
                None => (self.connect(uri.clone()).await?, true),
            };
            let answer = connection.sender.try_send_request(request);
            match connection.drive_until(answer).await {
                Ok(response) => return Ok((response, connection, server)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(failed.into_error().into()),
                },
            }
        }
    }

    /// Returns a connection to the pool if it can take another request.
    pub(crate) async fn put_back(&self, server: Server, mut connection: Connection<C::Response>) {
        if !connection.is_reusable().await {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle();
        let connections = idle.entry(server).or_default();
        // The oldest connections stand first.
        let stale = connections.iter().take_while(|(_, since)| now.duration_since(*since) > IDLE_MAX).count();
        connections.drain(..stale);
        connections.push((connection, now));
    }

    /// Takes the most recently used connection, so that surplus ones reach `IDLE_MAX` and close.
    fn take(&self, server: &Server) -> Option<Connection<C::Response>> {
        let mut idle = self.idle();
        let connections = idle.get_mut(server)?;
        let (connection, since) = connections.pop()?;
        if since.elapsed() > IDLE_MAX {
            connections.clear();
            return None;
        }
        Some(connection)
    }

    async fn connect(&self, uri: Uri) -> Result<Connection<C::Response>, BoxError> {
        let mut connector = self.connector.clone();
        poll_fn(|context| connector.poll_ready(context)).await.map_err(Into::into)?;
        let io = connector.call(uri).await.map_err(Into::into)?;
        let (sender, driver) =
            Builder::new().max_buf_size(HEAD_BYTES_MAX).writev(false).handshake(io).await?;
        Ok(Connection { sender, driver: Some(Box::new(driver)) })
    }

    fn idle(&self) -> MutexGuard<'_, Idle<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Read + Write + Unpin> Connection<I> {
    /// Polls the connection until `wanted` is ready.
    pub(crate) async fn drive_until<F: Future>(&mut self, wanted: F) -> F::Output {
        let mut wanted = pin!(wanted);
        poll_fn(|context| {
            for _ in 0..PASSES {
                self.poll_driver(context);
                if let Poll::Ready(found) = wanted.as_mut().poll(context) {
                    return Poll::Ready(found);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Whether the connection can take another request, after processing what has arrived.
    async fn is_reusable(&mut self) -> bool {
        poll_fn(|context| {
            self.poll_driver(context);
            Poll::Ready(self.driver.is_some() && self.sender.is_ready())
        })
        .await
    }

    fn poll_driver(&mut self, context: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && Pin::new(driver).poll(context).is_ready()
        {
            self.driver = None;
        }
    }
}

impl AddressedRequest {
    /// Moves the authority to the `Host` header and leaves the path as the request target.
    fn new(mut request: Request<Letter>) -> Result<AddressedRequest, BoxError> {
        let uri = request.uri().clone();
        let parts = uri.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err("the request names no server".into());
        };
        let host = HeaderValue::from_str(authority.as_str())?;
        request.headers_mut().insert(HOST, host);
        *request.uri_mut() = Uri::from(parts.path_and_query.unwrap_or(PathAndQuery::from_static("/")));
        Ok(AddressedRequest { request, server: (scheme, authority), uri })
    }
}
