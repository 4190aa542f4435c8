//! The accept loop: HTTP/1.1 on every connection, everything bounded, and an end that keeps its deadline.

mod content;
mod face;
mod refusal;

use crate::app::App;
use crate::routes::router;
use face::Face;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use refusal::Refusing;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// Bytes of a request's line and headers.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut at the deadline.
    pub cut: usize,
}

/// Serves until `shutdown` completes, then lets requests in flight finish for as long as `drain`.
///
/// Work a request has begun belongs to the engine: a connection that is cut loses its answer, not its work.
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
        // One piece: the copy of a short body costs less than telling the kernel of two.
        .writev(false);
    let face = Arc::new(Face::new(app, router));
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
                    open.spawn(converse(stream, http.clone(), Arc::clone(&face), stopped.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep_until(Instant::now() + ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Receivers may be gone already: then there is nobody to tell.
    let _ = stop.send(true);
    let finished = timeout(drain, async { while open.join_next().await.is_some() {} }).await;
    let cut = if finished.is_ok() { 0 } else { open.len() };
    open.shutdown().await;
    Drained { cut }
}

async fn converse(
    stream: TcpStream,
    http: http1::Builder,
    face: Arc<Face>,
    mut stopped: watch::Receiver<bool>,
) {
    // Answers are written whole; waiting to fill a packet would only delay them.
    let _ = stream.set_nodelay(true);
    let io = Refusing::new(TokioIo::new(stream), Arc::clone(&face));
    let service = service_fn(move |request| {
        let face = Arc::clone(&face);
        async move { Ok::<_, Infallible>(face.answer(request).await) }
    });
    let mut connection = pin!(http.serve_connection(io, service));
    // A client that hangs up or speaks no HTTP is not this server's concern.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
