//! Recovery: takes over work whose time has come and runs the same drive as a request does.

use crate::drive::Work;
use crate::engine::Inner;
use crate::policy::RECOVERIES_MAX;
use crate::signal::{ClaimOutcome, Signal};
use crate::world::World;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::resume::take_over;
use counterfoil_core::types::id::{ChargeId, SetId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, Due, ReadError, Row, RowKey, Scan, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

pub(crate) async fn run<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    let places = Arc::new(Semaphore::new(RECOVERIES_MAX));
    if inner.store.is_exclusive()
        && let Err(error) = recover_the_dead(&inner, &places).await
    {
        tracing::error!(%error, "work of an earlier process could not be read; it is taken up as its leases end");
    }
    while !inner.is_stopped() {
        let batch = inner.store.due(Due::Outbox, inner.store.now(), inner.policy.batch).await;
        let full = match batch {
            Ok(rows) => {
                let full = rows.len() >= inner.policy.batch;
                for outbox in rows.into_iter().filter_map(outbox_of) {
                    resume_in_background(&inner, &places, outbox).await;
                }
                full
            }
            Err(error) => {
                tracing::warn!(%error, "due work could not be read; trying again");
                false
            }
        };
        // A backlog is worked off without pauses worth the name, but never in a spin.
        let pause = if full { inner.policy.poll.part(1, 20) } else { inner.policy.poll };
        inner.world.sleep(Duration::from_millis(pause.ms().max(1))).await;
    }
}

/// No other process can write an exclusive store, so every lease of another holder is a lease of the dead: its work
/// goes on at once instead of when the lease ends.
async fn recover_the_dead<S: Store, G: Gateway, W: World>(
    inner: &Arc<Inner<S, G, W>>,
    places: &Arc<Semaphore>,
) -> Result<(), ReadError> {
    let mut after: Option<ChargeId> = None;
    loop {
        let rows = inner.store.scan(Scan::Outbox { after, limit: SCAN_MAX }).await?;
        let page: Vec<Outbox> = rows.into_iter().filter_map(outbox_of).collect();
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.charge);
        for outbox in page.into_iter().filter(|outbox| outbox.parked.is_none()) {
            resume_in_background(inner, places, outbox).await;
        }
    }
}

async fn resume_in_background<S: Store, G: Gateway, W: World>(
    inner: &Arc<Inner<S, G, W>>,
    places: &Arc<Semaphore>,
    outbox: Outbox,
) {
    // The semaphore is never closed; without a place the row simply stays due.
    let Ok(place) = Arc::clone(places).acquire_owned().await else { return };
    if inner.is_draining() {
        return;
    }
    let (task, active) = (Arc::clone(inner), inner.enter());
    inner.world.spawn(async move {
        match task.take_over(outbox).await {
            Ok(Some(work)) => {
                // Lost leases and stored news are both somebody else's to tell.
                let _ = task.drive(work).await;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "due work could not be read; it stays due"),
        }
        drop((place, active));
    });
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Takes the work over under a higher fence, unless somebody alive holds it or was faster.
    async fn take_over(&self, outbox: Outbox) -> Result<Option<Work>, ReadError> {
        let keys =
            vec![RowKey::Claim(outbox.claim), RowKey::Charge(outbox.charge), RowKey::Outbox(outbox.charge)];
        let rows = self.store.read(keys).await?;
        let (Some(Some(Row::Claim(claim))), Some(Some(Row::Charge(charge))), Some(Some(Row::Outbox(outbox)))) =
            (rows.first().cloned(), rows.get(1).cloned(), rows.get(2).cloned())
        else {
            return Ok(None);
        };
        let now = self.store.now();
        let waits = claim.state.lease().is_none() && outbox.due_at > now;
        if waits || self.is_held_by_the_living(&claim) || outbox.parked.is_some() {
            return Ok(None);
        }
        let resumption =
            take_over(&claim, &outbox, self.policy.lease, self.ids.holder(), now, self.world.chance());
        let (Ok(resumption), Ok(id)) = (resumption, self.ids.next(now)) else {
            return Ok(None);
        };
        let set = ChangeSet::new(SetId::from_i64(id))
            .replace(resumption.claim.clone(), claim.revision)
            .replace(resumption.outbox.clone(), outbox.revision)
            .insert(resumption.audit);
        match self.commit(set).await {
            Ok(_) => {
                self.watch.saw(Signal::Claim { tenant: claim.tenant, outcome: ClaimOutcome::Reclaimed });
                Ok(Some(Work { claim: resumption.claim, charge, outbox: resumption.outbox }))
            }
            // Refused: somebody was faster. Otherwise the row is still due and is met again.
            Err(_) => Ok(None),
        }
    }

    fn is_held_by_the_living(&self, claim: &Claim) -> bool {
        claim.state.lease().is_some_and(|lease| {
            let dead = self.store.is_exclusive() && !self.ids.is_ours(lease.holder);
            !dead && !lease.is_over(self.store.now())
        })
    }
}

fn outbox_of(row: Row) -> Option<Outbox> {
    if let Row::Outbox(outbox) = row { Some(outbox) } else { None }
}
