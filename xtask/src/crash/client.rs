//! Clients send requests, record the answers, and retry until an answer is final.

use super::attempt::{Attempt, FinalAnswer};
use super::board::{Board, Errand};
use super::order::{Order, OrderRequest};
use counterfoil_prng::Prng;
use counterfoil_testkit::http::{Answer, Connection, Request};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Longer than the server lets a duplicate request wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// A dead server refuses at once; its client waits at most this long.
const PAUSE_MS: u64 = 20;
const IDLE: Duration = Duration::from_millis(5);
/// Retries in the last pass, when nothing fails any more.
const REPLAY_TRIES: u32 = 5;

#[derive(Clone)]
pub(super) struct Address {
    /// Servers of the same store.
    pub(super) servers: Vec<SocketAddr>,
    pub(super) api_key: String,
}

/// The board behind its lock.
pub(super) type Shared = Arc<Mutex<Board>>;

pub(super) fn lock(board: &Shared) -> MutexGuard<'_, Board> {
    // A panicked client has reported its failure; the other clients' records are still worth
    // judging.
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client with a connection to each server, reopened after every cut. It takes the servers in
/// turn, so every server sees retries of requests that another one started.
pub(super) struct Client {
    address: Address,
    connections: Vec<Option<Connection>>,
    turn: usize,
}

impl Client {
    pub(super) fn new(address: &Address) -> Client {
        let connections = address.servers.iter().map(|_| None).collect();
        Client { address: address.clone(), connections, turn: 0 }
    }

    pub(super) async fn ask(&mut self, request: &OrderRequest) -> Attempt {
        Attempt::of(self.send("POST", &request.path, &request.key, &request.body).await)
    }

    /// Sends a GET request.
    pub(super) async fn get(&mut self, path: &str) -> std::io::Result<Answer> {
        self.send("GET", path, "", "").await
    }

    /// Sends a request to the next server. An empty key means no `Idempotency-Key`.
    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        key: &str,
        body: &str,
    ) -> std::io::Result<Answer> {
        let bearer = format!("Bearer {}", self.address.api_key);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        let headers = if key.is_empty() { &headers[..1] } else { &headers };
        let place = self.turn % self.connections.len();
        self.turn += 1;
        let mut connection = match self.connections[place].take() {
            Some(kept) => kept,
            None => Connection::open(self.address.servers[place]).await?,
        };
        let answer = connection.send(&Request { method, path, headers, body }, ANSWER_LIMIT).await?;
        if answer.header("connection") != Some("close") {
            self.connections[place] = Some(connection);
        }
        Ok(answer)
    }
}

/// Starts `count` clients. They end when the board is closed and every answer is final.
pub(super) fn start(count: usize, address: &Address, board: &Shared, prng: &mut Prng) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for number in 0..count {
        let client = Client { turn: number, ..Client::new(address) };
        clients.spawn(work(client, Arc::clone(board), prng.fork()));
    }
    clients
}

async fn work(mut client: Client, board: Shared, mut prng: Prng) {
    loop {
        let errand = lock(&board).next(Instant::now());
        match errand {
            Errand::Ask(index) => {
                let request = lock(&board).orders[index].request();
                let attempt = client.ask(&request).await;
                let cut = attempt == Attempt::Cut;
                lock(&board).note(index, attempt, Instant::now());
                if cut {
                    tokio::time::sleep(Duration::from_millis(prng.below(PAUSE_MS))).await;
                }
            }
            Errand::Idle => tokio::time::sleep(IDLE).await,
            Errand::Done => return,
        }
    }
}

/// Sends a request again after all faults have ended.
pub(super) async fn replay(client: &mut Client, order: &Order) -> Option<FinalAnswer> {
    let request = order.request();
    for _ in 0..REPLAY_TRIES {
        match client.ask(&request).await {
            Attempt::Final(told) => return Some(told),
            Attempt::Strange(_) => return None,
            Attempt::Later | Attempt::Away | Attempt::Cut => tokio::time::sleep(IDLE).await,
        }
    }
    None
}
