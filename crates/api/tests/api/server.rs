//! A running server in front of a fake engine.

use crate::client::{Connection, Reply, Request};
use crate::fake::Fake;
use crate::webhooks::Postbox;
use counterfoil_api::{ApiSettings, App, Drained, Metrics, RequestLog, serve};
use counterfoil_core::tenancy::KeyPolicy;
use counterfoil_engine::service::Service;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub(crate) struct Server {
    pub(crate) fake: Arc<Fake>,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<Drained>,
}

pub(crate) fn settings() -> ApiSettings {
    ApiSettings {
        body_limit_bytes: 4_096,
        request_timeout: Duration::from_secs(30),
        header_timeout: Duration::from_secs(30),
        connections_max: 100,
        key_policy: KeyPolicy::Required,
        tenant_requests_per_second: 0,
        tenant_burst: 0,
        request_log: RequestLog::All,
    }
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::with(settings(), Duration::from_secs(5)).await
    }

    pub(crate) async fn with(settings: ApiSettings, drain: Duration) -> Server {
        let fake = Fake::new();
        let service: Arc<dyn Service> = fake.clone();
        let app = App::new(service, Arc::new(Metrics::new()), settings, vec![Box::new(Postbox)]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            serve(listener, app, shutdown, drain).await
        });
        Server { fake, address, stop: Some(stop), running }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// Sends a request on a new connection.
    pub(crate) async fn ask(&self, request: Request) -> Reply {
        let mut connection = self.connect().await;
        connection.send(request.bytes()).await;
        connection.receive(request.is_head()).await.expect("an answer")
    }

    /// Sends bytes that need not be a request.
    pub(crate) async fn send_raw(&self, bytes: impl AsRef<[u8]>) -> Option<Reply> {
        let mut connection = self.connect().await;
        connection.send(bytes).await;
        connection.receive(false).await
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for the server to end.
    pub(crate) async fn ended(&mut self) -> Drained {
        self.running.join_next().await.unwrap().unwrap()
    }
}
