//! Opening work: everything that must be true before the provider may be called is decided, committed in one set, and
//! driven to its end, whoever waits for it or not.

use crate::commit::NotCommitted;
use crate::detach::DetachOnDrop;
use crate::engine::Inner;
use crate::fencing;
use crate::ledger::payments::{Booking, Credit};
use crate::ledger::spread::{Blocked, Deltas, scatter};
use crate::present::LedgerReply;
use crate::refuse::{Kept, Refused};
use crate::service::Submitted;
use crate::signal::Signal;
use crate::waiters::{InterimNews, News};
use crate::world::World;
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, Meeting, Resource};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::BalanceRefusal;
use counterfoil_core::outbox::{Payment, ProviderBinding};
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::{self, CreateCharge};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::ledger::LedgerRefusal;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::{self, Operate, OperationRefusal};
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::payments::{PaymentSubject, Work, turn_after};
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, MintError, OperationId, SetId, SubjectId};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_gateway::fence::Pass;
use counterfoil_store::{Change, ChangeSet, RefusalReason, Row, RowKey, Store};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// Something to be done with a provider.
pub(crate) enum Command {
    /// Make a charge; nobody knows yet which account it credits.
    Create(Box<CreateCharge>),
    /// Do something to one.
    Operate(Operate),
    /// Make a payout; nobody knows yet which account it is paid from.
    PayOut(Box<CreatePayout>),
}

/// A command whose accounts are known.
pub(crate) enum Resolved {
    Create(Box<CreateCharge>, AccountId),
    Operate(Operate),
    PayOut(Box<CreatePayout>, Arc<Account>),
}

impl Command {
    pub(crate) fn request(&self) -> &Request {
        match self {
            Command::Create(command) => &command.request,
            Command::Operate(command) => &command.request,
            Command::PayOut(command) => &command.request,
        }
    }

    pub(crate) async fn resolve<S: Store, G: Gateway, W: World>(
        self,
        inner: &Inner<S, G, W>,
    ) -> Result<Resolved, Submitted> {
        match self {
            Command::Create(command) => {
                let destination = inner.destination(&command).await?;
                Ok(Resolved::Create(command, destination))
            }
            Command::Operate(command) => Ok(Resolved::Operate(command)),
            Command::PayOut(command) => {
                let account = inner.paid_from(&command).await?;
                Ok(Resolved::PayOut(command, account))
            }
        }
    }
}

impl Resolved {
    fn request(&self) -> &Request {
        match self {
            Resolved::Create(command, _) => &command.request,
            Resolved::Operate(command) => &command.request,
            Resolved::PayOut(command, _) => &command.request,
        }
    }

    /// What a refusal of it says it would have made: there is no payment that a refusal could belong to.
    const fn refused_as(&self) -> Resource {
        match self {
            Resolved::Create(..) | Resolved::PayOut(..) => Resource::Transaction,
            Resolved::Operate(command) => match command.kind {
                OperationKind::Capture => Resource::Capture,
                OperationKind::Void => Resource::Void,
                OperationKind::Refund => Resource::Refund,
            },
        }
    }
}

/// What became of opening a claim, for the request that asked for it.
pub(crate) enum Opened {
    /// The claim was won, and this came of it.
    News(News),
    /// Somebody else holds the key.
    Found(Box<Claim>),
    /// The store could not be written; the provider was not called.
    Failed,
    /// Nobody knows whether the claim was stored. If it was, it will be executed: the key is the only safe one.
    Doubtful(Payment),
    /// The record that was to be claimed anew is gone; the key is free.
    Gone,
    /// Another process finishes the work.
    Lost,
    /// Nothing is opened, and nothing was stored.
    Not(Submitted),
}

/// What is to be committed before the provider may be called.
struct Opening {
    work: Box<Work>,
    set: ChangeSet,
    deltas: Deltas,
}

/// What an opening was decided on, and must still be there when it is committed.
pub(crate) enum Before {
    Nothing,
    /// The charge, at this revision.
    Charge(u64),
    /// The account a payout is paid from. Its row is written anew, so that no other payout looked at the same balance.
    Account(Box<Account>),
}

/// An opening that was decided, before its ledger.
pub(crate) type Decided = (Time, Box<Work>, Vec<SagaAction>, AuditRecord, Before, i64);

/// What came of an attempt to commit it.
enum Begun {
    /// It is committed.
    Committed(Box<Work>),
    /// What it was decided on has moved since it was looked at.
    Moved,
    /// The ledger do not allow it.
    Unfit(LedgerRefusal),
    /// Everything else.
    Ended(Opened),
}

/// Looks at what others move all the time, before the client is told to come back.
const LOOKS_MAX: u32 = 64;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Commits the claim and drives it.
    pub(crate) async fn open(self: &Arc<Self>, command: &Resolved, expired: Option<&Claim>) -> Opened {
        for _ in 0..LOOKS_MAX {
            let opening = match self.prepare(command, expired).await {
                Ok(opening) => opening,
                Err(opened) => return opened,
            };
            // The first fence: somebody else works on this payment at this moment, perhaps elsewhere.
            let Ok(pass) = self.enter_fence(opening.work.outbox.payment).await else {
                return Opened::Not(Submitted::InProgress);
            };
            let (refusal, about) = match self.begin(opening, pass).await {
                (Begun::Ended(opened), _) => return opened,
                (Begun::Moved, _) => {
                    self.watch.saw(Signal::Conflict);
                    continue;
                }
                (Begun::Unfit(refusal), about) => (refusal, about),
                // Only what is driven has committed work in hand, and it ends it.
                (Begun::Committed(_), _) => return Opened::Lost,
            };
            return Box::pin(self.refused_by_the_ledger(command, refusal, about, expired)).await;
        }
        Opened::Not(Submitted::InProgress)
    }

    pub(crate) async fn refused_by_the_ledger(
        &self,
        command: &Resolved,
        refusal: LedgerRefusal,
        about: Option<(SubjectId, u64)>,
        expired: Option<&Claim>,
    ) -> Opened {
        let reply = self.present.ledger(LedgerReply::Refused(refusal), command.request().id);
        let refused = Refused { makes: command.refused_as(), about, reply, error: refusal.name() };
        self.refused(command.request(), refused, expired).await
    }

    async fn refused(&self, request: &Request, refused: Refused, expired: Option<&Claim>) -> Opened {
        match self.keep_refusal(request, refused, expired).await {
            Kept::Settled(claim) => Opened::News(News::Settled(claim)),
            Kept::Found(claim) => Opened::Found(claim),
            Kept::Gone => Opened::Gone,
            Kept::Failed(why) => {
                tracing::warn!(why, "failed closed: a refusal could not be stored");
                Opened::Failed
            }
        }
    }

    /// Decides what is to be committed. Boxed is what a plain charge does not need: all it awaits is room in its own future.
    async fn prepare(&self, asked: &Resolved, expired: Option<&Claim>) -> Result<Opening, Opened> {
        let (now, work, actions, audit, before, set) = match asked {
            Resolved::Create(command, destination) => {
                let (now, subject, set) = self.mint_pair().await?;
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
                    destination: *destination,
                };
                let command = CreateCharge::clone(command);
                let opening =
                    create::decide(command, self.gateway.binding(), self.policy.lease, &minted, expired)
                        .ok_or(Opened::Failed)?;
                (now, Box::new(opening.work), opening.ledger, opening.audit, Before::Nothing, set)
            }
            Resolved::Operate(command) => Box::pin(self.prepare_operation(command, expired)).await?,
            Resolved::PayOut(command, account) => {
                Box::pin(self.prepare_payout(asked, command, account, expired)).await?
            }
        };
        let set = opening_set(SetId::from_i64(set), &work, before, expired).insert(audit);
        self.with_ledger(work, set, &actions, now).await
    }

    /// Decides an operation on the charge as it stands.
    async fn prepare_operation(&self, command: &Operate, expired: Option<&Claim>) -> Result<Decided, Opened> {
        let charge = self.charge_as_it_stands(command, expired).await?;
        // After the look: what is decided on it is no older than it.
        let (now, subject, set) = self.mint_pair().await?;
        let minted = launch::OperationIds {
            operation: OperationId::from_i64(subject),
            now,
            chance: self.world.chance(),
            holder: self.ids.holder(),
        };
        let launch = self.launch(command, &charge, minted, expired).await?;
        let (work, before) = (Box::new(launch.work), Before::Charge(launch.expect));
        Ok((now, work, launch.turn.ledger, launch.audit, before, set))
    }

    /// The charge an operation is done to. Its key speaks first: who asks again does not keep others from the payment, and
    /// is not told of a doubtful commit that would have been refused.
    async fn charge_as_it_stands(
        &self,
        command: &Operate,
        expired: Option<&Claim>,
    ) -> Result<Charge, Opened> {
        let Request { tenant, claim, .. } = command.request;
        let keys = vec![RowKey::Claim(tenant, claim), RowKey::Charge(tenant, command.charge)];
        let Ok(rows) = self.store.read(keys).await else { return Err(Opened::Failed) };
        let mut rows = rows.into_iter();
        if let (Some(Some(Row::Claim(claim))), None) = (rows.next(), expired) {
            return Err(Opened::Found(Box::new(claim)));
        }
        match rows.next() {
            Some(Some(Row::Charge(charge))) => Ok(charge),
            _ => Err(Opened::Not(Submitted::NotFound)),
        }
    }

    /// Decides what the operation does to the charge. What the charge does not allow is refused for good; what it does
    /// not allow yet, only for now.
    async fn launch(
        &self,
        command: &Operate,
        charge: &Charge,
        minted: launch::OperationIds,
        expired: Option<&Claim>,
    ) -> Result<launch::OperationLaunch, Opened> {
        let provider = self.provider_of(charge);
        match launch::launch(command, charge, provider, self.policy.lease, minted, expired) {
            Ok(launch) => Ok(launch),
            Err(OperationRefusal::Busy) => Err(Opened::Not(Submitted::InProgress)),
            Err(why @ (OperationRefusal::Status | OperationRefusal::Exceeds { .. })) => {
                let reply = self.present.impossible(charge, command.kind, why, command.request.id);
                let makes = Resolved::Operate(*command).refused_as();
                let about = Some((charge.id.into(), turn_after(charge.revision, 15)));
                let refused = Refused { makes, about, reply, error: "charge_state_conflict" };
                Err(self.refused(&command.request, refused, expired).await)
            }
        }
    }

    /// The provider a charge is bound to. Charges of old stores know only the profile, and there was one endpoint.
    fn provider_of(&self, charge: &Charge) -> ProviderBinding {
        if charge.provider.endpoint.is_empty() { self.gateway.binding() } else { charge.provider.clone() }
    }

    async fn with_ledger(
        &self,
        work: Box<Work>,
        set: ChangeSet,
        actions: &[SagaAction],
        now: Time,
    ) -> Result<Opening, Opened> {
        let booking = match actions {
            [] => Ok(Booking::default()),
            actions => Box::pin(self.book(actions, &work, Credit::Destination, now)).await,
        };
        match booking {
            Ok(Booking { changes, deltas }) => {
                Ok(Opening { work, set: changes.into_iter().fold(set, ChangeSet::with), deltas })
            }
            Err(why) => {
                tracing::warn!(why, "failed closed: nothing could be reserved, the provider was not called");
                Err(Opened::Failed)
            }
        }
    }

    /// Commits the opening and drives the work; a client who hangs up cancels nothing.
    async fn begin(self: &Arc<Self>, opening: Opening, pass: Pass) -> (Begun, Option<(SubjectId, u64)>) {
        let Work { outbox, subject, .. } = &*opening.work;
        let turn = turn_after(subject.revision(), 15);
        let about = subject.operation().map(|_| (outbox.payment.subject(), turn));
        let meanwhile = Arc::new(InterimNews::default());
        let (inner, active, tell) = (Arc::clone(self), self.enter(), Arc::clone(&meanwhile));
        let mut driven = DetachOnDrop::new(&self.world, async move {
            let begun = match inner.commit_opening(opening).await {
                // Boxed, so that what waits for the claim's commit stays small.
                Begun::Committed(work) => {
                    match fencing::during(&inner.world, pass, Box::pin(inner.drive(work, &tell))).await {
                        Some(news) => Begun::Ended(Opened::News(news)),
                        None => Begun::Ended(Opened::Lost),
                    }
                }
                other => {
                    pass.leave().await;
                    other
                }
            };
            drop(active);
            begun
        });
        let begun = poll_fn(|context| match Pin::new(&mut driven).poll(context) {
            // What panicked left what it had committed to the recovery worker.
            Poll::Ready(begun) => Poll::Ready(begun.unwrap_or(Begun::Ended(Opened::Lost))),
            // It says at once when an outcome cannot be stored yet, and goes on.
            Poll::Pending => match meanwhile.take() {
                Some(news) => Poll::Ready(Begun::Ended(Opened::News(news))),
                None => Poll::Pending,
            },
        });
        (begun.await, about)
    }

    async fn commit_opening(&self, opening: Opening) -> Begun {
        let Opening { work, set, deltas } = opening;
        let result = if deltas.is_empty() {
            self.commit(set).await.map_err(|error| match error {
                NotCommitted::Refused(refusal) => Blocked::Refused(refusal),
                other => Blocked::Failed(other),
            })
        } else {
            let seed = work.outbox.hold.map_or(0, |hold| scatter(hold.to_i64()));
            Box::pin(self.commit_moving(&set, &deltas, seed)).await
        };
        match result {
            Ok(_) => Begun::Committed(work),
            Err(Blocked::Unfit(BalanceRefusal::Insufficient)) => {
                Begun::Unfit(LedgerRefusal::InsufficientFunds)
            }
            Err(Blocked::Unfit(BalanceRefusal::CapExceeded)) => Begun::Unfit(LedgerRefusal::CapExceeded),
            Err(Blocked::Unfit(BalanceRefusal::NotHeld)) => Begun::Moved,
            Err(Blocked::Refused(refusal)) => match refusal.found {
                Some(Row::Claim(claim)) => Begun::Ended(Opened::Found(Box::new(claim))),
                Some(Row::Charge(_) | Row::Account(_)) => Begun::Moved,
                _ if refusal.change == 0 && refusal.reason == RefusalReason::Absent => {
                    Begun::Ended(Opened::Gone)
                }
                _ => {
                    tracing::error!(?refusal.reason, refusal.change, "a claim set was refused for no reason of its key");
                    Begun::Ended(Opened::Failed)
                }
            },
            Err(Blocked::Failed(NotCommitted::Unavailable(why))) => {
                tracing::warn!(
                    why,
                    "failed closed: the claim could not be stored, the provider was not called"
                );
                Begun::Ended(Opened::Failed)
            }
            Err(Blocked::Failed(NotCommitted::InDoubt | NotCommitted::Refused(_))) => {
                tracing::warn!("a claim's commit is in doubt; the provider was not called");
                Begun::Ended(Box::pin(self.after_doubt(&work)).await)
            }
        }
    }

    /// What is there after a commit nobody can be sure of. Somebody else's record speaks for itself; ours is under way,
    /// and the recovery worker goes on with it. If there is none, ours may still appear; so it may where an old record's
    /// key is free again, since that record may be swept away first.
    async fn after_doubt(&self, work: &Work) -> Opened {
        let speaks = |found: &Claim| {
            let meeting = found.meet(work.claim.fingerprint, self.store.now());
            found.subject != work.claim.subject && meeting != Meeting::Free
        };
        match self.store.read(vec![RowKey::Claim(work.claim.tenant, work.claim.id)]).await.as_deref() {
            Ok([Some(Row::Claim(found))]) if speaks(found) => Opened::Found(Box::new(found.clone())),
            Ok(_) | Err(_) => Opened::Doubtful(work.outbox.payment),
        }
    }

    /// Ids for what a claim makes and its set. A slot that lapsed while the store was away is claimed anew.
    pub(crate) async fn mint_pair(&self) -> Result<(Time, i64, i64), Opened> {
        let pair = |now| Ok((now, self.ids.next(now)?, self.ids.next(now)?));
        let minted = match pair(self.store.now()) {
            Err(MintError::LeaseOver) => {
                Box::pin(self.renew_lapsed_slot()).await;
                pair(self.store.now())
            }
            minted => minted,
        };
        minted.map_err(|error| {
            tracing::error!(?error, "failed closed: no ids can be minted, the provider was not called");
            Opened::Failed
        })
    }
}

/// The set of an opening. It begins with its claim: whoever finds the key taken learns it first.
fn opening_set(id: SetId, work: &Work, before: Before, expired: Option<&Claim>) -> ChangeSet {
    let claim = Arc::new(Row::Claim(work.claim.clone()));
    let set = ChangeSet::new(id).with(match expired {
        Some(old) => Change::Replace { row: claim, expect: old.revision },
        None => Change::Insert(claim),
    });
    let set = match (&work.subject, before) {
        (PaymentSubject::Charge(charge, _), Before::Charge(expect)) => set.replace(charge.clone(), expect),
        (PaymentSubject::Charge(charge, _), Before::Nothing | Before::Account(_)) => {
            set.insert(charge.clone())
        }
        (PaymentSubject::Payout(payout), Before::Account(account)) => {
            let expect = account.revision;
            let seen = Account { revision: expect.saturating_add(1), ..*account };
            set.insert(payout.clone()).replace(seen, expect)
        }
        (PaymentSubject::Payout(payout), Before::Nothing | Before::Charge(_)) => set.insert(payout.clone()),
    };
    let set = match work.subject.operation() {
        Some(operation) => set.insert(operation.clone()),
        None => set,
    };
    set.insert(work.outbox.clone())
}
