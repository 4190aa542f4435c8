//! Opening work: decide the preconditions of a provider call, commit them in one set, and drive the
//! work.
//!
//! The work runs to the end even if no request waits for it any more.

use crate::command::ResolvedCommand;
use crate::commit::NotCommitted;
use crate::detach::DetachOnDrop;
use crate::engine::Inner;
use crate::ledger::payments::{Booking, Credit};
use crate::ledger::spread::{Blocked, Deltas, scatter};
use crate::present::LedgerReply;
use crate::refuse::{NewRefusal, RefusalResult, refusal_audit_order};
use crate::service::Submitted;
use crate::signal::Signal;
use crate::waiters::{InterimNews, News};
use crate::world::World;
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, Meeting};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::BalanceRefusal;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::{self, CreateCharge};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::ledger::LedgerRefusal;
use counterfoil_core::payments::operation::launch::{self, Operate, OperationRefusal};
use counterfoil_core::payments::{PaymentSubject, Work};
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, MintError, OperationId, SetId, SubjectId};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{Change, ChangeSet, RefusalReason, Row, RowKey, Store};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// Result of opening a claim, for the request that asked for it.
pub(crate) enum OpenResult {
    /// The request holds the claim, and there is news of the work.
    News(News),
    /// Another request holds the key.
    Taken(Box<Claim>),
    /// The expired claim to be replaced is gone; the key is free.
    KeyFree,
    /// Another process finishes the work.
    Elsewhere,
    /// The commit is in doubt. The work runs if the commit succeeded, so a retry is safe under this
    /// key only.
    InDoubt(Payment),
    /// The store could not be written; the provider was not called.
    StoreFailed,
    /// Nothing was opened, and nothing was stored.
    Rejected(Submitted),
}

/// A condition that the commit of an opening checks again.
pub(crate) enum Precondition {
    None,
    /// The charge has this revision.
    Charge(u64),
    /// The account a payout is paid from is unchanged. The set replaces the account's row, so only
    /// one of two payouts on the same balance commits.
    Account(Box<Account>),
}

/// A decided opening, without its ledger entries.
pub(crate) struct DecidedOpening {
    pub(crate) set: SetId,
    pub(crate) now: Time,
    pub(crate) work: Box<Work>,
    pub(crate) actions: Vec<SagaAction>,
    pub(crate) audit: AuditRecord,
    pub(crate) precondition: Precondition,
}

/// An opening with the complete change set.
struct PreparedOpening {
    work: Box<Work>,
    set: ChangeSet,
    deltas: Deltas,
}

/// Result of committing and driving an opening.
enum BeginResult {
    /// A row in the opening's precondition has changed: decide again.
    Stale,
    LedgerRefused(LedgerRefusal),
    Ended(OpenResult),
}

/// Ids of one opening.
pub(crate) struct MintedIds {
    pub(crate) now: Time,
    pub(crate) subject: i64,
    pub(crate) set: SetId,
}

/// Decisions on rows that other requests keep changing, before the client has to retry.
const DECISIONS_MAX: u32 = 64;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Commits the claim and drives the work.
    pub(crate) async fn open(
        self: &Arc<Self>,
        command: &ResolvedCommand,
        expired: Option<&Claim>,
    ) -> OpenResult {
        for _ in 0..DECISIONS_MAX {
            let opening = match self.prepare(command, expired).await {
                Ok(opening) => opening,
                Err(result) => return result,
            };
            let Work { outbox, subject, .. } = &*opening.work;
            let history = outbox.payment.subject();
            let about = subject.operation().map(|_| (history, refusal_audit_order(subject.revision())));
            match self.begin(opening).await {
                BeginResult::Ended(result) => return result,
                BeginResult::Stale => self.watch.saw(Signal::Conflict),
                BeginResult::LedgerRefused(refusal) => {
                    return Box::pin(self.refused_by_the_ledger(command, refusal, about, expired)).await;
                }
            }
        }
        OpenResult::Rejected(Submitted::InProgress)
    }

    pub(crate) async fn refused_by_the_ledger(
        &self,
        command: &ResolvedCommand,
        refusal: LedgerRefusal,
        about: Option<(SubjectId, u64)>,
        expired: Option<&Claim>,
    ) -> OpenResult {
        let reply = self.present.ledger(LedgerReply::Refused(refusal), command.request().id);
        let refusal = NewRefusal { makes: command.refused_as(), about, reply, error: refusal.name() };
        self.refuse_opening(command.request(), refusal, expired).await
    }

    async fn refuse_opening(
        &self,
        request: &Request,
        refusal: NewRefusal,
        expired: Option<&Claim>,
    ) -> OpenResult {
        match self.store_refusal(request, refusal, expired).await {
            RefusalResult::Stored(claim) => OpenResult::News(News::Settled(claim)),
            RefusalResult::Taken(claim) => OpenResult::Taken(claim),
            RefusalResult::KeyFree => OpenResult::KeyFree,
            RefusalResult::StoreFailed(why) => {
                tracing::warn!(why, "failed closed: a refusal could not be stored");
                OpenResult::StoreFailed
            }
        }
    }

    /// Decides what to commit. Rare branches are boxed to keep the future of a plain charge small.
    async fn prepare(
        &self,
        command: &ResolvedCommand,
        expired: Option<&Claim>,
    ) -> Result<PreparedOpening, OpenResult> {
        let decided = match command {
            ResolvedCommand::Create(command, destination) => {
                self.prepare_charge(command, *destination, expired).await?
            }
            ResolvedCommand::Operate(command) => Box::pin(self.prepare_operation(command, expired)).await?,
            ResolvedCommand::PayOut(payout, account) => {
                Box::pin(self.prepare_payout(command, payout, account, expired)).await?
            }
        };
        self.with_ledger(decided, expired).await
    }

    async fn prepare_charge(
        &self,
        command: &CreateCharge,
        destination: AccountId,
        expired: Option<&Claim>,
    ) -> Result<DecidedOpening, OpenResult> {
        let MintedIds { now, subject, set } = self.mint_ids().await?;
        let hold = match command.wanted.wallet {
            Some(_) => self.next_id(now).await.map(HoldId::from_i64),
            None => None,
        };
        let minted = create::ChargeIds {
            charge: ChargeId::from_i64(subject),
            hold,
            now,
            chance: self.world.chance(),
            holder: self.ids.holder(),
            destination,
        };
        let binding = self.gateway.binding();
        let opening = create::decide(command.clone(), binding, self.policy.lease, &minted, expired)
            .ok_or(OpenResult::StoreFailed)?;
        Ok(DecidedOpening {
            set,
            now,
            work: Box::new(opening.work),
            actions: opening.ledger,
            audit: opening.audit,
            precondition: Precondition::None,
        })
    }

    async fn prepare_operation(
        &self,
        command: &Operate,
        expired: Option<&Claim>,
    ) -> Result<DecidedOpening, OpenResult> {
        let charge = self.current_charge(command, expired).await?;
        // Minted after the read, so that the decision's time is no earlier than the charge it rests
        // on.
        let MintedIds { now, subject, set } = self.mint_ids().await?;
        let minted = launch::OperationIds {
            operation: OperationId::from_i64(subject),
            now,
            chance: self.world.chance(),
            holder: self.ids.holder(),
        };
        let launch = self.launch(command, &charge, minted, expired).await?;
        Ok(DecidedOpening {
            set,
            now,
            work: Box::new(launch.work),
            actions: launch.transition.ledger,
            audit: launch.audit,
            precondition: Precondition::Charge(launch.expect),
        })
    }

    /// Reads the charge of an operation, and its key first. A retry therefore neither locks the
    /// payment nor risks a doubtful commit that the store would have refused.
    async fn current_charge(&self, command: &Operate, expired: Option<&Claim>) -> Result<Charge, OpenResult> {
        let Request { tenant, claim, .. } = command.request;
        let keys = vec![RowKey::Claim(tenant, claim), RowKey::Charge(tenant, command.charge)];
        let Ok(rows) = self.store.read(keys).await else { return Err(OpenResult::StoreFailed) };
        let mut rows = rows.into_iter();
        if let (Some(Some(Row::Claim(claim))), None) = (rows.next(), expired) {
            return Err(OpenResult::Taken(Box::new(claim)));
        }
        match rows.next() {
            Some(Some(Row::Charge(charge))) => Ok(charge),
            _ => Err(OpenResult::Rejected(Submitted::NotFound)),
        }
    }

    /// Decides the operation's effect on the charge. The refusal is stored if the charge forbids
    /// the operation for good; nothing is stored if another operation is only in the way now.
    async fn launch(
        &self,
        command: &Operate,
        charge: &Charge,
        minted: launch::OperationIds,
        expired: Option<&Claim>,
    ) -> Result<launch::OperationLaunch, OpenResult> {
        let provider = charge.provider.clone();
        match launch::launch(command, charge, provider, self.policy.lease, minted, expired) {
            Ok(launch) => Ok(launch),
            Err(OperationRefusal::Busy) => Err(OpenResult::Rejected(Submitted::InProgress)),
            Err(why @ (OperationRefusal::Status | OperationRefusal::Exceeds { .. })) => {
                let reply = self.present.impossible(charge, command.kind, why, command.request.id);
                let makes = ResolvedCommand::Operate(*command).refused_as();
                let about = Some((charge.id.into(), refusal_audit_order(charge.revision)));
                let refusal = NewRefusal { makes, about, reply, error: "charge_state_conflict" };
                Err(self.refuse_opening(&command.request, refusal, expired).await)
            }
        }
    }

    async fn with_ledger(
        &self,
        decided: DecidedOpening,
        expired: Option<&Claim>,
    ) -> Result<PreparedOpening, OpenResult> {
        let DecidedOpening { set, now, work, actions, audit, precondition } = decided;
        let set = opening_set(set, &work, precondition, expired).insert(audit);
        let booking = match actions.as_slice() {
            [] => Ok(Booking::default()),
            actions => Box::pin(self.book(actions, &work, Credit::Destination, now)).await,
        };
        match booking {
            Ok(Booking { changes, deltas }) => {
                Ok(PreparedOpening { work, set: changes.into_iter().fold(set, ChangeSet::with), deltas })
            }
            Err(why) => {
                tracing::warn!(why, "failed closed: nothing could be reserved, the provider was not called");
                Err(OpenResult::StoreFailed)
            }
        }
    }

    /// Commits the opening and drives the work. A client that hangs up cancels nothing.
    async fn begin(self: &Arc<Self>, opening: PreparedOpening) -> BeginResult {
        let payment = opening.work.outbox.payment;
        let interim = Arc::new(InterimNews::default());
        let (inner, active, tell) = (Arc::clone(self), self.enter(), Arc::clone(&interim));
        let mut driven = DetachOnDrop::new(&self.world, async move {
            let work = pin!(inner.commit_and_drive(opening, &tell));
            let result = inner.fenced(payment, work).await;
            drop(active);
            result.unwrap_or(BeginResult::Ended(OpenResult::Rejected(Submitted::InProgress)))
        });
        let result = poll_fn(|context| match Pin::new(&mut driven).poll(context) {
            // Work that panicked is left to the recovery worker.
            Poll::Ready(result) => Poll::Ready(result.unwrap_or(BeginResult::Ended(OpenResult::Elsewhere))),
            // Interim news says that the outcome cannot be stored yet. The work continues in the
            // background.
            Poll::Pending => match interim.take() {
                Some(news) => Poll::Ready(BeginResult::Ended(OpenResult::News(news))),
                None => Poll::Pending,
            },
        });
        result.await
    }

    async fn commit_and_drive(&self, opening: PreparedOpening, interim: &InterimNews) -> BeginResult {
        match self.commit_opening(opening).await {
            // Boxed, so that the future that waits for the claim's commit stays small.
            Ok(work) => BeginResult::Ended(match Box::pin(self.drive(work, interim)).await {
                Some(news) => OpenResult::News(news),
                None => OpenResult::Elsewhere,
            }),
            Err(result) => result,
        }
    }

    async fn commit_opening(&self, opening: PreparedOpening) -> Result<Box<Work>, BeginResult> {
        let PreparedOpening { work, set, deltas } = opening;
        let result = if deltas.is_empty() {
            self.commit(set).await.map_err(|error| match error {
                NotCommitted::Refused(refusal) => Blocked::Refused(refusal),
                other => Blocked::Failed(other),
            })
        } else {
            let seed = work.outbox.hold.map_or(0, |hold| scatter(hold.to_i64()));
            Box::pin(self.commit_moving(&set, &deltas, seed)).await
        };
        let Err(blocked) = result else { return Ok(work) };
        Err(match blocked {
            Blocked::Unfit(BalanceRefusal::Insufficient) => {
                BeginResult::LedgerRefused(LedgerRefusal::InsufficientFunds)
            }
            Blocked::Unfit(BalanceRefusal::CapExceeded) => {
                BeginResult::LedgerRefused(LedgerRefusal::CapExceeded)
            }
            Blocked::Unfit(BalanceRefusal::NotHeld) => BeginResult::Stale,
            Blocked::Refused(refusal) => match refusal.found {
                Some(Row::Claim(claim)) => BeginResult::Ended(OpenResult::Taken(Box::new(claim))),
                Some(Row::Charge(_) | Row::Account(_)) => BeginResult::Stale,
                _ if refusal.change == 0 && refusal.reason == RefusalReason::Absent => {
                    BeginResult::Ended(OpenResult::KeyFree)
                }
                _ => {
                    tracing::error!(?refusal.reason, refusal.change, "a claim's set was refused for a reason that is not its key");
                    BeginResult::Ended(OpenResult::StoreFailed)
                }
            },
            Blocked::Failed(NotCommitted::Unavailable(why)) => {
                tracing::warn!(
                    why,
                    "failed closed: the claim could not be stored, the provider was not called"
                );
                BeginResult::Ended(OpenResult::StoreFailed)
            }
            Blocked::Failed(NotCommitted::InDoubt | NotCommitted::Refused(_)) => {
                tracing::warn!("a claim's commit is in doubt; the provider was not called");
                BeginResult::Ended(Box::pin(self.after_doubt(&work)).await)
            }
        })
    }

    /// Looks up the key after a commit in doubt. Another request's valid claim decides the answer.
    ///
    /// In every other case our claim may be stored or may still appear, and the recovery worker
    /// then continues its work. An expired claim proves nothing: it may be swept before our set is
    /// applied.
    async fn after_doubt(&self, work: &Work) -> OpenResult {
        let is_decisive = |found: &Claim| {
            let meeting = found.meet(work.claim.fingerprint, self.store.now());
            found.subject != work.claim.subject && meeting != Meeting::Free
        };
        match self.store.read(vec![RowKey::Claim(work.claim.tenant, work.claim.id)]).await.as_deref() {
            Ok([Some(Row::Claim(found))]) if is_decisive(found) => OpenResult::Taken(Box::new(found.clone())),
            Ok(_) | Err(_) => OpenResult::InDoubt(work.outbox.payment),
        }
    }

    /// Mints ids for a new subject and its change set. Claims a new worker slot if the current slot
    /// lapsed during an outage.
    pub(crate) async fn mint_ids(&self) -> Result<MintedIds, OpenResult> {
        let mint = |now| {
            let (subject, set) = (self.ids.next(now)?, self.ids.next(now)?);
            Ok(MintedIds { now, subject, set: SetId::from_i64(set) })
        };
        let minted = match mint(self.store.now()) {
            Err(MintError::LeaseOver) => {
                Box::pin(self.renew_lapsed_slot()).await;
                mint(self.store.now())
            }
            minted => minted,
        };
        minted.map_err(|error| {
            tracing::error!(?error, "failed closed: no ids can be minted, the provider was not called");
            OpenResult::StoreFailed
        })
    }
}

/// The set of an opening. Its claim comes first, so a taken key is the first reason for a refusal.
fn opening_set(id: SetId, work: &Work, precondition: Precondition, expired: Option<&Claim>) -> ChangeSet {
    let claim = Arc::new(Row::Claim(work.claim.clone()));
    let set = ChangeSet::new(id).with(match expired {
        Some(old) => Change::Replace { row: claim, expect: old.revision },
        None => Change::Insert(claim),
    });
    let set = match (&work.subject, precondition) {
        (PaymentSubject::Charge(charge, _), Precondition::Charge(expect)) => {
            set.replace(charge.clone(), expect)
        }
        (PaymentSubject::Charge(charge, _), Precondition::None | Precondition::Account(_)) => {
            set.insert(charge.clone())
        }
        (PaymentSubject::Payout(payout), Precondition::Account(account)) => {
            let expect = account.revision;
            let seen = Account { revision: expect.saturating_add(1), ..*account };
            set.insert(payout.clone()).replace(seen, expect)
        }
        (PaymentSubject::Payout(payout), Precondition::None | Precondition::Charge(_)) => {
            set.insert(payout.clone())
        }
    };
    let set = match work.subject.operation() {
        Some(operation) => set.insert(operation.clone()),
        None => set,
    };
    set.insert(work.outbox.clone())
}
