//! The clients: they ask, remember what they are told, and ask again until it is final.

use super::board::{Board, Charge, Errand};
use super::told::{Attempt, Told};
use crate::dice::Dice;
use crate::http::{Answer, Connection, Request};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Longer than the server lets a twin wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Pause of a client between two charges, at most: load, not a flood that fills the memory with answers.
const PAUSE_MS: u64 = 8;
const IDLE: Duration = Duration::from_millis(5);
/// Tries of the last pass, with nothing left that could disturb it.
const REPLAY_TRIES: u32 = 5;

/// Where the clients send to, and as whom.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) server: SocketAddr,
    pub(super) api_key: String,
}

/// The board, shared.
pub(super) type Shared = Arc<Mutex<Board>>;

pub(super) fn lock(board: &Shared) -> MutexGuard<'_, Board> {
    // A client that panicked has told so; what the others noted is still worth judging.
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One client with its connection, reopened after every cut.
pub(super) struct Client {
    address: Address,
    connection: Option<Connection>,
}

impl Client {
    pub(super) fn new(address: &Address) -> Client {
        Client { address: address.clone(), connection: None }
    }

    pub(super) async fn ask(&mut self, charge: &Charge) -> Attempt {
        let answer = self.post(charge).await;
        if answer.as_ref().map_or(true, |answer| answer.header("connection") == Some("close")) {
            self.connection = None;
        }
        Attempt::of(answer)
    }

    async fn post(&mut self, charge: &Charge) -> std::io::Result<Answer> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(self.address.server).await?);
        }
        let Some(connection) = &mut self.connection else {
            return Err(std::io::ErrorKind::NotConnected.into());
        };
        let bearer = format!("Bearer {}", self.address.api_key);
        let headers = [
            ("authorization", bearer.as_str()),
            ("idempotency-key", charge.key.as_str()),
            ("content-type", "application/json"),
        ];
        let request =
            Request { method: "POST", path: "/v1/charges", headers: &headers, body: &charge.body() };
        connection.send(&request, ANSWER_LIMIT).await
    }
}

/// Starts `count` clients; they end when the board is closed and everything is final.
pub(super) fn start(count: usize, address: &Address, board: &Shared, dice: &mut Dice) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        clients.spawn(work(Client::new(address), Arc::clone(board), dice.fork()));
    }
    clients
}

async fn work(mut client: Client, board: Shared, mut dice: Dice) {
    loop {
        let errand = lock(&board).next(Instant::now());
        match errand {
            Errand::Ask(index) => {
                let charge = lock(&board).charges[index].clone();
                let attempt = client.ask(&charge).await;
                lock(&board).note(index, attempt, Instant::now());
                tokio::time::sleep(Duration::from_millis(dice.below(PAUSE_MS))).await;
            }
            Errand::Idle => tokio::time::sleep(IDLE).await,
            Errand::Done => return,
        }
    }
}

/// Asks for a charge once more, now that nothing disturbs.
pub(super) async fn replay(client: &mut Client, charge: &Charge) -> Option<Told> {
    for _ in 0..REPLAY_TRIES {
        match client.ask(charge).await {
            Attempt::Final(told) => return Some(told),
            Attempt::Strange(_) => return None,
            Attempt::Later | Attempt::Cut => tokio::time::sleep(IDLE).await,
        }
    }
    None
}
