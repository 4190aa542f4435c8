//! Hints from a provider about a payment: doubtful work on the payment becomes due now. A hint
//! changes only the due time. The provider's answer to the following question decides the outcome.

use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::world::World;
use counterfoil_core::outbox::{Outbox, Payment};
use counterfoil_core::payments::attempt::hint::hint;
use counterfoil_core::payments::{Work, flow};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::HINTED_WORK_MAX;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, ReadError, Row, Scan, Store};

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Makes the payment's waiting work due; returns how many pieces. On an error the provider
    /// should send the hint again.
    pub(crate) async fn take_hint(&self, payment: Payment) -> Result<usize, ReadError> {
        let mut moved = 0;
        for outbox in self.work_on(payment).await? {
            moved += usize::from(self.bring_forward(&outbox).await?);
        }
        Ok(moved)
    }

    /// The pending work on a payment: its creation and its operations.
    async fn work_on(&self, payment: Payment) -> Result<Vec<Outbox>, ReadError> {
        // A payment's reference does not name the tenant, so the scan covers all tenants.
        let rows = self.store.scan(Scan::DoubtOn { payment, limit: HINTED_WORK_MAX }).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| if let Row::Outbox(outbox) = row { Some(outbox) } else { None })
            // The provider knows nothing of payments that are bound to a peer.
            .filter(|outbox| outbox.provider.peer().is_none())
            .collect())
    }

    async fn bring_forward(&self, outbox: &Outbox) -> Result<bool, ReadError> {
        let Some(Work { claim, outbox, .. }) = self.work(outbox).await? else { return Ok(false) };
        let Some(step) = flow::step(outbox.saga) else { return Ok(false) };
        let now = self.store.now();
        let rules = self.gateway.rules(&outbox.provider).of(step);
        let Some(sooner) = hint(&rules, &claim, &outbox, now) else { return Ok(false) };
        let Some(id) = self.next_id(now).await else { return Err(ReadError("no id can be minted".into())) };
        let set = ChangeSet::new(SetId::from_i64(id)).replace(sooner, outbox.revision);
        match self.commit(set).await {
            Ok(_) => Ok(true),
            // The work is running or done already, so there is nothing to bring forward.
            Err(NotCommitted::Refused(_)) => Ok(false),
            Err(NotCommitted::Unavailable(why)) => Err(ReadError(why)),
            Err(NotCommitted::InDoubt) => Err(ReadError("the commit of a hint is in doubt".into())),
        }
    }
}
