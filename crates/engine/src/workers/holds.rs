//! Lapsing: releases holds whose deadline has passed. Requests honour a passed deadline at once, so
//! this worker may be late.

use crate::engine::Inner;
use crate::ledger::spread::{Blocked, scatter};
use crate::policy::HOLDS_INTERVAL;
use crate::world::World;
use counterfoil_core::audit::{AuditKind, AuditRecord, record_id};
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::payments::ledger::decide::{DecisionContext, lapse};
use counterfoil_core::types::id::{SetId, TransactionId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, Due, Row, Store};
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    while !inner.is_stopped() {
        let ended = inner.lapse_holds().await;
        if ended < SCAN_MAX {
            inner.world.sleep(Duration::from_millis(HOLDS_INTERVAL.ms())).await;
        }
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Releases the due holds; returns how many.
    async fn lapse_holds(&self) -> usize {
        let rows = match self.store.due(Due::Holds, self.store.now(), SCAN_MAX).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "lapsed holds could not be read; trying again");
                return 0;
            }
        };
        let mut ended = 0_usize;
        for row in rows {
            if let Row::Hold(hold) = row
                && self.lapse_hold(&hold).await
            {
                ended = ended.saturating_add(1);
            }
        }
        ended
    }

    async fn lapse_hold(&self, hold: &Hold) -> bool {
        let now = self.store.now();
        let (Some(id), Some(set)) = (self.next_id(now).await, self.next_id(now).await) else { return false };
        let context = DecisionContext { tenant: hold.tenant, id: TransactionId::from_i64(id), now };
        let (transaction, ended) = lapse(hold, context);
        let Ok(deltas) = self.deltas_of_hold(hold, &transaction).await else { return false };
        let record = AuditRecord {
            id: record_id(now, ended.revision, self.world.chance()),
            tenant: hold.tenant,
            subject: hold.id.into(),
            at: now,
            fence: 1,
            kind: AuditKind::Posted,
            detail: format!("kind={}", transaction.kind.name()),
        };
        let set = ChangeSet::new(SetId::from_i64(set))
            .replace(ended, hold.revision)
            .insert(transaction)
            .insert(record);
        // The same shards as the reservation, unless the number of shards has changed since.
        let seed = scatter(hold.id.to_i64());
        match self.commit_moving(&set, &deltas, seed).await {
            Ok(_) => true,
            // A request ended it meanwhile.
            Err(Blocked::Refused(_)) => false,
            Err(blocked @ (Blocked::Unfit(_) | Blocked::Failed(_))) => {
                tracing::warn!(?blocked, "a hold could not lapse yet; trying again");
                false
            }
        }
    }
}
