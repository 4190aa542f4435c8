//! A provider in the background of a test: a thread and a port, gone when dropped.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::effects::Effect;
use crate::faults::{BadFaults, Faults};
use crate::options::Options;
use crate::serve::serve;
use crate::simulator::Simulator;

/// A provider listening on a free loopback port. Dropping it cuts every connection and frees the
/// port.
pub struct Running {
    sim: Simulator,
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts a provider. Works inside and outside of an async runtime.
    #[expect(clippy::disallowed_methods, reason = "a separate thread keeps it out of the test's runtime")]
    pub fn start(options: Options) -> io::Result<Running> {
        let sim = Simulator::new(options)?;
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        socket.set_nonblocking(true)?;
        let addr = socket.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(socket)?
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let served = sim.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                // A shutdown of `serve` would wait for requests in flight; a drop must cut them.
                tokio::select! {
                    _ = serve(listener, served, std::future::pending::<()>()) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Running { sim, addr, stop: Some(stop), thread: Some(thread) })
    }

    /// The provider's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The provider's URL, without a final slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn simulator(&self) -> &Simulator {
        &self.sim
    }

    /// All executed effects, oldest first.
    pub fn effects(&self) -> Vec<Effect> {
        self.sim.effects()
    }

    /// Replaces the faults.
    pub fn set_faults(&self, faults: Faults) -> Result<(), BadFaults> {
        self.sim.set_faults(faults)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}
