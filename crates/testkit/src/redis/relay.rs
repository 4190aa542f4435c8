//! A stable address in front of changing servers, as in a failover.

use crate::failure::{Failure, Result};
use std::net::Ipv4Addr;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A running relay; it stops when dropped.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    target: watch::Sender<u16>,
}

impl Relay {
    /// Listens, and forwards everything to `port` on loopback.
    pub async fn to(port: u16) -> Result<Relay> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Failure::while_("starting a relay"))?;
        let own = listener.local_addr().map_err(Failure::while_("starting a relay"))?.port();
        let (target, turned) = watch::channel(port);
        tokio::spawn(accept(listener, turned));
        Ok(Relay { port: own, target })
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forwards new connections to `port` and cuts existing ones.
    pub fn turn_to(&self, port: u16) {
        self.target.send_replace(port);
    }
}

async fn accept(listener: TcpListener, turned: watch::Receiver<u16>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass(client, turned.clone()));
    }
}

async fn pass(mut client: TcpStream, mut turned: watch::Receiver<u16>) {
    let port = *turned.borrow_and_update();
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = turned.changed() => {}
    }
}
