//! A hint about a payment, from its provider: whatever is in doubt about it is asked about now. What comes of it is the
//! answer to that question; the hint itself changes when work is due and nothing else.

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
    /// Makes the payment's waiting work due, and says how much of it there was. An error means that the store could not
    /// be asked or told, and the hint should come again.
    pub(crate) async fn take_hint(&self, payment: Payment) -> Result<usize, ReadError> {
        let mut moved = 0;
        for outbox in self.work_on(payment).await? {
            moved += usize::from(self.bring_forward(&outbox).await?);
        }
        Ok(moved)
    }

    /// What is still to be done for a payment: its making, and what was asked of it since.
    async fn work_on(&self, payment: Payment) -> Result<Vec<Outbox>, ReadError> {
        // Its name says nothing of whose it is.
        let rows = self.store.scan(Scan::DoubtOn { payment, limit: HINTED_WORK_MAX }).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| if let Row::Outbox(outbox) = row { Some(outbox) } else { None })
            // The provider knows nothing of what is bound to a peer.
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
            // Somebody is at it already, or has ended it: there is nothing to bring forward.
            Err(NotCommitted::Refused(_)) => Ok(false),
            Err(NotCommitted::Unavailable(why)) => Err(ReadError(why)),
            Err(NotCommitted::InDoubt) => Err(ReadError("the commit of a hint is in doubt".into())),
        }
    }
}
