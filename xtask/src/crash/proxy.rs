//! An unreliable connection between server and provider. Each connection carries a random number of
//! bytes in one direction and is cut at exactly that byte, which may be anywhere in a request or
//! answer.

use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const BUFFER: usize = 16 * 1024;

/// A running proxy, closed when dropped.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    cuts: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy to `to` whose connections are cut after at most `bytes_max` bytes.
    pub(super) async fn start(to: SocketAddr, bytes_max: u64, mut prng: Prng) -> Result<Proxy> {
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listening.map_err(Failure::while_("listening for the server's calls"))?;
        let address = listener.local_addr().map_err(Failure::while_("listening for the server's calls"))?;
        let cuts = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&cuts);
        let accepting = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(to).await else { continue };
                let (bytes, up, counted) = (prng.below(bytes_max), prng.once_in(2), Arc::clone(&counted));
                tokio::spawn(async move {
                    if relay(near, far, bytes, up).await {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Proxy { address, cuts, accepting })
    }

    /// Number of cut connections.
    pub(super) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Carries bytes both ways until one side ends or `bytes` have gone up (or down). Returns whether
/// it cut the connection.
async fn relay(near: TcpStream, far: TcpStream, bytes: u64, up: bool) -> bool {
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_reads, near_writes) = near.into_split();
    let (far_reads, far_writes) = far.into_split();
    let (upwards, downwards) = if up { (bytes, u64::MAX) } else { (u64::MAX, bytes) };
    // The first end drops both halves and closes the sockets.
    tokio::select! {
        cut = carry(near_reads, far_writes, upwards) => cut,
        cut = carry(far_reads, near_writes, downwards) => cut,
    }
}

/// Returns whether it ended because of the limit.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut left: u64) -> bool {
    let mut buffer = vec![0; BUFFER];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return false };
        let passed = read.min(usize::try_from(left).unwrap_or(usize::MAX));
        if to.write_all(&buffer[..passed]).await.is_err() {
            return false;
        }
        left -= passed as u64;
        if passed < read || left == 0 {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn carried(left: u64) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        let cut = carry(&b"0123456789"[..], &mut out, left).await;
        (out, cut)
    }

    #[tokio::test]
    async fn bytes_pass_up_to_the_cut_and_not_one_more() {
        for left in 0..10_u8 {
            let (out, cut) = carried(left.into()).await;
            assert_eq!((out.len(), cut), (left.into(), true));
        }
        assert_eq!(carried(11).await, (b"0123456789".to_vec(), false));
    }

    #[tokio::test]
    async fn a_cut_connection_ends_on_both_sides() {
        let far = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = Proxy::start(far.local_addr().unwrap(), 4, Prng::new(1)).await.unwrap();
        // Nothing comes down, so only connections that are cut upwards end.
        while proxy.cuts() < 3 {
            let mut near = TcpStream::connect(proxy.address).await.unwrap();
            let (mut reached, _) = far.accept().await.unwrap();
            near.write_all(b"0123456789").await.unwrap();
            reached.write_all(b"0123456789").await.unwrap();
            let mut reply = Vec::new();
            // A cut with unread bytes is an error, which is an end as well.
            let _ = reached.read_to_end(&mut reply).await;
            let _ = near.read_to_end(&mut reply).await;
        }
    }
}
