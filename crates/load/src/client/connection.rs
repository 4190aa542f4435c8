//! A kept-alive connection with a reused buffer; requests do not overlap.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::{Answer, Head, Malformed};
use crate::target::CONNECT_LIMIT;

/// Holds a charge's whole answer, so most answers take one read.
const READ_BYTES: usize = 4096;

/// Errors of a call. Afterwards the connection must not be used again.
#[derive(Debug)]
pub(crate) enum Failure {
    Transport(io::Error),
    Malformed(Malformed),
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    incoming: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = timeout(CONNECT_LIMIT, TcpStream::connect(addr)).await??;
        // A request is one write, and its answer is awaited. Nagle's algorithm would only add
        // delay.
        stream.set_nodelay(true)?;
        Ok(Self { stream, incoming: Vec::with_capacity(READ_BYTES) })
    }

    /// Sends the bytes of one request and reads the whole answer.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Answer<'_>, Failure> {
        self.incoming.clear();
        self.stream.write_all(request).await.map_err(Failure::Transport)?;
        let head = loop {
            self.read().await?;
            if let Some(head) = Head::scan(&self.incoming).map_err(Failure::Malformed)? {
                break head;
            }
        };
        while self.incoming.len() < head.answer_len() {
            self.read().await?;
        }
        if self.incoming.len() > head.answer_len() {
            return Err(Failure::Malformed(Malformed::Trailing));
        }
        Ok(Answer { head, bytes: &self.incoming })
    }

    async fn read(&mut self) -> Result<(), Failure> {
        if self.incoming.len() == self.incoming.capacity() {
            self.incoming.reserve(READ_BYTES);
        }
        match self.stream.read_buf(&mut self.incoming).await {
            Ok(0) => Err(Failure::Transport(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection before its answer was complete",
            ))),
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::Transport(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Starts a server that answers one request with the given pieces, each in its own write, and
    /// then closes.
    async fn answered(pieces: &[&[u8]]) -> Result<(u16, Vec<u8>), Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = Connection::open(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.set_nodelay(true).unwrap();
        let play = async {
            let mut request = [0; 4];
            server.read_exact(&mut request).await.unwrap();
            assert_eq!(&request, b"ping");
            for piece in pieces {
                server.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(server);
        };
        let call =
            async { client.call(b"ping").await.map(|answer| (answer.head.status, answer.body().to_vec())) };
        tokio::join!(play, call).1
    }

    #[tokio::test]
    async fn an_answer_in_any_pieces_is_read() {
        let bytes = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nhello";
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(answered(&pieces).await.unwrap(), (201, b"hello".to_vec()));
        assert_eq!(answered(&[bytes]).await.unwrap(), (201, b"hello".to_vec()));
    }

    #[tokio::test]
    async fn bodies_larger_than_the_buffer_are_read() {
        let body = vec![b'x'; 10 * READ_BYTES];
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        assert_eq!(answered(&[head.as_bytes(), &body]).await.unwrap(), (200, body));
    }

    #[tokio::test]
    async fn a_cut_answer_is_a_transport_failure() {
        for cut in [b"".as_slice(), b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
            assert!(matches!(answered(&[cut]).await, Err(Failure::Transport(_))));
        }
    }

    #[tokio::test]
    async fn bytes_after_the_body_are_refused() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab";
        assert!(matches!(answered(&[bytes]).await, Err(Failure::Malformed(Malformed::Trailing))));
    }
}
