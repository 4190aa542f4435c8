//! Refusing for good: the refusal is stored under its key, so that every retry gets it.

use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::world::World;
use counterfoil_core::audit::{AuditKind, AuditRecord, record_id};
use counterfoil_core::idempotency::claim::{Claim, Resource, Settled};
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::idempotency::request::{Outcome, Request};
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_gateway::Gateway;
use counterfoil_store::{Change, ChangeSet, Row, Store};
use std::sync::Arc;

/// A request that is refused.
pub(crate) struct Refused {
    /// What it would have made.
    pub(crate) makes: Resource,
    /// Whose history the refusal belongs to, and its turn there; its own if it has none.
    pub(crate) about: Option<(SubjectId, u64)>,
    /// The answer.
    pub(crate) reply: Reply,
    /// Its word in the history.
    pub(crate) error: &'static str,
}

/// What came of storing a refusal.
pub(crate) enum Kept {
    /// It is stored.
    Settled(Arc<Claim>),
    /// Somebody else holds the key.
    Found(Box<Claim>),
    /// The record that was to be claimed anew is gone; the key is free.
    Gone,
    /// The store did not take it.
    Failed(String),
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Stores a refusal, so that every retry gets it.
    pub(crate) async fn keep_refusal(
        &self,
        request: &Request,
        refused: Refused,
        expired: Option<&Claim>,
    ) -> Kept {
        let now = self.store.now();
        let (Some(subject), Some(id)) = (self.next_id(now).await, self.next_id(now).await) else {
            return Kept::Failed("no id can be minted".into());
        };
        let Refused { makes, about, reply, error } = refused;
        let settled = Settled { reply, windows: self.policy.windows.windows(request.claim, now) };
        let subject = SubjectId::from_i64(subject);
        let claim = Arc::new(request.settled(subject, makes, Outcome::Refused(settled), now, expired));
        let (about, turn) = about.unwrap_or((subject, claim.revision));
        let record = AuditRecord {
            id: record_id(now, turn, self.world.chance()),
            tenant: claim.tenant,
            subject: about,
            at: now,
            fence: claim.fence,
            kind: AuditKind::Refused,
            detail: format!("request=req_{} error={error}", request.id),
        };
        let set = keyed(SetId::from_i64(id), &claim, expired).insert(record);
        match self.commit(set).await {
            Ok(_) => Kept::Settled(claim),
            Err(NotCommitted::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) => Kept::Found(Box::new(found)),
                _ => Kept::Gone,
            },
            Err(NotCommitted::Unavailable(why)) => Kept::Failed(why),
            Err(NotCommitted::InDoubt) => Kept::Failed("the commit of a refusal is in doubt".into()),
        }
    }
}

/// A set that begins with its claim: whoever finds the key taken learns it first.
pub(crate) fn keyed(id: SetId, claim: &Arc<Claim>, expired: Option<&Claim>) -> ChangeSet {
    let row = Arc::new(Row::Claim(Claim::clone(claim)));
    ChangeSet::new(id).with(match expired {
        Some(old) => Change::Replace { row, expect: old.revision },
        None => Change::Insert(row),
    })
}
