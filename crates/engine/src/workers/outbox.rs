//! Recovery: takes over due work and drives it exactly as a request does.

use crate::engine::Inner;
use crate::signal::{ClaimOutcome, Signal};
use crate::waiters::InterimNews;
use crate::world::World;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::outbox::{Outbox, Payment, ProviderBinding};
use counterfoil_core::payments::attempt::resume::take_over;
use counterfoil_core::payments::{PaymentSubject, Work};
use counterfoil_core::types::id::{SetId, SubjectId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, Due, ReadError, Row, RowKey, Scan, Store};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a busy lane is asked for a slot again.
const SLOT_WAIT: Duration = Duration::from_millis(5);
/// Delay of work whose peer has no free slot, so that other work is not blocked.
const PEER_WAIT: Span = Span::from_ms(5_000);

pub(crate) async fn run<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    if inner.store.is_exclusive()
        && let Err(error) = recover_dead_holders(&inner).await
    {
        tracing::error!(%error, "work of an earlier process could not be read; it is taken over when its leases end");
    }
    while !inner.is_stopped() {
        let batch = inner.store.due(Due::Outbox, inner.store.now(), inner.policy.batch).await;
        let full = match batch {
            Ok(rows) => {
                let full = rows.len() >= inner.policy.batch;
                for outbox in rows.into_iter().filter_map(outbox_of) {
                    resume_in_background(&inner, outbox).await;
                }
                full
            }
            Err(error) => {
                tracing::warn!(%error, "due work could not be read; trying again");
                false
            }
        };
        // A backlog gets short pauses, but the loop never spins.
        let pause = if full { inner.policy.poll.part(1, 20) } else { inner.policy.poll };
        inner.world.sleep(Duration::from_millis(pause.ms().max(1))).await;
    }
}

/// Takes over the work of earlier processes at once. No other process can write an exclusive store,
/// so every lease of another holder belongs to a dead process.
async fn recover_dead_holders<S: Store, G: Gateway, W: World>(
    inner: &Arc<Inner<S, G, W>>,
) -> Result<(), ReadError> {
    let mut after: Option<(TenantId, SubjectId)> = None;
    loop {
        let rows = inner.store.scan(Scan::Outbox { after, limit: SCAN_MAX }).await?;
        let page: Vec<Outbox> = rows.into_iter().filter_map(outbox_of).collect();
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.tenant, last.id));
        for outbox in page.into_iter().filter(|outbox| outbox.parked.is_none()) {
            resume_in_background(inner, outbox).await;
        }
    }
}

async fn resume_in_background<S: Store, G: Gateway, W: World>(inner: &Arc<Inner<S, G, W>>, outbox: Outbox) {
    // The lane limits recovery to the pace at which its provider answers. Until then the row stays
    // due.
    while !inner.lanes.enter(&outbox.provider) {
        // A busy peer must not delay the work of other lanes.
        if outbox.provider.peer().is_some() {
            return inner.put_off(outbox).await;
        }
        inner.world.sleep(SLOT_WAIT).await;
    }
    let slot = RecoverySlot(Arc::clone(inner), outbox.provider.clone());
    if inner.is_draining() {
        return;
    }
    let (task, active) = (Arc::clone(inner), inner.enter());
    inner.world.spawn(async move {
        let payment = outbox.payment;
        // Another server may work on the payment at this moment: then the row stays due.
        let _ = task.fenced(payment, pin!(task.recover(outbox))).await;
        drop((slot, active));
    });
}

/// A slot in a lane's limit of concurrent recoveries. Dropping it frees the slot.
struct RecoverySlot<S, G, W>(Arc<Inner<S, G, W>>, ProviderBinding);

impl<S, G, W> Drop for RecoverySlot<S, G, W> {
    fn drop(&mut self) {
        self.0.lanes.leave(&self.1);
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Delays due work, so that the work behind it is found. A failed commit means a takeover by
    /// another process.
    async fn put_off(&self, outbox: Outbox) {
        let now = self.store.now();
        if outbox.due_at <= now
            && let Some(id) = self.next_id(now).await
        {
            let revision = outbox.revision;
            let later =
                Outbox { due_at: now.plus(PEER_WAIT), revision: revision.saturating_add(1), ..outbox };
            let _ = self.commit(ChangeSet::new(SetId::from_i64(id)).replace(later, revision)).await;
        }
    }

    /// Takes due work over and drives it.
    async fn recover(&self, outbox: Outbox) {
        match self.take_over(outbox).await {
            Ok(Some(work)) => {
                // No request waits here: waiters were already sent the news.
                let _ = self.drive(Box::new(work), &InterimNews::default()).await;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "due work could not be read; it stays due"),
        }
    }

    /// Takes the work over with a higher fencing token, unless it has a live lease or another
    /// process was faster.
    async fn take_over(&self, outbox: Outbox) -> Result<Option<Work>, ReadError> {
        let Some(Work { claim, subject, outbox }) = self.work(&outbox).await? else {
            return Ok(None);
        };
        let now = self.store.now();
        let waits = claim.state.lease().is_none() && outbox.due_at > now;
        if waits || self.has_live_lease(&claim) || outbox.parked.is_some() {
            return Ok(None);
        }
        let resumption =
            take_over(&claim, &outbox, self.policy.lease, self.ids.holder(), now, self.world.chance());
        let (Ok(resumption), Some(id)) = (resumption, self.next_id(now).await) else {
            return Ok(None);
        };
        let set = ChangeSet::new(SetId::from_i64(id))
            .replace(resumption.claim.clone(), claim.revision)
            .replace(resumption.outbox.clone(), outbox.revision)
            .insert(resumption.audit);
        match self.commit(set).await {
            Ok(_) => {
                self.watch.saw(Signal::Claim { tenant: claim.tenant, outcome: ClaimOutcome::Reclaimed });
                Ok(Some(Work { claim: resumption.claim, subject, outbox: resumption.outbox }))
            }
            // If refused, another process was faster. Otherwise the row stays due and is found
            // again.
            Err(_) => Ok(None),
        }
    }

    /// The current rows of the work. `None`: it is done.
    pub(crate) async fn work(&self, outbox: &Outbox) -> Result<Option<Work>, ReadError> {
        let tenant = outbox.tenant;
        let payment = match outbox.payment {
            Payment::Charge(charge) => RowKey::Charge(tenant, charge),
            Payment::Payout(payout) => RowKey::Payout(tenant, payout),
        };
        let keys = vec![
            RowKey::Claim(tenant, outbox.claim),
            RowKey::Outbox(tenant, outbox.id),
            payment,
            RowKey::Operation(tenant, outbox.id.into()),
        ];
        let mut rows = self.store.read(keys).await?.into_iter();
        let mut next = || rows.next().flatten();
        let (Some(Row::Claim(claim)), Some(Row::Outbox(outbox))) = (next(), next()) else {
            return Ok(None);
        };
        let subject = match (next(), next()) {
            (Some(Row::Charge(charge)), Some(Row::Operation(operation))) => {
                PaymentSubject::Charge(charge, Some(operation))
            }
            (Some(Row::Charge(charge)), _) => PaymentSubject::Charge(charge, None),
            (Some(Row::Payout(payout)), _) => PaymentSubject::Payout(payout),
            _ => return Ok(None),
        };
        Ok(Some(Work { claim, subject, outbox }))
    }

    /// Whether a living process holds a lease on the claim that is not over.
    pub(crate) fn has_live_lease(&self, claim: &Claim) -> bool {
        claim.state.lease().is_some_and(|lease| {
            let dead = self.store.is_exclusive() && !self.ids.is_ours(lease.holder);
            !dead && !lease.is_over(self.store.now())
        })
    }
}

fn outbox_of(row: Row) -> Option<Outbox> {
    if let Row::Outbox(outbox) = row { Some(outbox) } else { None }
}
