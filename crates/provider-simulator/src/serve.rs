//! The accept loop: one task per connection, bounded in number, closed in good order.

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

/// Open connections; above it new ones wait in the listener's queue.
const CONNECTIONS_MAX: usize = 16_384;
/// How long requests under way may take after the shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(1);

/// Serves the provider until `shutdown` ends, then lets requests under way finish for up to a second.
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
                // The client gave up in the queue: not our trouble.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors, most likely: room comes when a connection ends.
                Err(error) => if connections.join_next().await.is_none() { return Err(error) },
            },
        }
    }
    drop(listener);
    drop(stop);
    let drained = async { while connections.join_next().await.is_some() {} };
    // Hung requests do not end by themselves; dropping the set cuts what is left.
    let _ = tokio::time::timeout(DRAIN, drained).await;
    Ok(())
}

async fn connection(stream: TcpStream, sim: Simulator, mut stopped: watch::Receiver<()>) {
    // Without it an answer may wait for the client's acknowledgement; failing to set it only costs time.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| dispatch(sim.clone(), request));
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    // Errors are clients that went away and connections cut on purpose: both are everyday here.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
