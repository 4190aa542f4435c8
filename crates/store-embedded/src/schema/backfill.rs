//! Format 2: charges of the time before the ledger get their accounts, and captured ones their postings.
//!
//! Every tenant then has its chart in every asset it ever charged in, every charge credits an account that exists, and
//! every captured charge has the transaction it would have today. The statements are written out here and not shared
//! with [`crate::tables`]: this step stays as it is when the tables move on.

use crate::error::OpenError;
use counterfoil_core::ledger::chart::{ROLES, Role};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, ChargeId, TenantId, TransactionId};
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use counterfoil_store::RowKey;
use counterfoil_store::codec::touched;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::collections::{HashMap, HashSet};

/// The trigger that fixes what a charge was ordered for; what it credits is corrected here once.
const FIXED: &str = "charges_keep_their_order";

const CHARGES: &str = "SELECT id, tenant, amount_minor, asset, destination, status = 'succeeded', created_at \
    FROM charges WHERE id > ?1 ORDER BY id LIMIT 1000";
const REDIRECT: &str = "UPDATE charges SET destination = ?2, revision = revision + 1 WHERE id = ?1";
const ACCOUNT: &str = "INSERT INTO accounts \
    (id, tenant, code, asset, normal, shards, widest, metadata, created_at, revision) \
    VALUES (?1, ?2, ?3, ?4, ?5, 1, 1, '{}', ?6, 1)";
const NAME: &str = "INSERT INTO account_names (tenant, code, account) VALUES (?1, ?2, ?3)";
const ENTRIES: &str = "INSERT INTO journal_entries \
    (transaction_id, leg, account, side, layer, amount, asset, position, at) VALUES \
    (?1, 0, ?2, 'debit', 'posted', ?4, ?5, ?6, ?7), (?1, 1, ?3, 'credit', 'posted', ?4, ?5, ?6, ?7)";
const TRANSACTION: &str = "INSERT INTO journal_transactions \
    (id, tenant, position, at, kind, about, metadata, legs) VALUES (?1, ?2, ?3, ?4, 'charge', ?1, '{}', 2)";
const COMMIT: &str = "INSERT INTO commits (position, set_id, at, touched) VALUES (?1, ?2, ?3, ?4)";

pub(super) fn run(db: &Connection) -> Result<(), OpenError> {
    let fixed: String =
        db.query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [FIXED], |row| row.get(0))?;
    db.execute_batch(&format!("DROP TRIGGER {FIXED}"))?;
    let mut ledger = Ledger::new(db)?;
    let mut last = i64::MIN;
    loop {
        let page: Vec<Charge> =
            db.prepare_cached(CHARGES)?.query_map([last], Charge::read)?.collect::<Result<_>>()?;
        let Some(newest) = page.last() else { break };
        last = newest.id;
        for charge in &page {
            ledger.take_in(charge)?;
        }
    }
    ledger.log.write(db)?;
    db.execute_batch(&fixed)?;
    Ok(())
}

struct Charge {
    id: i64,
    tenant: i64,
    amount: i64,
    asset: String,
    destination: i64,
    captured: bool,
    created_at: i64,
}

impl Charge {
    fn read(row: &Row<'_>) -> Result<Charge> {
        Ok(Charge {
            id: row.get(0)?,
            tenant: row.get(1)?,
            amount: row.get(2)?,
            asset: row.get(3)?,
            destination: row.get(4)?,
            captured: row.get(5)?,
            created_at: row.get(6)?,
        })
    }
}

/// The accounts a charge is posted to.
#[derive(Clone, Copy, Default)]
struct Chart {
    receivable: i64,
    payable: i64,
}

struct Ledger<'a> {
    db: &'a Connection,
    charts: HashMap<(i64, String), Chart>,
    /// Tenants that have a chart. The main account of old is the payable account of the first.
    tenants: HashSet<i64>,
    /// Numbers of accounts that are opened.
    opened: HashSet<i64>,
    /// Numbers that charges credit, opened or not.
    credited: HashSet<i64>,
    /// Minted numbers begin far above: small ones are free.
    next: i64,
    log: Log,
}

impl<'a> Ledger<'a> {
    fn new(db: &'a Connection) -> Result<Ledger<'a>> {
        let mut destinations = db.prepare("SELECT DISTINCT destination FROM charges")?;
        let credited: Result<HashSet<i64>> = destinations.query_map([], |row| row.get(0))?.collect();
        Ok(Ledger {
            db,
            charts: HashMap::new(),
            tenants: HashSet::new(),
            opened: HashSet::new(),
            credited: credited?,
            next: 1,
            log: Log::after_the_last(db)?,
        })
    }

    fn take_in(&mut self, charge: &Charge) -> Result<(), OpenError> {
        let key = (charge.tenant, charge.asset.clone());
        let known = self.charts.get(&key).copied();
        let chart = if let Some(chart) = known { chart } else { self.open(charge)? };
        self.charts.insert(key, chart);
        self.log.make_room(self.db, 2)?;
        if charge.destination != chart.payable {
            self.db.prepare_cached(REDIRECT)?.execute([charge.id, chart.payable])?;
            self.log
                .touched
                .push(RowKey::Charge(TenantId::from_i64(charge.tenant), ChargeId::from_i64(charge.id)));
        }
        if charge.captured {
            self.post(charge, chart)?;
        }
        Ok(())
    }

    /// Opens the chart of the charge's tenant and asset.
    fn open(&mut self, charge: &Charge) -> Result<Chart, OpenError> {
        let unreadable = || OpenError::Corrupt(format!("charge {} has no known asset", charge.id));
        let asset = Asset::parse(&charge.asset).map_err(|_| unreadable())?;
        let is_first = self.tenants.insert(charge.tenant);
        let main = (is_first && self.opened.insert(charge.destination)).then_some(charge.destination);
        self.log.make_room(self.db, ROLES.len().saturating_mul(2))?;
        let mut chart = Chart::default();
        for role in ROLES {
            let id = main.filter(|_| role == Role::Payable).unwrap_or_else(|| self.fresh());
            let code = role.code(asset).map_err(|_| unreadable())?;
            self.db.prepare_cached(ACCOUNT)?.execute(params![
                id,
                charge.tenant,
                code.as_str(),
                asset.code(),
                role.normal().name(),
                charge.created_at,
            ])?;
            self.db.prepare_cached(NAME)?.execute(params![charge.tenant, code.as_str(), id])?;
            let tenant = TenantId::from_i64(charge.tenant);
            self.log.touched.push(RowKey::Account(tenant, AccountId::from_i64(id)));
            self.log.touched.push(RowKey::Name(tenant, code));
            match role {
                Role::Receivable => chart.receivable = id,
                Role::Payable => chart.payable = id,
                Role::Fees | Role::Rounding | Role::Suspense | Role::Exchange => {}
            }
        }
        Ok(chart)
    }

    fn fresh(&mut self) -> i64 {
        while self.credited.contains(&self.next) {
            self.next = self.next.saturating_add(1);
        }
        let fresh = self.next;
        self.next = self.next.saturating_add(1);
        fresh
    }

    fn post(&mut self, charge: &Charge, chart: Chart) -> Result<()> {
        let (position, at) = (self.log.position, self.log.at);
        self.db.prepare_cached(ENTRIES)?.execute(params![
            charge.id,
            chart.receivable,
            chart.payable,
            charge.amount,
            charge.asset,
            position,
            at,
        ])?;
        self.db.prepare_cached(TRANSACTION)?.execute([
            charge.id,
            charge.tenant,
            position,
            charge.created_at,
        ])?;
        let (tenant, id) = (TenantId::from_i64(charge.tenant), TransactionId::from_i64(charge.id));
        self.log.touched.push(RowKey::Transaction(tenant, id));
        Ok(())
    }
}

/// The commit at hand. None names more rows than a set may change, so readers of the feed need no exception.
struct Log {
    position: i64,
    /// No clock runs yet: it is the time of the last commit.
    at: i64,
    touched: Vec<RowKey>,
}

impl Log {
    fn after_the_last(db: &Connection) -> Result<Log> {
        let sql = "SELECT position, at FROM commits ORDER BY position DESC LIMIT 1";
        let last = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (position, at): (i64, i64) = last.unwrap_or((0, 0));
        Ok(Log { position: position.saturating_add(1), at, touched: Vec::new() })
    }

    /// Makes room for so many rows in the commit at hand.
    fn make_room(&mut self, db: &Connection, rows: usize) -> Result<()> {
        if self.touched.len().saturating_add(rows) > CHANGES_PER_SET_MAX { self.write(db) } else { Ok(()) }
    }

    /// Writes the commit at hand, if it touched anything, and begins the next.
    fn write(&mut self, db: &Connection) -> Result<()> {
        if self.touched.is_empty() {
            return Ok(());
        }
        let touched = touched::encode(self.touched.drain(..));
        // Minted numbers are above zero, so that no set has this one.
        let set = self.position.saturating_neg();
        db.prepare_cached(COMMIT)?.execute(params![self.position, set, self.at, touched])?;
        self.position = self.position.saturating_add(1);
        Ok(())
    }
}
