//! The servers' accept loop: hyper's HTTP/1.1 on every connection, without a framework.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::plan::CONNECTIONS_MAX;

/// Answers until the listener fails. Dropping the future ends all connections.
pub async fn serve<F, A>(listener: TcpListener, answer: F) -> io::Result<()>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        while open.try_join_next().is_some() {}
        if open.len() >= CONNECTIONS_MAX {
            open.join_next().await;
        }
        let answer = answer.clone();
        open.spawn(async move {
            let service = service_fn(move |request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            // A client's disconnect is no error of this server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
