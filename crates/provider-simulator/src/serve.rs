//! The accept loop: one task per connection, bounded in number, with an orderly shutdown.

use std::io;
use std::pin::pin;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::http::dispatch;
use crate::simulator::Simulator;

/// Limit of open connections; above it new ones wait in the listener's queue.
const CONNECTIONS_MAX: usize = 16_384;
/// Time for requests in flight after the shutdown began.
const DRAIN: Duration = Duration::from_secs(1);

/// Serves the provider until `shutdown` ends, then lets requests in flight finish for up to a
/// second.
pub async fn serve(listener: TcpListener, sim: Simulator, shutdown: impl Future) -> io::Result<()> {
    let mut shutdown = pin!(shutdown);
    let mut connections = JoinSet::new();
    let (stop, stopped) = watch::channel(());
    loop {
        tokio::select! {
            _ = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => { connections.spawn(connection(stream, sim.clone(), stopped.clone())); }
                // The client disconnected while it was queued.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Probably out of file descriptors: wait until a connection ends.
                Err(error) => if connections.join_next().await.is_none() { return Err(error) },
            },
        }
    }
    drop(listener);
    drop(stop);
    let drained = async { while connections.join_next().await.is_some() {} };
    // Hung requests never end; dropping the set cuts them.
    let _ = tokio::time::timeout(DRAIN, drained).await;
    Ok(())
}

async fn connection(stream: TcpStream, sim: Simulator, mut stopped: watch::Receiver<()>) {
    // With Nagle's algorithm an answer may wait for the client's acknowledgement; a failure only
    // costs time.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| dispatch(sim.clone(), request));
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    // Errors are disconnected clients and injected cuts; both are expected.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
