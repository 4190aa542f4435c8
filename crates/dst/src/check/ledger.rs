//! The ledger, folded again from the commits, at every prefix.

use super::{Evidence, Violation};
use crate::client::Response;
use crate::provider::Effect;
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Resource};
use counterfoil_core::ledger::account::{Account, Side};
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::ledger::transaction::{Layer, Transaction, TransactionKind};
use counterfoil_core::outbox::{Outbox, Payment};
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, ChargeId, TenantId, TransactionId};
use counterfoil_engine::service::BalanceView;
use counterfoil_store::{Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};

/// Sums of an account's entries, from its normal side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    posted: i128,
    outgoing: i128,
    incoming: i128,
}

#[derive(Default)]
struct Fold {
    accounts: BTreeMap<AccountId, Account>,
    sums: BTreeMap<AccountId, Sums>,
    /// Sums after each commit that changed them.
    steps: BTreeMap<AccountId, Vec<(u64, Sums)>>,
    balances: BTreeMap<(AccountId, u8), Sums>,
    /// Debits less credits, by asset and layer.
    totals: BTreeMap<(Asset, Layer), i128>,
}

/// Checks the ledger.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut fold = Fold::default();
    for applied in &evidence.history {
        let position = applied.committed.receipt.position.0;
        let mut touched: BTreeMap<AccountId, Sums> = BTreeMap::new();
        let mut say = |invariant, what: String| {
            found.push(Violation::new("ledger", invariant, format!("commit {position}: {what}")));
        };
        for (before, row) in applied.changes() {
            match row {
                Some(Row::Account(account)) => drop(fold.accounts.insert(account.id, account.clone())),
                Some(Row::Transaction(transaction)) if before.is_none() => {
                    fold.post(transaction, &mut touched, &mut say);
                }
                Some(Row::Balance(balance)) => {
                    touched.entry(balance.account).or_insert_with(|| fold.sums_of(balance.account));
                    let sums = Sums {
                        posted: balance.posted.into(),
                        outgoing: balance.outgoing.into(),
                        incoming: balance.incoming.into(),
                    };
                    fold.balances.insert((balance.account, balance.shard), sums);
                }
                _ => {}
            }
        }
        for (account, before) in touched {
            fold.judge(account, before, &mut say);
            let sums = fold.sums_of(account);
            fold.steps.entry(account).or_default().push((position, sums));
        }
        for ((asset, _), total) in fold.totals.iter().filter(|(_, total)| **total != 0) {
            say("I4", format!("{asset} is off by {total}"));
        }
    }
    bounds_of_shards(evidence, &fold, found);
    held(evidence, &fold, found);
    let payments = Payments::of(evidence);
    captured(evidence, &payments, found);
    receivable(evidence, &payments, &fold, found);
    available(evidence, &fold, found);
    joined(evidence, found);
    seen(evidence, &fold, found);
    snapshots(evidence, &fold, found);
}

/// A snapshot is the fold at its position.
fn snapshots(evidence: &Evidence, fold: &Fold, found: &mut Vec<Violation>) {
    for row in evidence.each() {
        let Row::Snapshot(snapshot) = row else { continue };
        let Some(account) = fold.accounts.get(&snapshot.account) else { continue };
        let view = snapshot.totals.seen_from(account.normal);
        let shown = Sums { posted: view.posted, outgoing: view.outgoing, incoming: view.incoming };
        let then = fold.at(snapshot.account, snapshot.position.0);
        if shown != then {
            let what =
                format!("the snapshot of {} says {shown:?} and the fold {then:?}", account.code.as_str());
            found.push(Violation::new("ledger", "I8", what));
        }
    }
}

impl Fold {
    fn sums_of(&self, account: AccountId) -> Sums {
        self.sums.get(&account).copied().unwrap_or_default()
    }

    fn post(
        &mut self,
        transaction: &Transaction,
        touched: &mut BTreeMap<AccountId, Sums>,
        say: &mut impl FnMut(&'static str, String),
    ) {
        let name = transaction.id.to_i64();
        let legs = transaction.legs.as_slice();
        let mut zero: BTreeMap<(Asset, Layer), i128> = BTreeMap::new();
        for leg in legs {
            let signed =
                if leg.side == Side::Debit { -i128::from(leg.amount) } else { i128::from(leg.amount) };
            *zero.entry((leg.asset, leg.layer)).or_default() += signed;
            *self.totals.entry((leg.asset, leg.layer)).or_default() += signed;
            let Some(account) = self.accounts.get(&leg.account) else {
                say("I3", format!("transaction {name} names a missing account"));
                continue;
            };
            if account.asset != leg.asset || account.tenant != transaction.tenant || leg.amount <= 0 {
                say("I3", format!("transaction {name} has a leg that does not fit its account"));
            }
            let before = self.sums.get(&leg.account).copied().unwrap_or_default();
            touched.entry(leg.account).or_insert(before);
            let raises = leg.side == account.normal;
            let amount = i128::from(leg.amount);
            let sums = self.sums.entry(leg.account).or_default();
            match (leg.layer, raises) {
                (Layer::Posted, true) => sums.posted += amount,
                (Layer::Posted, false) => sums.posted -= amount,
                (Layer::Pending, true) => sums.incoming += amount,
                (Layer::Pending, false) => sums.outgoing += amount,
                (Layer::Released, true) => sums.incoming -= amount,
                (Layer::Released, false) => sums.outgoing -= amount,
            }
        }
        if legs.len() < 2 || zero.values().any(|sum| *sum != 0) {
            say("I3", format!("transaction {name} does not balance"));
        }
    }

    /// Floors, caps and the stored balance of an account after a commit.
    fn judge(&self, id: AccountId, before: Sums, say: &mut impl FnMut(&'static str, String)) {
        let Some(account) = self.accounts.get(&id) else { return };
        let (code, guard, now) = (account.code.as_str(), account.guard, self.sums_of(id));
        if now.outgoing < 0 || now.incoming < 0 {
            say("I6", format!("{code} has given back more than was held"));
        }
        let available = |sums: &Sums| sums.posted - sums.outgoing;
        let expected = |sums: &Sums| sums.posted + sums.incoming;
        if let Some(floor) = guard.floor
            && available(&now) < floor.into()
            && available(&now) < available(&before)
        {
            say("I6", format!("{code} fell to {}, its floor is {floor}", available(&now)));
        }
        if let Some(cap) = guard.cap
            && expected(&now) > cap.into()
            && expected(&now) > expected(&before)
        {
            say("I6", format!("{code} rose to {}, its cap is {cap}", expected(&now)));
        }
        if guard.is_set() {
            let shards = (id, 0)..=(id, u8::MAX);
            let stored = self.balances.range(shards).fold(Sums::default(), |sum, (_, shard)| Sums {
                posted: sum.posted + shard.posted,
                outgoing: sum.outgoing + shard.outgoing,
                incoming: sum.incoming + shard.incoming,
            });
            if stored != now {
                say("I8", format!("{code} is stored as {stored:?} and its entries say {now:?}"));
            }
        }
    }

    fn at(&self, account: AccountId, position: u64) -> Sums {
        let steps = self.steps.get(&account).map_or(&[][..], Vec::as_slice);
        let upto = steps.partition_point(|(at, _)| *at <= position);
        upto.checked_sub(1).and_then(|last| steps.get(last)).map_or(Sums::default(), |(_, sums)| *sums)
    }
}

/// Floors and caps of the shards add up to the account's guard.
fn bounds_of_shards(evidence: &Evidence, fold: &Fold, found: &mut Vec<Violation>) {
    for account in fold.accounts.values().filter(|account| account.guard.is_set()) {
        let shard = |number| RowKey::Balance(account.tenant, account.id, number);
        let shards = shard(0)..=shard(u8::MAX);
        let (mut floor, mut cap) = (0_i128, 0_i128);
        for (_, row) in evidence.rows.range(shards) {
            if let Row::Balance(balance) = row.as_ref() {
                floor += i128::from(balance.floor.unwrap_or(0));
                cap += i128::from(balance.cap.unwrap_or(0));
            }
        }
        let right = floor == i128::from(account.guard.floor.unwrap_or(0))
            && cap == i128::from(account.guard.cap.unwrap_or(0));
        if !right {
            let what = format!(
                "the shards of {} have bounds that add up to {floor} and {cap}",
                account.code.as_str()
            );
            found.push(Violation::new("ledger", "I6", what));
        }
    }
}

/// Reserved sums equal the open holds.
fn held(evidence: &Evidence, fold: &Fold, found: &mut Vec<Violation>) {
    let mut open: BTreeMap<AccountId, Sums> = BTreeMap::new();
    let now = crate::store::START.ms().saturating_add_unsigned(evidence.now);
    for row in evidence.each() {
        let Row::Hold(hold) = row else { continue };
        if hold.state != HoldState::Pending {
            continue;
        }
        if hold.expires_at.ms().saturating_add(120_000) < now {
            let what = format!("the hold {} is two minutes past its deadline", hold.id.to_i64());
            found.push(Violation::new("ledger", "I9", what));
        }
        for (account, side) in [(hold.from, Side::Debit), (hold.to, Side::Credit)] {
            let Some(normal) = fold.accounts.get(&account).map(|account| account.normal) else { continue };
            let sums = open.entry(account).or_default();
            let sum = if side == normal { &mut sums.incoming } else { &mut sums.outgoing };
            *sum += i128::from(hold.amount);
        }
    }
    for (id, account) in &fold.accounts {
        let (sums, open) = (fold.sums_of(*id), open.get(id).copied().unwrap_or_default());
        if (sums.outgoing, sums.incoming) != (open.outgoing, open.incoming) {
            let what = format!("{} holds {sums:?}, and its open holds are {open:?}", account.code.as_str());
            found.push(Violation::new("ledger", "I8", what));
        }
    }
}

/// Postings equal the captured effects of succeeded charges, to the last minor unit.
fn captured(evidence: &Evidence, payments: &Payments<'_>, found: &mut Vec<Violation>) {
    for row in evidence.each() {
        let Row::Charge(charge) = row else { continue };
        let posting = evidence
            .find_row(|tenant| RowKey::Transaction(tenant, TransactionId::from_i64(charge.id.to_i64())));
        let name = format!("charge {} ({})", charge.id.to_i64(), charge.status.name());
        match (charge.status.is_captured(), posting) {
            (true, Some(Row::Transaction(posting))) => {
                let [debit, credit] = posting.legs.as_slice() else {
                    found.push(Violation::new(
                        "ledger",
                        "I7",
                        format!("{name}: its posting does not have two legs"),
                    ));
                    continue;
                };
                let code = |id| match evidence.find_row(|tenant| RowKey::Account(tenant, id)) {
                    Some(Row::Account(account)) => account.code.as_str().to_owned(),
                    _ => String::new(),
                };
                let asset = charge.order.amount.asset();
                let right = posting.kind == TransactionKind::Charge(charge.id)
                    && (debit.side, credit.side) == (Side::Debit, Side::Credit)
                    && [debit.amount, credit.amount] == [payments.taken(charge); 2]
                    && [debit.asset, credit.asset] == [asset; 2]
                    && code(debit.account) == format!("chart:receivable:{asset}")
                    && (credit.account == charge.order.destination
                        || code(credit.account) == format!("chart:suspense:{asset}"));
                if !right {
                    found.push(Violation::new("ledger", "I7", format!("{name}: its posting is wrong")));
                }
            }
            (true, _) => {
                found.push(Violation::new("ledger", "I7", format!("{name} has no posting")));
            }
            (_, Some(_)) => found.push(Violation::new("ledger", "I7", format!("{name} has a posting"))),
            (_, None) => {}
        }
    }
}

/// A payout takes at most the amount available at some moment since its request, less the other
/// payouts from the same account since then. A negative floor does not add to it.
fn available(evidence: &Evidence, fold: &Fold, found: &mut Vec<Violation>) {
    let begun = super::payouts::begun(evidence);
    for (since, place, payout) in &begun {
        let account = payout.order.account;
        let free = |upto: usize| {
            let sums = fold.at(account, u64::try_from(upto).unwrap_or(u64::MAX));
            let others = begun
                .iter()
                .filter(|(_, at, other)| other.order.account == account && (upto..*place).contains(at));
            let taken: i64 = others.map(|(_, _, other)| other.order.amount.minor()).sum();
            sums.posted - sums.outgoing - i128::from(taken)
        };
        let most = (*since..=*place).map(free).max().unwrap_or(0);
        if most < i128::from(payout.order.amount.minor()) {
            let what = format!("payout {} took more than the available {most}", payout.id.to_i64());
            found.push(Violation::new("ledger", "I6", what));
        }
    }
}

/// The receivable equals the provider's captures less its refunds and payouts, for settled
/// payments. Parked payments count with the sums in their rows.
fn receivable(evidence: &Evidence, payments: &Payments<'_>, fold: &Fold, found: &mut Vec<Violation>) {
    let mut owed: BTreeMap<(TenantId, Asset), i128> = BTreeMap::new();
    for row in evidence.each() {
        if let Row::Payout(payout) = row {
            let sum = owed.entry((payout.tenant, payout.order.amount.asset())).or_default();
            *sum -= if payout.status == PayoutStatus::Paid { payments.paid(payout) } else { 0 };
        }
        let Row::Charge(charge) = row else { continue };
        let sum = owed.entry((charge.tenant, charge.order.amount.asset())).or_default();
        if payments.parked.contains(&charge.id) {
            *sum += i128::from(charge.sums.captured) - i128::from(charge.sums.refunded);
            continue;
        }
        for effect in payments.on(charge).filter(|effect| !effect.own_duplicate) {
            match effect.step {
                ProviderStep::Refund | ProviderStep::Payout => *sum -= i128::from(effect.amount),
                ProviderStep::Charge
                | ProviderStep::Authorize
                | ProviderStep::Capture
                | ProviderStep::Void => {
                    *sum += i128::from(if effect.captured { effect.amount } else { 0 });
                }
            }
        }
    }
    for account in fold.accounts.values() {
        let wanted = owed.get(&(account.tenant, account.asset)).copied().unwrap_or(0);
        let posted = fold.sums_of(account.id).posted;
        if account.code.as_str() == format!("chart:receivable:{}", account.asset) && posted != wanted {
            let what = format!("{} is {posted}, and the provider owes {wanted}", account.code.as_str());
            found.push(Violation::new("ledger", "I7", what));
        }
    }
}

/// Effects by payment, and the charges with parked work.
struct Payments<'a> {
    effects: BTreeMap<&'a str, Vec<&'a Effect>>,
    parked: BTreeSet<ChargeId>,
}

impl<'a> Payments<'a> {
    fn of(evidence: &'a Evidence) -> Payments<'a> {
        let mut effects: BTreeMap<&str, Vec<&Effect>> = BTreeMap::new();
        for effect in &evidence.effects {
            effects.entry(effect.on.as_str()).or_default().push(effect);
        }
        let parked = evidence.each().filter_map(|row| match row {
            Row::Outbox(Outbox { payment: Payment::Charge(charge), parked: Some(_), .. }) => Some(*charge),
            _ => None,
        });
        Payments { effects, parked: parked.collect() }
    }

    fn on(&self, charge: &Charge) -> impl Iterator<Item = &'a Effect> {
        let own = charge.provider_reference.as_ref().and_then(|on| self.effects.get(on.as_str()));
        own.into_iter().flatten().copied()
    }

    /// The provider's payments for a payout.
    fn paid(&self, payout: &Payout) -> i128 {
        let own = payout.provider_reference.as_ref().and_then(|on| self.effects.get(on.as_str()));
        let own = own.into_iter().flatten().filter(|effect| !effect.own_duplicate);
        own.map(|effect| i128::from(effect.amount)).sum()
    }

    /// The amount the provider took for a charge.
    fn taken(&self, charge: &Charge) -> i64 {
        self.on(charge).filter(|effect| effect.captured).map(|effect| effect.amount).sum()
    }
}

/// Every transaction belongs to an answered request, and every answered request has its
/// transactions.
fn joined(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut asked: BTreeSet<TransactionId> = BTreeSet::new();
    let mut claims: BTreeMap<i64, &Claim> = BTreeMap::new();
    for applied in &evidence.history {
        for row in applied.rows() {
            if let Row::Claim(claim) = row
                && claim.state.settled().is_some()
            {
                claims.insert(claim.subject.to_i64(), claim);
            }
        }
    }
    for (subject, claim) in claims {
        let done = matches!(claim.state, ClaimState::Completed(_));
        let id = TransactionId::from_i64(subject);
        let there = evidence.find_row(|tenant| RowKey::Transaction(tenant, id)).is_some();
        match claim.makes {
            Resource::Transfer | Resource::Transaction => {
                asked.insert(id);
                if done != there {
                    let what = format!(
                        "the request {subject} is reported as {} and its transaction is there: {there}",
                        claim.state.name()
                    );
                    found.push(Violation::new("ledger", "I21", what));
                }
            }
            Resource::Bulk => {
                for id in bulk(claim) {
                    asked.insert(id);
                    if evidence.find_row(|tenant| RowKey::Transaction(tenant, id)).is_none() {
                        let what = format!(
                            "the item {} of a bulk request is reported as posted and is not there",
                            id.to_i64()
                        );
                        found.push(Violation::new("ledger", "I21", what));
                    }
                }
            }
            Resource::Payout
            | Resource::Charge
            | Resource::Capture
            | Resource::Void
            | Resource::Refund
            | Resource::Resolution
            | Resource::Account
            | Resource::Asset
            | Resource::Shards => {}
        }
    }
    for row in evidence.each() {
        let Row::Transaction(transaction) = row else { continue };
        let own = match transaction.kind {
            TransactionKind::Charge(_) | TransactionKind::HoldLapsed(_) => true,
            // Reservations of payments are checked with their payment.
            TransactionKind::Held(hold)
            | TransactionKind::HoldPosted(hold)
            | TransactionKind::HoldVoided(hold) => {
                matches!(evidence.find_row(|tenant| RowKey::Hold(tenant, hold)), Some(Row::Hold(hold)) if hold.is_a_payments())
            }
            _ => false,
        };
        if !own && !asked.contains(&transaction.id) {
            let what = format!(
                "the transaction {} ({}) belongs to no request",
                transaction.id.to_i64(),
                transaction.kind.name()
            );
            found.push(Violation::new("ledger", "I21", what));
        }
    }
}

/// The posted transactions in a bulk answer.
fn bulk(claim: &Claim) -> Vec<TransactionId> {
    let Some(settled) = claim.state.settled() else { return Vec::new() };
    let body = String::from_utf8_lossy(&settled.reply.body).into_owned();
    let list = body.split('[').nth(1).unwrap_or_default().trim_end_matches("]}");
    let numbers = list.split(',').filter_map(|word| word.trim_matches('"').parse::<i64>().ok());
    numbers.map(TransactionId::from_i64).collect()
}

/// A balance read by a client equals the fold at its position, and includes all earlier commits.
fn seen(evidence: &Evidence, fold: &Fold, found: &mut Vec<Violation>) {
    for call in &evidence.calls {
        let Some(Response::Balance(account, BalanceView { view, position })) = &call.response else {
            continue;
        };
        let shown = Sums { posted: view.posted, outgoing: view.outgoing, incoming: view.incoming };
        let then = fold.at(*account, position.0);
        if shown != then {
            let what = format!("a balance at {} was read as {shown:?} and is {then:?}", position.0);
            found.push(Violation::new("ledger", "I8", what));
        }
        let known = u64::try_from(call.commits).unwrap_or(0);
        if fold.at(*account, known.max(position.0)) != then && position.0 < known {
            let what = format!("a balance at {} was read after commit {known}", position.0);
            found.push(Violation::new("ledger", "I20", what));
        }
    }
}
