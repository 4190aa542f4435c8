//! One ledger request, from its key to the committed answer.

use super::decisions::{Decision, DecisionError, Draft};
use super::spread::{Blocked, scatter};
use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::present::LedgerReply;
use crate::refuse::{NewRefusal, RefusalResult, claim_set};
use crate::service::Submitted;
use crate::signal::{ClaimOutcome, Signal};
use crate::submit::{KeyState, ROUNDS_MAX};
use crate::world::World;
use counterfoil_core::audit::{AuditKind, AuditRecord, record_id};
use counterfoil_core::idempotency::claim::{Claim, Resource, Settled};
use counterfoil_core::idempotency::request::{Outcome, Request};
use counterfoil_core::ledger::balance::BalanceRefusal;
use counterfoil_core::payments::ledger::{LedgerCommand, LedgerRefusal};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{Change, ChangeSet, RefusalReason, Row, Store};
use std::sync::Arc;

/// Decisions on one request before it fails. Another request may change the rows that a decision
/// rests on.
const DECISIONS_MAX: u32 = 8;

/// Result of one attempt to decide and commit.
enum Attempt {
    Settled(Arc<Claim>),
    /// Another request holds the key.
    Taken(Box<Claim>),
    /// The expired claim to be replaced is gone; the key is free.
    KeyFree,
    Refused(LedgerRefusal),
    /// A row the decision rests on has changed.
    Stale,
    StoreFailed(String),
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn execute(self: &Arc<Self>, request: Request, command: LedgerCommand) -> Submitted {
        if let Some(submitted) = self.cached_answer(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return self.replay_only(&request).await;
        }
        let _active = self.enter();
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS_MAX {
            if let Some(claim) = &found {
                match self.key_state(claim, &request) {
                    KeyState::Answered(submitted) => return submitted,
                    KeyState::Unsettled => return self.wait(&request).await,
                    KeyState::Free => {}
                }
            }
            match self.attempt_command(&request, &command, found.as_ref()).await {
                Ok(Attempt::Settled(claim)) => return self.answer_first_request(&request, claim),
                Ok(Attempt::Taken(claim)) => found = Some(*claim),
                Ok(Attempt::KeyFree) => found = None,
                Ok(Attempt::Stale) => self.watch.saw(Signal::Conflict),
                Ok(Attempt::Refused(_)) => {}
                Ok(Attempt::StoreFailed(why)) => return self.failed_closed(&why),
                Err(submitted) => return submitted,
            }
        }
        self.counted(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    pub(crate) fn failed_closed(&self, why: &str) -> Submitted {
        tracing::warn!(why, "failed closed: a ledger request could not be stored");
        self.watch.saw(Signal::FailClosed);
        Submitted::StoreUnavailable
    }

    pub(crate) fn answer_first_request(&self, request: &Request, claim: Arc<Claim>) -> Submitted {
        let submitted = match claim.state.settled() {
            Some(settled) => Submitted::Answer { settled: settled.clone(), replayed: false },
            None => Submitted::InUse,
        };
        self.cache_answer(claim);
        self.counted(request.tenant, ClaimOutcome::Won, submitted)
    }

    /// Decides and commits. Repeats as long as other requests change the rows that the decision
    /// read.
    async fn attempt_command(
        self: &Arc<Self>,
        request: &Request,
        command: &LedgerCommand,
        expired: Option<&Claim>,
    ) -> Result<Attempt, Submitted> {
        for _ in 0..DECISIONS_MAX {
            let now = self.store.now();
            let decision = match self.decide(request, command, now).await {
                Ok(decision) => decision,
                Err(DecisionError(why)) => return Ok(Attempt::StoreFailed(why)),
            };
            let attempt = match decision {
                Decision::Invalid(flaws) => {
                    return Err(self.stored_answer_or(request, Submitted::Invalid(flaws)).await);
                }
                Decision::NotFound => return Err(self.stored_answer_or(request, Submitted::NotFound).await),
                Decision::Refuse(refusal) => Attempt::Refused(refusal),
                Decision::Commit(draft) => self.offer_draft(request, *draft, now, expired).await,
            };
            match attempt {
                Attempt::Refused(refusal) => return Ok(self.refuse(request, refusal, expired).await),
                Attempt::Stale => self.watch.saw(Signal::Conflict),
                other => return Ok(other),
            }
        }
        Ok(Attempt::StoreFailed("other requests kept changing the rows of this one".into()))
    }

    async fn offer_draft(
        &self,
        request: &Request,
        draft: Draft,
        now: Time,
        expired: Option<&Claim>,
    ) -> Attempt {
        let settled =
            Settled { reply: draft.reply, windows: self.policy.windows.windows(request.claim, now) };
        let claim =
            Arc::new(request.settled(draft.subject, draft.makes, Outcome::Done(settled), now, expired));
        let Some(id) = self.next_id(now).await else {
            return Attempt::StoreFailed("no id can be minted".into());
        };
        let set = claim_set(SetId::from_i64(id), &claim, expired);
        let set = draft.changes.iter().cloned().fold(set, ChangeSet::with);
        let set = set.insert(AuditRecord {
            id: record_id(now, turn(&draft.changes), self.world.chance()),
            subject: draft.about,
            ..self.record(&claim, now, draft.audited, draft.detail)
        });
        // A hold's end moves the same shards as its beginning.
        let seed = scatter(draft.about.to_i64());
        match self.commit_moving(&set, &draft.deltas, seed).await {
            Ok(_) => {
                self.learn_opened(&draft.changes);
                Attempt::Settled(claim)
            }
            Err(Blocked::Unfit(BalanceRefusal::Insufficient)) => {
                Attempt::Refused(LedgerRefusal::InsufficientFunds)
            }
            Err(Blocked::Unfit(BalanceRefusal::CapExceeded)) => Attempt::Refused(LedgerRefusal::CapExceeded),
            Err(Blocked::Unfit(BalanceRefusal::NotHeld)) => Attempt::Stale,
            Err(Blocked::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) => Attempt::Taken(Box::new(found)),
                Some(Row::Name(_)) => Attempt::Refused(LedgerRefusal::AccountExists),
                Some(Row::Asset(_)) => Attempt::Refused(LedgerRefusal::AssetExists),
                Some(Row::Reversal(_)) => Attempt::Refused(LedgerRefusal::AlreadyReversed),
                Some(_) => Attempt::Stale,
                None if refusal.change == 0 && refusal.reason == RefusalReason::Absent => Attempt::KeyFree,
                None => Attempt::StoreFailed(format!("the set was refused: {:?}", refusal.reason)),
            },
            Err(Blocked::Failed(NotCommitted::InDoubt)) => Attempt::StoreFailed(
                "its commit is in doubt; the key has the answer once the store is back".into(),
            ),
            Err(Blocked::Failed(NotCommitted::Unavailable(why))) => Attempt::StoreFailed(why),
            Err(Blocked::Failed(NotCommitted::Refused(refusal))) => {
                Attempt::StoreFailed(format!("the set was refused: {:?}", refusal.reason))
            }
        }
    }

    /// Stores a refusal under the request's key.
    async fn refuse(&self, request: &Request, refusal: LedgerRefusal, expired: Option<&Claim>) -> Attempt {
        let reply = self.present.ledger(LedgerReply::Refused(refusal), request.id);
        let refusal = NewRefusal { makes: Resource::Transaction, about: None, reply, error: refusal.name() };
        match self.store_refusal(request, refusal, expired).await {
            RefusalResult::Stored(claim) => Attempt::Settled(claim),
            RefusalResult::Taken(claim) => Attempt::Taken(claim),
            RefusalResult::KeyFree => Attempt::KeyFree,
            RefusalResult::StoreFailed(why) => Attempt::StoreFailed(why),
        }
    }

    pub(crate) fn record(&self, claim: &Claim, now: Time, kind: AuditKind, detail: String) -> AuditRecord {
        AuditRecord {
            id: record_id(now, claim.revision, self.world.chance()),
            tenant: claim.tenant,
            subject: claim.subject,
            at: now,
            fence: claim.fence,
            kind,
            detail,
        }
    }

    fn learn_opened(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Insert(row) | Change::Replace { row, .. } = change
                && let Row::Account(account) = &**row
            {
                self.accounts.learn(&Arc::new(account.clone()));
            }
        }
    }
}

/// The audit order of a ledger record: the subject's new revision. It orders records of one subject
/// and millisecond, whose requests have unrelated claims.
fn turn(changes: &[Change]) -> u64 {
    let replaced = changes.iter().filter_map(|change| match change {
        Change::Replace { expect, .. } => Some(expect.saturating_add(1)),
        Change::Insert(_) | Change::Remove { .. } | Change::Move(_) => None,
    });
    replaced.max().unwrap_or(1)
}
