//! After the last kill: wait for every answer, ask for all of them again, and record differences.

use super::client::{self, Address, Client, Shared, lock};
use super::judge::{Replay, Verdict, Wrong};
use super::order::Order;
use crate::progress::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Number of clients in the last pass.
const CLIENTS: usize = 32;
/// With this many answers the replay takes long enough to need a progress display.
const SHOWN_FROM: usize = 10_000;
/// Refresh period of the progress display. A finished client is noticed at once.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Waits until every key has its final answer, at most for `limit`.
pub(super) async fn settle(mut clients: JoinSet<()>, board: &Shared, limit: Duration) {
    let open = lock(board).open() as u64;
    let progress = Progress::new(open);
    let ended = async {
        while !clients.is_empty() {
            let left = lock(board).open() as u64;
            progress.show(open.saturating_sub(left), "keys left open by the kills are final");
            let _ = timeout(LOOK_EVERY, clients.join_next()).await;
        }
    };
    // The judge counts keys that are still open.
    let _ = timeout(limit, ended).await;
}

/// Repeats the request of every answered order.
pub(super) async fn replay_all(address: &Address, orders: &Arc<Vec<Order>>) -> Vec<(usize, Replay)> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, orders, next) = (Client::new(address), Arc::clone(orders), Arc::clone(&next));
        clients.spawn(async move {
            let mut found = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(order) = orders.get(index) else { return found };
                if let Some(first) = &order.first {
                    let again = client::replay(&mut client, order).await;
                    found.push((index, Replay::of(first, again.as_ref())));
                }
            }
        });
    }
    let progress = Progress::new(orders.len() as u64);
    let many = orders.len() >= SHOWN_FROM;
    let mut all = Vec::with_capacity(orders.len());
    while !clients.is_empty() {
        if many {
            let done = next.load(Ordering::Relaxed).min(orders.len());
            progress.show(done as u64, "answers replayed and compared");
        }
        if let Ok(Some(Ok(found))) = timeout(LOOK_EVERY, clients.join_next()).await {
            all.extend(found);
        }
    }
    all
}

/// Records the strange, missing and differing answers that the clients saw.
pub(super) fn note_answers(
    verdict: &mut Verdict,
    orders: &[Order],
    differing: &[usize],
    strange: &[(usize, u16)],
    replays: &[(usize, Replay)],
) {
    for &index in differing {
        verdict.note(Wrong::Differing, format!("{}: a replay differed under the kills", orders[index].key));
    }
    for &(index, status) in strange {
        verdict.note(Wrong::Strange, format!("{} was answered {status}", orders[index].key));
    }
    for &(index, replay) in replays {
        match replay {
            Replay::Same => {}
            Replay::Differs => {
                verdict.note(Wrong::Differing, format!("{}: the last replay differs", orders[index].key));
            }
            Replay::Lost => verdict.note(Wrong::Lost, format!("{}: the answer is gone", orders[index].key)),
        }
    }
}
