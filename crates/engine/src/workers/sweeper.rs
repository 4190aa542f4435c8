//! The sweeper: drops answers after their replay window and tombstones after theirs. A request
//! judges windows at read time; sweeping only frees space, so it may be late or stop anywhere.

use crate::engine::Inner;
use crate::policy::SWEEP_INTERVAL;
use crate::world::World;
use counterfoil_core::idempotency::claim::{Claim, ClaimEvent, ClaimState};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, Due, Row, RowKey, Store};
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    while !inner.is_stopped() {
        let swept = inner.sweep().await;
        if swept < CHANGES_PER_SET_MAX {
            inner.world.sleep(Duration::from_millis(SWEEP_INTERVAL.ms())).await;
        }
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Sweeps one set of claims; returns how many.
    async fn sweep(&self) -> usize {
        let now = self.store.now();
        let rows = match self.store.due(Due::Claims, now, CHANGES_PER_SET_MAX).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "expired keys could not be read; trying again");
                return 0;
            }
        };
        let claims: Vec<Claim> = rows
            .into_iter()
            .filter_map(|row| if let Row::Claim(claim) = row { Some(claim) } else { None })
            .collect();
        let Ok(id) = self.ids.next(now) else { return 0 };
        let set = claims.iter().fold(ChangeSet::new(SetId::from_i64(id)), |set, claim| age(set, claim, now));
        if set.changes().is_empty() {
            return 0;
        }
        match self.commit(set).await {
            Ok(_) => claims.len(),
            // One of the keys was claimed again meanwhile; the next round finds the others again.
            Err(error) => {
                tracing::debug!(?error, "a sweep was postponed");
                0
            }
        }
    }
}

fn age(set: ChangeSet, claim: &Claim, now: Time) -> ChangeSet {
    let tombstone_until = match &claim.state {
        ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => {
            settled.windows.tombstone_until
        }
        ClaimState::Expired { tombstone_until } => *tombstone_until,
        ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } | ClaimState::Uncertain(_) => return set,
    };
    if tombstone_until <= now {
        return set.remove(RowKey::Claim(claim.tenant, claim.id), claim.revision);
    }
    match claim.on(ClaimEvent::Aged { tombstone_until }) {
        Ok(aged) => set.replace(aged, claim.revision),
        Err(_) => set,
    }
}
