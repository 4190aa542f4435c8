//! The shutdown of a provider.

use std::io::ErrorKind;

use counterfoil_provider_simulator::{Options, Simulator, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::provider::Provider;

#[tokio::test]
async fn a_shutdown_closes_idle_connections_and_ends() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let session = async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.write_all(b"GET /_sim/faults HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut first = [0; 15];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        stop.send(()).unwrap();
        // The connection is kept alive until the shutdown, so only the shutdown can end this read.
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    };
    let sim = Simulator::new(Options::default()).unwrap();
    let (served, ()) = tokio::join!(serve(listener, sim, stopped), session);
    served.unwrap();
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_dropped_provider_frees_its_port_and_cuts_its_connections() {
    let provider = Provider::start();
    let addr = provider.running.addr();
    let mut stream = TcpStream::connect(addr).await.unwrap();
    assert_eq!(provider.charge("k1").await.unwrap().status, 200);
    drop(provider);
    // A reset ends the connection as well as an orderly close.
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_log_that_cannot_be_opened_stops_the_start() {
    let options = Options { log: Some("/nonexistent/effects.jsonl".into()), ..Options::default() };
    assert_eq!(Simulator::new(options).err().map(|error| error.kind()), Some(ErrorKind::NotFound));
}
