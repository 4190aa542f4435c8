//! Ranges of rows: scans and due rows.
//!
//! Bounds are inclusive. An open range passes the smallest or largest value, so it uses the same
//! statement and plan.

use super::{TableId, sql::range};
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

/// A statement with its parameters and the table of its rows.
pub(crate) struct Range {
    pub(crate) table: TableId,
    pub(crate) sql: &'static str,
    pub(crate) parameters: Vec<Box<dyn ToSql + Send + Sync>>,
}

macro_rules! ranges {
    ($($name:ident = $table:ident $rest:expr;)*) => {
        $(static $name: LazyLock<String> = LazyLock::new(|| range(TableId::$table, $rest));)*

        /// All ranges, for a test of their plans.
        pub(crate) fn all() -> Vec<&'static str> {
            vec![$($name.as_str()),*]
        }
    };
}

/// The rows of a tenant, newest first.
macro_rules! newest {
    ($only:literal) => {
        concat!("WHERE ", $only, "t.tenant = $1 AND t.id <= $2 ORDER BY t.id DESC LIMIT $3")
    };
}

/// All rows of a table, tenant by tenant.
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
    // Locked rows are skipped: a second process is taking up or finishing the work.
    DUE_OUTBOX = Outbox
        "WHERE t.parked IS NULL AND t.due_at <= $1 ORDER BY t.due_at, t.id LIMIT $2 FOR UPDATE OF t SKIP LOCKED";
    DUE_CLAIMS = Claim
        "WHERE t.sweep_at IS NOT NULL AND t.sweep_at <= $1 AND COALESCE(t.replay_until, t.tombstone_until) <= $1 \
        ORDER BY t.sweep_at LIMIT $2";
    DUE_HOLDS = Hold "WHERE t.state = 'pending' AND t.expires_at <= $1 ORDER BY t.expires_at, t.id LIMIT $2";
}

/// The caller's limit, at most [`SCAN_MAX`].
pub(crate) fn bound(limit: usize) -> i64 {
    i64::try_from(limit.min(SCAN_MAX)).unwrap_or(0)
}

/// The smallest id after `after`, or `None` if no id can follow.
fn first_after(after: Option<i64>) -> Option<i64> {
    after.map_or(Some(i64::MIN), |after| after.checked_add(1))
}

/// The largest id before `before`, or `None` if no id can precede.
fn last_before(before: Option<i64>) -> Option<i64> {
    before.map_or(Some(i64::MAX), |before| before.checked_sub(1))
}

fn new_range(table: TableId, sql: &'static LazyLock<String>, parameters: Vec<i64>) -> Range {
    let boxed = |number: i64| -> Box<dyn ToSql + Send + Sync> { Box::new(number) };
    Range { table, sql: sql.as_str(), parameters: parameters.into_iter().map(boxed).collect() }
}

/// The statement of a scan, or `None` if the scan must be empty.
pub(crate) fn scan(scan: &Scan) -> Option<Range> {
    let after = |table, sql, after: Option<(TenantId, i64)>, limit: usize| {
        // All ids are greater than these.
        let (tenant, id) = after.map_or((i64::MIN, i64::MIN), |(tenant, id)| (tenant.to_i64(), id));
        Some(new_range(table, sql, vec![tenant, id, bound(limit)]))
    };
    let before = |table, sql, tenant: i64, before: Option<i64>, limit: usize| {
        Some(new_range(table, sql, vec![tenant, last_before(before)?, bound(limit)]))
    };
    match scan {
        Scan::ChargesOf { tenant, before: mark, limit } => {
            before(TableId::Charge, &CHARGES_OF, tenant.to_i64(), mark.map(ChargeId::to_i64), *limit)
        }
        Scan::Timeline { tenant, subject, after, limit } => {
            // The empty byte string sorts before every id.
            let after = after.map_or_else(Vec::new, |after: Ulid| after.to_bytes().to_vec());
            let mut range =
                new_range(TableId::Audit, &TIMELINE, vec![tenant.to_i64(), subject.to_i64(), bound(*limit)]);
            range.parameters.insert(2, Box::new(after));
            Some(range)
        }
        Scan::Claims { after: mark, limit } => {
            let (tenant, id) = mark.map_or((i64::MIN, Vec::new()), |(tenant, id, _)| {
                (tenant.to_i64(), id.digest().as_bytes().to_vec())
            });
            let mut range = new_range(TableId::Claim, &CLAIMS, vec![tenant, bound(*limit)]);
            range.parameters.insert(1, Box::new(id));
            Some(range)
        }
        Scan::Charges { after: mark, limit } => {
            after(TableId::Charge, &CHARGES, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Outbox { after: mark, limit } => {
            after(TableId::Outbox, &OUTBOX, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::DoubtOn { payment, limit } => {
            let (sql, id) = match payment {
                Payment::Charge(charge) => (&DOUBT_ON_CHARGE, charge.to_i64()),
                Payment::Payout(payout) => (&DOUBT_ON_PAYOUT, payout.to_i64()),
            };
            Some(new_range(TableId::Outbox, sql, vec![id, bound(*limit)]))
        }
        Scan::ParkedOf { tenant, before: mark, limit } => {
            let mark = mark.map(SubjectId::to_i64);
            before(TableId::Outbox, &PARKED_OF, tenant.to_i64(), mark, *limit)
        }
        Scan::OperationsOn { tenant, charge, after: mark, limit } => {
            let first = first_after(mark.map(OperationId::to_i64))?;
            let parameters = vec![tenant.to_i64(), charge.to_i64(), first, bound(*limit)];
            Some(new_range(TableId::Operation, &OPERATIONS_ON, parameters))
        }
        Scan::RefundsOf { tenant, before: mark, limit } => {
            let mark = mark.map(OperationId::to_i64);
            before(TableId::Operation, &REFUNDS_OF, tenant.to_i64(), mark, *limit)
        }
        Scan::Operations { after: mark, limit } => {
            after(TableId::Operation, &OPERATIONS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::PayoutsOf { tenant, before: mark, limit } => {
            before(TableId::Payout, &PAYOUTS_OF, tenant.to_i64(), mark.map(PayoutId::to_i64), *limit)
        }
        Scan::Payouts { after: mark, limit } => {
            after(TableId::Payout, &PAYOUTS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::AccountsOf { tenant, before: mark, limit } => {
            before(TableId::Account, &ACCOUNTS_OF, tenant.to_i64(), mark.map(AccountId::to_i64), *limit)
        }
        Scan::AssetsOf { tenant } => Some(new_range(TableId::Asset, &ASSETS_OF, vec![tenant.to_i64()])),
        Scan::TransactionsOf { tenant, before: mark, limit } => before(
            TableId::Transaction,
            &TRANSACTIONS_OF,
            tenant.to_i64(),
            mark.map(TransactionId::to_i64),
            *limit,
        ),
        Scan::Snapshots { tenant, account, upto, limit } => {
            let (position, at) = super::journal::limits(*upto);
            let parameters = vec![tenant.to_i64(), account.to_i64(), position, at, bound(*limit)];
            Some(new_range(TableId::Snapshot, &SNAPSHOTS, parameters))
        }
        Scan::Accounts { after: mark, limit } => {
            after(TableId::Account, &ACCOUNTS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Transactions { after: mark, limit } => {
            after(TableId::Transaction, &TRANSACTIONS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Balances { after, limit } => {
            let mark =
                after.map(|(tenant, account, shard)| (tenant.to_i64(), account.to_i64(), i64::from(shard)));
            let (tenant, account, shard) = mark.unwrap_or((i64::MIN, i64::MIN, -1));
            Some(new_range(TableId::Balance, &BALANCES, vec![tenant, account, shard, bound(*limit)]))
        }
        Scan::Holds { after: mark, limit } => {
            after(TableId::Hold, &HOLDS, mark.map(|(tenant, id)| (tenant, id.to_i64())), *limit)
        }
        Scan::Tenants => Some(new_range(TableId::Tenant, &TENANTS, Vec::new())),
        Scan::ApiKeys => Some(new_range(TableId::ApiKey, &API_KEYS, Vec::new())),
        Scan::Slots => Some(new_range(TableId::Slot, &SLOTS, Vec::new())),
    }
}

/// The statement that reads due rows.
pub(crate) fn due(due: Due, now: Time, limit: usize) -> Range {
    let parameters = vec![now.ms(), bound(limit)];
    match due {
        Due::Outbox => new_range(TableId::Outbox, &DUE_OUTBOX, parameters),
        Due::Claims => new_range(TableId::Claim, &DUE_CLAIMS, parameters),
        Due::Holds => new_range(TableId::Hold, &DUE_HOLDS, parameters),
    }
}
