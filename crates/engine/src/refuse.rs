//! Stored refusals: every retry of a refused request gets the same answer.

use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::world::World;
use counterfoil_core::audit::{AuditKind, AuditRecord, record_id};
use counterfoil_core::idempotency::claim::{Claim, Resource, Settled};
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::idempotency::request::{Outcome, Request};
use counterfoil_core::payments::{AUDIT_PLACE_LAST, audit_order_after};
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_gateway::Gateway;
use counterfoil_store::{Change, ChangeSet, Row, Store};
use std::sync::Arc;

/// A refusal to be stored.
pub(crate) struct NewRefusal {
    /// The resource the request would have made.
    pub(crate) makes: Resource,
    /// The subject whose timeline gets the refusal, and the audit order there. `None` makes a
    /// timeline of its own.
    pub(crate) about: Option<(SubjectId, u64)>,
    pub(crate) reply: Reply,
    /// The error's name in the timeline.
    pub(crate) error: &'static str,
}

/// Result of storing a refusal.
pub(crate) enum RefusalResult {
    Stored(Arc<Claim>),
    /// Another request holds the key.
    Taken(Box<Claim>),
    /// The expired claim to be replaced is gone; the key is free.
    KeyFree,
    StoreFailed(String),
}

/// The audit order of a refusal: after every record of the payment's current revision.
pub(crate) fn refusal_audit_order(payment_revision: u64) -> u64 {
    audit_order_after(payment_revision, AUDIT_PLACE_LAST)
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Stores a refusal under the request's key.
    pub(crate) async fn store_refusal(
        &self,
        request: &Request,
        refusal: NewRefusal,
        expired: Option<&Claim>,
    ) -> RefusalResult {
        let now = self.store.now();
        let (Some(subject), Some(id)) = (self.next_id(now).await, self.next_id(now).await) else {
            return RefusalResult::StoreFailed("no id can be minted".into());
        };
        let NewRefusal { makes, about, reply, error } = refusal;
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
        let set = claim_set(SetId::from_i64(id), &claim, expired).insert(record);
        match self.commit(set).await {
            Ok(_) => RefusalResult::Stored(claim),
            Err(NotCommitted::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) => RefusalResult::Taken(Box::new(found)),
                _ => RefusalResult::KeyFree,
            },
            Err(NotCommitted::Unavailable(why)) => RefusalResult::StoreFailed(why),
            Err(NotCommitted::InDoubt) => {
                RefusalResult::StoreFailed("the commit of a refusal is in doubt".into())
            }
        }
    }
}

/// A set with the claim as its first change, so a taken key is the first reason for a refusal.
pub(crate) fn claim_set(id: SetId, claim: &Arc<Claim>, expired: Option<&Claim>) -> ChangeSet {
    let row = Arc::new(Row::Claim(Claim::clone(claim)));
    ChangeSet::new(id).with(match expired {
        Some(old) => Change::Replace { row, expect: old.revision },
        None => Change::Insert(row),
    })
}
