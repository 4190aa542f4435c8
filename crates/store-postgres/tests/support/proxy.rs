//! A proxy between a store and its server. The proxy parses enough of the protocol to cut a
//! connection at a commit, before or after the server receives it, and to answer in place of the
//! server. A commit is a COMMIT, or the end of a sealing statement outside a transaction.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

const PASS: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;
const CUT_LOOK: u8 = 3;
const REFUSE_BEGIN: u8 = 4;
const PANIC: u8 = 5;

type ToClient = Arc<Mutex<WriteHalf<TcpStream>>>;

/// A running proxy. The end of the test's runtime stops it.
pub struct Proxy {
    pub port: u16,
    orders: Arc<Orders>,
}

#[derive(Default)]
struct Orders {
    next: AtomicU8,
    cuts: AtomicUsize,
    connections: AtomicUsize,
}

/// A fault for the next connection that reaches the given point.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// At a commit: the server never receives the commit.
    BeforeCommit,
    /// At a commit: the server receives the commit, the answer is lost.
    AfterCommit,
    /// At the beginning of a transaction: the server never receives the beginning.
    AtBegin,
    /// At a `BEGIN`: the proxy answers that the statement was cancelled, without sending it, and
    /// keeps the connection.
    RefuseBegin,
    /// At a commit: the server receives the commit, and a PANIC arrives as the answer.
    PanicAfterCommit,
}

impl Proxy {
    pub async fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy { port: listener.local_addr().unwrap().port(), orders: Arc::default() };
        let orders = Arc::clone(&proxy.orders);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                orders.connections.fetch_add(1, Ordering::SeqCst);
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                    client.set_nodelay(true).unwrap();
                    server.set_nodelay(true).unwrap();
                    tokio::spawn(relay(client, server, Arc::clone(&orders)));
                }
            }
        });
        proxy
    }

    /// The URL through the proxy.
    pub fn through(&self, url: &str, port: u16) -> String {
        url.replace(&format!(":{port}/"), &format!(":{}/", self.port))
    }

    pub fn cut_next(&self, cut: Cut) {
        let order = match cut {
            Cut::BeforeCommit => CUT_BEFORE,
            Cut::AfterCommit => CUT_AFTER,
            Cut::AtBegin => CUT_LOOK,
            Cut::RefuseBegin => REFUSE_BEGIN,
            Cut::PanicAfterCommit => PANIC,
        };
        self.orders.next.store(order, Ordering::SeqCst);
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.orders.connections.load(Ordering::SeqCst)
    }

    /// The number of injected faults so far.
    pub fn cuts(&self) -> usize {
        self.orders.cuts.load(Ordering::SeqCst)
    }
}

impl Orders {
    fn take(&self, order: u8) -> bool {
        let taken = self.next.compare_exchange(order, PASS, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if taken {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
        taken
    }
}

async fn relay(client: TcpStream, server: TcpStream, orders: Arc<Orders>) {
    let (client_reads, client_writes) = tokio::io::split(client);
    let (server_reads, server_writes) = tokio::io::split(server);
    let client_writes: ToClient = Arc::new(Mutex::new(client_writes));
    let back = tokio::spawn(copy(server_reads, Arc::clone(&client_writes)));
    forward(client_reads, server_writes, &client_writes, &orders, &back).await;
    back.abort();
}

async fn copy(mut from: ReadHalf<TcpStream>, to: ToClient) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if to.lock().await.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    let _ = to.lock().await.shutdown().await;
}

/// An ErrorResponse message.
fn error(severity: &str, code: &str) -> Vec<u8> {
    let fields = [('S', severity), ('V', severity), ('C', code), ('M', "told by the proxy")];
    let fields: Vec<u8> =
        fields.iter().flat_map(|(kind, text)| format!("{kind}{text}\0").into_bytes()).collect();
    let length = u32::try_from(fields.len()).unwrap() + 5;
    [&b"E"[..], &length.to_be_bytes(), &fields, b"\0"].concat()
}

/// A ReadyForQuery message, outside of a transaction.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// Forwards the client's messages: kind, length, body. The first message has no kind.
async fn forward(
    mut from: ReadHalf<TcpStream>,
    mut to: WriteHalf<TcpStream>,
    to_client: &ToClient,
    orders: &Orders,
    back: &tokio::task::JoinHandle<()>,
) {
    let mut is_first = true;
    let mut talk = Talk::default();
    loop {
        let kind = if is_first { None } else { from.read_u8().await.ok() };
        let Ok(length) = from.read_u32().await else { return };
        let mut body = vec![0; length as usize - 4];
        if from.read_exact(&mut body).await.is_err() || (kind.is_none() && !is_first) {
            return;
        }
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend(length.to_be_bytes());
        message.extend(&body);
        // The server refuses an SSLRequest with one byte. The real first message follows.
        is_first = is_first && body.get(..4) == Some(&80_877_103_u32.to_be_bytes()[..]);
        let (is_begin, is_commit) = talk.hear(kind, &body);
        if (is_commit && orders.take(CUT_BEFORE)) || (is_begin && orders.take(CUT_LOOK)) {
            return;
        }
        if is_begin && kind == Some(b'Q') && orders.take(REFUSE_BEGIN) {
            talk.is_begun = false;
            let said = [&error("ERROR", "57014")[..], READY].concat();
            to_client.lock().await.write_all(&said).await.unwrap();
            continue;
        }
        let panics = is_commit && orders.take(PANIC);
        let cut = panics || (is_commit && orders.take(CUT_AFTER));
        if cut {
            back.abort();
        }
        if to.write_all(&message).await.is_err() {
            return;
        }
        if cut {
            // The answer is lost. Closing at once could overtake the message.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            if panics {
                to_client.lock().await.write_all(&error("PANIC", "53100")).await.unwrap();
            }
            return;
        }
    }
}

/// The state of a connection.
#[derive(Default)]
struct Talk {
    /// The names of prepared statements that seal groups.
    seals: HashSet<Vec<u8>>,
    is_begun: bool,
    /// A sealing statement outside a transaction is in progress.
    is_sealing: bool,
}

impl Talk {
    /// Whether the message begins a transaction, and whether it commits one.
    fn hear(&mut self, kind: Option<u8>, body: &[u8]) -> (bool, bool) {
        let mut words = body.split(|byte| *byte == 0);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match kind {
            Some(b'Q') => {
                let (is_begin, is_commit) = (first == b"BEGIN", first == b"COMMIT");
                self.is_begun =
                    (self.is_begun || first.starts_with(b"BEGIN")) && !is_commit && first != b"ROLLBACK";
                (is_begin, is_commit)
            }
            Some(b'P') if second.windows(12).any(|part| part == b"INTO head AS") => {
                self.seals.insert(first.to_owned());
                (false, false)
            }
            Some(b'B') => {
                self.is_sealing = !self.is_begun && self.seals.contains(second);
                (self.is_sealing, false)
            }
            Some(b'S') => (false, std::mem::take(&mut self.is_sealing)),
            _ => (false, false),
        }
    }
}
