//! Ranges of rows: scans, and what is due.
//!
//! A bound is passed as the first or last value that is still within, so that a range without one is the same
//! statement with the same plan.

use super::{Place, sql::range};
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::id::{
    AccountId, ChargeId, OperationId, PayoutId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{Due, Scan};
use std::sync::LazyLock;
use tokio_postgres::types::ToSql;

/// A statement with its parameters and the table its rows are of.
pub(crate) struct Range {
    pub(crate) place: Place,
    pub(crate) sql: &'static str,
    pub(crate) parameters: Vec<Box<dyn ToSql + Send + Sync>>,
}

macro_rules! ranges {
    ($($name:ident = $place:ident $rest:expr;)*) => {
        $(static $name: LazyLock<String> = LazyLock::new(|| range(Place::$place, $rest));)*

        /// Every range, for a look at its plan.
        pub(crate) fn all() -> Vec<&'static str> {
            vec![$($name.as_str()),*]
        }
    };
}

/// A tenant's rows of that kind, newest first.
macro_rules! newest {
    ($only:literal) => {
        concat!("WHERE ", $only, "t.tenant = $1 AND t.id <= $2 ORDER BY t.id DESC LIMIT $3")
    };
}

/// All rows of a kind, tenant by tenant.
const ALL: &str = "WHERE (t.tenant, t.id) > ($1, $2) ORDER BY t.tenant, t.id LIMIT $3";

ranges! {
    CHARGES_OF = Charge newest!("");
    TIMELINE = Audit "WHERE t.tenant = $1 AND t.subject = $2 AND t.id > $3 ORDER BY t.id LIMIT $4";
    CLAIMS = Claim ALL;
    CHARGES = Charge ALL;
    OPERATIONS_ON = Operation "WHERE t.tenant = $1 AND t.charge = $2 AND t.id >= $3 ORDER BY t.id LIMIT $4";
    REFUNDS_OF = Operation newest!("t.kind = 'refund' AND ");
    OPERATIONS = Operation ALL;
    PAYOUTS_OF = Payout newest!("");
    PAYOUTS = Payout ALL;
    OUTBOX = Outbox ALL;
    DOUBT_ON_CHARGE = Outbox "WHERE t.charge = $1 AND t.unknown ORDER BY t.tenant, t.id LIMIT $2";
    DOUBT_ON_PAYOUT = Outbox "WHERE t.payout = $1 AND t.unknown ORDER BY t.tenant, t.id LIMIT $2";
    PARKED_OF = Outbox newest!("t.parked IS NOT NULL AND ");
    ACCOUNTS_OF = Account newest!("");
    ASSETS_OF = Asset "WHERE t.tenant = $1 ORDER BY t.asset";
    TRANSACTIONS_OF = Transaction newest!("");
    SNAPSHOTS = Snapshot
        "WHERE t.tenant = $1 AND t.account = $2 AND t.position <= $3 AND t.at <= $4 ORDER BY t.position DESC LIMIT $5";
    ACCOUNTS = Account ALL;
    TRANSACTIONS = Transaction ALL;
    BALANCES = Balance
        "WHERE (t.tenant, t.account, t.shard) > ($1, $2, $3) ORDER BY t.tenant, t.account, t.shard LIMIT $4";
    HOLDS = Hold ALL;
    TENANTS = Tenant "ORDER BY t.name";
    API_KEYS = ApiKey "ORDER BY t.digest";
    SLOTS = Slot "ORDER BY t.number";
    // What another process writes at this moment is not for us: it is taking the work up, or done with it.
    DUE_OUTBOX = Outbox
        "WHERE t.parked IS NULL AND t.due_at <= $1 ORDER BY t.due_at, t.id LIMIT $2 FOR UPDATE OF t SKIP LOCKED";
    DUE_CLAIMS = Claim
        "WHERE t.sweep_at IS NOT NULL AND t.sweep_at <= $1 AND COALESCE(t.replay_until, t.tombstone_until) <= $1 \
        ORDER BY t.sweep_at LIMIT $2";
    DUE_HOLDS = Hold "WHERE t.state = 'pending' AND t.expires_at <= $1 ORDER BY t.expires_at, t.id LIMIT $2";
}

/// A caller's limit, never above the bound of scans.
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit.min(SCAN_MAX)).unwrap_or(0)
}

/// The first id after one; nothing if there can be none.
fn first_after(after: Option<i64>) -> Option<i64> {
    after.map_or(Some(i64::MIN), |after| after.checked_add(1))
}

/// The last id before one; nothing if there can be none.
fn last_before(before: Option<i64>) -> Option<i64> {
    before.map_or(Some(i64::MAX), |before| before.checked_sub(1))
}

fn made(place: Place, sql: &'static LazyLock<String>, parameters: Vec<i64>) -> Range {
    let boxed = |number: i64| -> Box<dyn ToSql + Send + Sync> { Box::new(number) };
    Range { place, sql: sql.as_str(), parameters: parameters.into_iter().map(boxed).collect() }
}

/// The statement of a scan; nothing if nothing can be in it.
pub(crate) fn scan(scan: &Scan) -> Option<Range> {
    let after = |place, sql, after: Option<(TenantId, i64)>, limit: usize| {
        // No id is that small.
        let (tenant, id) = after.map_or((i64::MIN, i64::MIN), |(tenant, id)| (tenant.to_i64(), id));
        Some(made(place, sql, vec![tenant, id, bound(limit)]))
    };
    let before = |place, sql, tenant: i64, before: Option<i64>, limit: usize| {
        Some(made(place, sql, vec![tenant, last_before(before)?, bound(limit)]))
    };
    match scan {
        Scan::ChargesOf { tenant, before: mark, limit } => {
            before(Place::Charge, &CHARGES_OF, tenant.to_i64(), mark.map(ChargeId::to_i64), *limit)
        }
        Scan::Timeline { tenant, subject, after, limit } => {
            // No id is shorter than the empty one, so it stands for "from the beginning".
            let after = after.map_or_else(Vec::new, |after: Ulid| after.to_bytes().to_vec());
            let mut range =
                made(Place::Audit, &TIMELINE, vec![tenant.to_i64(), subject.to_i64(), bound(*limit)]);
            range.parameters.insert(2, Box::new(after));
            Some(range)
        }
        Scan::Claims { after: mark, limit } => {
            let (tenant, id) = mark.map_or((i64::MIN, Vec::new()), |(tenant, id, _)| {
                (tenant.to_i64(), id.digest().as_bytes().to_vec())
            });
            let mut range = made(Place::Claim, &CLAIMS, vec![tenant, bound(*limit)]);
            range.parameters.insert(1, Box::new(id));
            Some(range)
        }
        Scan::Charges { after: mark, limit } => {
            after(Place::Charge, &CHARGES, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Outbox { after: mark, limit } => {
            after(Place::Outbox, &OUTBOX, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::DoubtOn { payment, limit } => {
            let (sql, id) = match payment {
                Payment::Charge(charge) => (&DOUBT_ON_CHARGE, charge.to_i64()),
                Payment::Payout(payout) => (&DOUBT_ON_PAYOUT, payout.to_i64()),
            };
            Some(made(Place::Outbox, sql, vec![id, bound(*limit)]))
        }
        Scan::ParkedOf { tenant, before: mark, limit } => {
            let mark = mark.map(SubjectId::to_i64);
            before(Place::Outbox, &PARKED_OF, tenant.to_i64(), mark, *limit)
        }
        Scan::OperationsOn { tenant, charge, after: mark, limit } => {
            let first = first_after(mark.map(OperationId::to_i64))?;
            let parameters = vec![tenant.to_i64(), charge.to_i64(), first, bound(*limit)];
            Some(made(Place::Operation, &OPERATIONS_ON, parameters))
        }
        Scan::RefundsOf { tenant, before: mark, limit } => {
            let mark = mark.map(OperationId::to_i64);
            before(Place::Operation, &REFUNDS_OF, tenant.to_i64(), mark, *limit)
        }
        Scan::Operations { after: mark, limit } => {
            after(Place::Operation, &OPERATIONS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::PayoutsOf { tenant, before: mark, limit } => {
            before(Place::Payout, &PAYOUTS_OF, tenant.to_i64(), mark.map(PayoutId::to_i64), *limit)
        }
        Scan::Payouts { after: mark, limit } => {
            after(Place::Payout, &PAYOUTS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::AccountsOf { tenant, before: mark, limit } => {
            before(Place::Account, &ACCOUNTS_OF, tenant.to_i64(), mark.map(AccountId::to_i64), *limit)
        }
        Scan::AssetsOf { tenant } => Some(made(Place::Asset, &ASSETS_OF, vec![tenant.to_i64()])),
        Scan::TransactionsOf { tenant, before: mark, limit } => before(
            Place::Transaction,
            &TRANSACTIONS_OF,
            tenant.to_i64(),
            mark.map(TransactionId::to_i64),
            *limit,
        ),
        Scan::Snapshots { tenant, account, upto, limit } => {
            let (position, at) = super::journal::limits(*upto);
            let parameters = vec![tenant.to_i64(), account.to_i64(), position, at, bound(*limit)];
            Some(made(Place::Snapshot, &SNAPSHOTS, parameters))
        }
        Scan::Accounts { after: mark, limit } => {
            after(Place::Account, &ACCOUNTS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Transactions { after: mark, limit } => {
            after(Place::Transaction, &TRANSACTIONS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Balances { after, limit } => {
            let mark =
                after.map(|(tenant, account, shard)| (tenant.to_i64(), account.to_i64(), i64::from(shard)));
            let (tenant, account, shard) = mark.unwrap_or((i64::MIN, i64::MIN, -1));
            Some(made(Place::Balance, &BALANCES, vec![tenant, account, shard, bound(*limit)]))
        }
        Scan::Holds { after: mark, limit } => {
            after(Place::Hold, &HOLDS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Tenants => Some(made(Place::Tenant, &TENANTS, Vec::new())),
        Scan::ApiKeys => Some(made(Place::ApiKey, &API_KEYS, Vec::new())),
        Scan::Slots => Some(made(Place::Slot, &SLOTS, Vec::new())),
    }
}

/// The statement of what is due.
pub(crate) fn due(due: Due, now: Time, limit: usize) -> Range {
    let parameters = vec![now.ms(), bound(limit)];
    match due {
        Due::Outbox => made(Place::Outbox, &DUE_OUTBOX, parameters),
        Due::Claims => made(Place::Claim, &DUE_CLAIMS, parameters),
        Due::Holds => made(Place::Hold, &DUE_HOLDS, parameters),
    }
}
