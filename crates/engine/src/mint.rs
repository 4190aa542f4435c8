//! Ids of this process: a worker slot claimed in the store, and the mint that uses it.

use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::policy::{SLOT_LEASE, SLOT_PATIENCE, SLOT_RENEWAL, SLOT_RETRY};
use crate::world::World;
use counterfoil_core::types::id::{Holder, Mint, MintError, SetId, Slot};
use counterfoil_core::types::limits::{WORKER_SLOTS, WORKER_SLOTS_ALARM_PERCENT};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, CommitError, Row, Scan, Store};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The process's mint, shared by the tasks.
pub struct IdMint {
    held: Mutex<Held>,
    /// Held by the task that claims a new slot for all tasks.
    claiming: tokio::sync::Mutex<()>,
    /// Number of claims so far, successful or not.
    claims: AtomicU64,
}

/// The slot in use, and all holders this process has been: work begun under an earlier slot is
/// still its own.
struct Held {
    mint: Mint,
    holders: Vec<Holder>,
}

impl IdMint {
    /// Claims a worker slot of `store` for this process.
    pub async fn claim<S: Store>(store: &S) -> Result<IdMint, String> {
        claim_slot(store).await.map(IdMint::of)
    }

    pub(crate) fn next(&self, now: Time) -> Result<i64, MintError> {
        self.with(|held| held.mint.next(now))
    }

    /// The first of `count` consecutive ids.
    pub(crate) fn block(&self, now: Time, count: usize) -> Result<i64, MintError> {
        self.with(|held| held.mint.block(now, count))
    }

    pub(crate) fn holder(&self) -> Holder {
        self.with(|held| held.mint.slot().holder())
    }

    /// Whether `holder` is this process.
    pub(crate) fn is_ours(&self, holder: Holder) -> bool {
        self.with(|held| held.holders.contains(&holder))
    }

    fn of(mint: Mint) -> IdMint {
        let holders = vec![mint.slot().holder()];
        let held = Mutex::new(Held { mint, holders });
        IdMint { held, claiming: tokio::sync::Mutex::default(), claims: AtomicU64::new(0) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Held) -> T) -> T {
        // The mint is plain numbers, so a panic elsewhere cannot leave it half-written.
        act(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Claims a worker slot that is free or was never held.
async fn claim_slot<S: Store>(store: &S) -> Result<Mint, String> {
    let slots = store.scan(Scan::Slots).await.map_err(|error| error.to_string())?;
    let slots: Vec<Slot> = slots
        .into_iter()
        .filter_map(|row| if let Row::Slot(slot) = row { Some(slot) } else { None })
        .collect();
    let now = store.now();
    let held = slots.iter().filter(|slot| !slot.is_free(now)).count();
    if held * 100 >= usize::from(WORKER_SLOTS) * usize::from(WORKER_SLOTS_ALARM_PERCENT) {
        tracing::error!(
            held,
            of = WORKER_SLOTS,
            "almost all worker slots are held; stop processes that are not needed"
        );
    }
    let free = slots
        .iter()
        .filter(|slot| slot.is_free(now))
        .map(|slot| (slot.taken_over(now, SLOT_LEASE), Some(*slot)));
    let fresh = (0..WORKER_SLOTS)
        .filter(|number| slots.iter().all(|slot| slot.number != *number))
        .map(|number| (Slot::first(number, now, SLOT_LEASE), None));
    for (slot, old) in free.chain(fresh) {
        let not_before = old.map_or(Time::EPOCH, |old: Slot| old.lease_until);
        // The set's id comes from the claimed slot itself, so it is unique if and only if the claim
        // succeeds.
        let mut mint = Mint::new(slot, not_before);
        let id = mint.next(now).map_err(|error| format!("the clock does not allow ids: {error:?}"))?;
        let set = ChangeSet::new(SetId::from_i64(id));
        let set = match old {
            Some(old) => set.replace(slot, old.revision),
            None => set.insert(slot),
        };
        match store.commit(set).await {
            Ok(_) => return Ok(mint),
            Err(CommitError::Refused(_) | CommitError::Conflict) => {}
            Err(error @ (CommitError::InDoubt(_) | CommitError::Unavailable(_) | CommitError::Throttled)) => {
                return Err(format!("no worker slot could be claimed: {error:?}"));
            }
        }
    }
    Err(format!("all {WORKER_SLOTS} worker slots are held; stop processes that are not needed"))
}

/// Renews the slot until the engine stops. The mint itself refuses once the lease is over. After an
/// outage longer than the lease, another slot is claimed.
pub(crate) async fn keep_slot<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    let mut wait = SLOT_RENEWAL;
    while !inner.is_stopped() {
        inner.world.sleep(Duration::from_millis(wait.ms())).await;
        wait = match inner.renew_slot().await {
            Ok(()) => SLOT_RENEWAL,
            Err(why) => {
                tracing::warn!(why, "the worker slot could not be renewed; trying again");
                SLOT_RETRY
            }
        };
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Mints an id. Claims a new worker slot if the current slot lapsed during an outage.
    pub(crate) async fn next_id(&self, now: Time) -> Option<i64> {
        match self.ids.next(now) {
            Err(MintError::LeaseOver) => {
                Box::pin(self.renew_lapsed_slot()).await;
                self.ids.next(self.store.now()).ok()
            }
            minted => minted.ok(),
        }
    }

    /// Claims one slot for all tasks when the old slot has lapsed, after an outage or a sleep. The
    /// first task claims; the others wait for the result, even for a failure. Otherwise every task
    /// would claim a separate slot.
    pub(crate) async fn renew_lapsed_slot(&self) {
        let claims = self.ids.claims.load(Ordering::Relaxed);
        let turn = tokio::select! {
            biased;
            turn = self.ids.claiming.lock() => turn,
            // The store hangs: the waiting task fails as if the claim had been refused.
            () = self.world.sleep(Duration::from_millis(SLOT_PATIENCE.ms())) => return,
        };
        if self.ids.claims.load(Ordering::Relaxed) == claims {
            if let Err(why) = self.renew_slot().await {
                tracing::warn!(why, "no worker slot could be claimed after the old one lapsed");
            }
            self.ids.claims.fetch_add(1, Ordering::Relaxed);
        }
        drop(turn);
    }

    pub(crate) async fn renew_slot(&self) -> Result<(), String> {
        let now = self.store.now();
        let (old, id) = self.ids.with(|held| (held.mint.slot(), held.mint.next(now)));
        let renewed = old.renewed(now, SLOT_LEASE);
        let refused = match id {
            Ok(id) => {
                let set = ChangeSet::new(SetId::from_i64(id)).replace(renewed, old.revision);
                match self.commit(set).await {
                    Ok(_) => {
                        // A concurrent task may have claimed a new slot meanwhile.
                        self.ids.with(|held| {
                            if held.mint.slot().holder() == renewed.holder() {
                                held.mint.renewed(renewed);
                            }
                        });
                        return Ok(());
                    }
                    Err(NotCommitted::Refused(_)) => true,
                    Err(NotCommitted::Unavailable(why)) => return Err(why),
                    Err(NotCommitted::InDoubt) => return Err("its renewal is in doubt".into()),
                }
            }
            Err(MintError::LeaseOver) => true,
            Err(error @ (MintError::Exhausted | MintError::ClockOutOfRange)) => {
                return Err(format!("{error:?}"));
            }
        };
        if refused {
            let mint = claim_slot(&self.store).await?;
            self.ids.with(|held| {
                held.holders.push(mint.slot().holder());
                held.mint = mint;
            });
        }
        Ok(())
    }
}
