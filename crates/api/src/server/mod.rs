//! The accept loop: HTTP/1.1 on every connection, every dimension bounded, and a drain that keeps
//! its deadline.

mod connection_io;
pub(crate) mod dispatch;

use crate::answer::Answer;
use crate::app::App;
use crate::routes::router;
use axum::Router;
use connection_io::ConnectionIo;
use http::header::ALLOW;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tower::ServiceExt as _;

/// Most bytes of a request's line and headers.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Pause before the next attempt when the system refuses another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections cut at the deadline.
    pub cut: usize,
}

/// Serves until `shutdown` completes, then lets requests in flight finish for as long as `drain`.
///
/// Work that a request has begun belongs to the engine: a connection that is cut loses its answer,
/// not its work.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    shutdown: impl Future<Output = ()>,
    drain: Duration,
) -> Drained {
    let (router, _) = router(Arc::clone(&app));
    let connections_max = app.settings.connections_max.max(1);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(app.settings.header_timeout)
        .max_header_size(HEADER_BYTES_MAX)
        // Copying a short body next to its headers costs less than a vectored write.
        .writev(false);
    let (stop, stopped) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < connections_max => match accepted {
                Ok((stream, _)) => {
                    let (app, router) = (Arc::clone(&app), router.clone());
                    open.spawn(serve_connection(stream, http.clone(), app, router, stopped.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep_until(Instant::now() + ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Sending fails if all connections are closed already.
    let _ = stop.send(true);
    let finished = timeout(drain, async { while open.join_next().await.is_some() {} }).await;
    let cut = if finished.is_ok() { 0 } else { open.len() };
    open.shutdown().await;
    Drained { cut }
}

async fn serve_connection(
    stream: TcpStream,
    http: http1::Builder,
    app: Arc<App>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    // Answers are written whole; Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let io = ConnectionIo::new(TokioIo::new(stream), app);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = router.clone().oneshot(request);
        async move { answer.await.map(drop_stray_allow) }
    });
    let mut connection = pin!(http.serve_connection(io, service));
    // Errors are the client's: it hung up or does not speak HTTP.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Removes the `Allow` that axum adds to every answer of a route that lacks the method, even if the
/// request was refused before its method mattered.
fn drop_stray_allow(mut answer: Answer) -> Answer {
    if answer.status() != StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().remove(ALLOW);
    }
    answer
}
