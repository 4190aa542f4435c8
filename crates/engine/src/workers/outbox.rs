//! Recovery: takes over work whose time has come and runs the same drive as a request does.

use crate::engine::Inner;
use crate::fencing;
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
use std::sync::Arc;
use std::time::Duration;

/// How soon a place is asked for again.
const PLACE_WAIT: Duration = Duration::from_millis(5);
/// How long work is put off whose peer has no place for it: it must not stand before what others can do.
const PEER_WAIT: Span = Span::from_ms(5_000);

pub(crate) async fn run<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    if inner.store.is_exclusive()
        && let Err(error) = recover_the_dead(&inner).await
    {
        tracing::error!(%error, "work of an earlier process could not be read; it is taken up as its leases end");
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
        // A backlog is worked off without pauses worth the name, but never in a spin.
        let pause = if full { inner.policy.poll.part(1, 20) } else { inner.policy.poll };
        inner.world.sleep(Duration::from_millis(pause.ms().max(1))).await;
    }
}

/// No other process can write an exclusive store, so every lease of another holder is a lease of the dead: its work
/// goes on at once instead of when the lease ends.
async fn recover_the_dead<S: Store, G: Gateway, W: World>(
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
    // No faster than who is called answers; meanwhile the row simply stays due.
    while !inner.lanes.enter(&outbox.provider) {
        // Nobody else waits for a peer.
        if outbox.provider.peer().is_some() {
            return inner.put_off(outbox).await;
        }
        inner.world.sleep(PLACE_WAIT).await;
    }
    let place = Place(Arc::clone(inner), outbox.provider.clone());
    if inner.is_draining() {
        return;
    }
    let (task, active) = (Arc::clone(inner), inner.enter());
    inner.world.spawn(async move {
        task.go_on(outbox).await;
        drop((place, active));
    });
}

/// A place in the pace of recovery, given back when it is dropped.
struct Place<S, G, W>(Arc<Inner<S, G, W>>, ProviderBinding);

impl<S, G, W> Drop for Place<S, G, W> {
    fn drop(&mut self) {
        self.0.lanes.leave(&self.1);
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Lets work that is due wait, so that what is due after it is found. Whoever takes it up meanwhile was faster.
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

    /// Goes on with work whose time has come, unless somebody beside us is at it: then it stays due.
    async fn go_on(&self, outbox: Outbox) {
        let Ok(pass) = self.enter_fence(outbox.payment).await else { return };
        match self.take_over(outbox).await {
            Ok(Some(work)) => {
                // Lost leases and stored news are both somebody else's to tell.
                let _ =
                    fencing::during(&self.world, pass, self.drive(Box::new(work), &InterimNews::default()))
                        .await;
            }
            Ok(None) => pass.leave().await,
            Err(error) => {
                tracing::warn!(%error, "due work could not be read; it stays due");
                pass.leave().await;
            }
        }
    }

    /// Takes the work over under a higher fence, unless somebody alive holds it or was faster.
    async fn take_over(&self, outbox: Outbox) -> Result<Option<Work>, ReadError> {
        let Some(Work { claim, subject, outbox }) = self.work(&outbox).await? else {
            return Ok(None);
        };
        let now = self.store.now();
        let waits = claim.state.lease().is_none() && outbox.due_at > now;
        if waits || self.is_held_by_the_living(&claim) || outbox.parked.is_some() {
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
            // Refused: somebody was faster. Otherwise the row is still due and is met again.
            Err(_) => Ok(None),
        }
    }

    /// The work as it stands now; nothing if it is done.
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

    pub(crate) fn is_held_by_the_living(&self, claim: &Claim) -> bool {
        claim.state.lease().is_some_and(|lease| {
            let dead = self.store.is_exclusive() && !self.ids.is_ours(lease.holder);
            !dead && !lease.is_over(self.store.now())
        })
    }
}

fn outbox_of(row: Row) -> Option<Outbox> {
    if let Row::Outbox(outbox) = row { Some(outbox) } else { None }
}
