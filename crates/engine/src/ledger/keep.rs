//! One request about the ledger, from its key to its committed answer.

use super::acts::{Decision, Draft, Trouble};
use super::spread::{Blocked, scatter};
use crate::commit::NotCommitted;
use crate::engine::Inner;
use crate::present::LedgerReply;
use crate::refuse::{Kept, Refused, keyed};
use crate::service::Submitted;
use crate::signal::{ClaimOutcome, Signal};
use crate::submit::{Met, ROUNDS_MAX};
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

/// Decisions about one request before it is given up: each rests on rows that somebody else may have changed.
const DECISIONS_MAX: u32 = 8;

/// What came of an attempt to commit.
enum Attempt {
    /// It is committed.
    Settled(Arc<Claim>),
    /// Somebody else holds the key.
    Found(Box<Claim>),
    /// The record that was to be claimed anew is gone; the key is free.
    Gone,
    /// It is to be refused for good.
    Refused(LedgerRefusal),
    /// What it was decided on has changed.
    Changed,
    /// The store did not take it.
    Failed(String),
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn keep(self: &Arc<Self>, request: Request, act: LedgerCommand) -> Submitted {
        if let Some(submitted) = self.remembered(&request).await {
            return submitted;
        }
        if self.is_draining() {
            return self.only_replay(&request).await;
        }
        let _active = self.enter();
        let mut found: Option<Claim> = None;
        for _ in 0..ROUNDS_MAX {
            if let Some(claim) = &found {
                match self.settled(claim, &request) {
                    Met::Answered(submitted) => return submitted,
                    Met::Unsettled => return self.wait(&request).await,
                    Met::Free => {}
                }
            }
            match self.attempt_act(&request, &act, found.as_ref()).await {
                Ok(Attempt::Settled(claim)) => return self.won(&request, claim),
                Ok(Attempt::Found(claim)) => found = Some(*claim),
                Ok(Attempt::Gone) => found = None,
                Ok(Attempt::Changed) => self.watch.saw(Signal::Conflict),
                Ok(Attempt::Refused(_)) => {}
                Ok(Attempt::Failed(why)) => return self.failed_closed(&why),
                Err(submitted) => return submitted,
            }
        }
        self.told(request.tenant, ClaimOutcome::InUse, Submitted::InUse)
    }

    pub(crate) fn failed_closed(&self, why: &str) -> Submitted {
        tracing::warn!(why, "failed closed: a request about the ledger could not be stored");
        self.watch.saw(Signal::FailClosed);
        Submitted::StoreUnavailable
    }

    pub(crate) fn won(&self, request: &Request, claim: Arc<Claim>) -> Submitted {
        let submitted = match claim.state.settled() {
            Some(settled) => Submitted::Answer { settled: settled.clone(), replayed: false },
            None => Submitted::InUse,
        };
        self.remember(claim);
        self.told(request.tenant, ClaimOutcome::Won, submitted)
    }

    /// Decides and commits, again and again while what it is decided on changes.
    async fn attempt_act(
        self: &Arc<Self>,
        request: &Request,
        act: &LedgerCommand,
        expired: Option<&Claim>,
    ) -> Result<Attempt, Submitted> {
        for _ in 0..DECISIONS_MAX {
            let now = self.store.now();
            let decision = match self.decide(request, act, now).await {
                Ok(decision) => decision,
                Err(Trouble(why)) => return Ok(Attempt::Failed(why)),
            };
            let attempt = match decision {
                Decision::Invalid(flaws) => {
                    return Err(self.unless_kept(request, Submitted::Invalid(flaws)).await);
                }
                Decision::NotFound => return Err(self.unless_kept(request, Submitted::NotFound).await),
                Decision::Refuse(refusal) => Attempt::Refused(refusal),
                Decision::Do(draft) => self.offer_draft(request, *draft, now, expired).await,
            };
            match attempt {
                Attempt::Refused(refusal) => return Ok(self.refuse(request, refusal, expired).await),
                Attempt::Changed => self.watch.saw(Signal::Conflict),
                other => return Ok(other),
            }
        }
        Ok(Attempt::Failed("what the request is about changed all the time".into()))
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
        let Some(id) = self.next_id(now).await else { return Attempt::Failed("no id can be minted".into()) };
        let set = keyed(SetId::from_i64(id), &claim, expired);
        let set = draft.changes.iter().cloned().fold(set, ChangeSet::with);
        let set = set.insert(AuditRecord {
            id: record_id(now, turn(&draft.changes), self.world.chance()),
            subject: draft.about,
            ..self.record(&claim, now, draft.audited, draft.detail)
        });
        // The end of a hold goes to the shards its beginning went to.
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
            Err(Blocked::Unfit(BalanceRefusal::NotHeld)) => Attempt::Changed,
            Err(Blocked::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(found)) => Attempt::Found(Box::new(found)),
                Some(Row::Name(_)) => Attempt::Refused(LedgerRefusal::AccountExists),
                Some(Row::Asset(_)) => Attempt::Refused(LedgerRefusal::AssetExists),
                Some(Row::Reversal(_)) => Attempt::Refused(LedgerRefusal::AlreadyReversed),
                Some(_) => Attempt::Changed,
                None if refusal.change == 0 && refusal.reason == RefusalReason::Absent => Attempt::Gone,
                None => Attempt::Failed(format!("the set was refused: {:?}", refusal.reason)),
            },
            Err(Blocked::Failed(NotCommitted::InDoubt)) => Attempt::Failed(
                "its commit is in doubt; the key has the answer once the store is back".into(),
            ),
            Err(Blocked::Failed(NotCommitted::Unavailable(why))) => Attempt::Failed(why),
            Err(Blocked::Failed(NotCommitted::Refused(refusal))) => {
                Attempt::Failed(format!("the set was refused: {:?}", refusal.reason))
            }
        }
    }

    /// Stores a refusal, so that every retry gets it.
    async fn refuse(&self, request: &Request, refusal: LedgerRefusal, expired: Option<&Claim>) -> Attempt {
        let reply = self.present.ledger(LedgerReply::Refused(refusal), request.id);
        let refused = Refused { makes: Resource::Transaction, about: None, reply, error: refusal.name() };
        match self.keep_refusal(request, refused, expired).await {
            Kept::Settled(claim) => Attempt::Settled(claim),
            Kept::Found(claim) => Attempt::Found(claim),
            Kept::Gone => Attempt::Gone,
            Kept::Failed(why) => Attempt::Failed(why),
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

/// The revision of what a history is about, so that it reads in order within one millisecond too: the claims of its
/// steps do not know of each other.
fn turn(changes: &[Change]) -> u64 {
    let replaced = changes.iter().filter_map(|change| match change {
        Change::Replace { expect, .. } => Some(expect.saturating_add(1)),
        Change::Insert(_) | Change::Remove { .. } | Change::Move(_) => None,
    });
    replaced.max().unwrap_or(1)
}
