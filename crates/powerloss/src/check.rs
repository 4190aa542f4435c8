//! Opens an image with the real store on an ordinary disk and compares it with the story.
//!
//! The checks: the image opens; every set acknowledged before the cut is at its position; every set
//! is whole or absent, and no row exists without a set; SQLite finds no damage; balances equal the
//! sums of the journal; the clock has not gone back; the store can commit again.

use crate::chance::Chance;
use crate::cut::Image;
use crate::dump::{Dump, dump};
use crate::rows::{self, ACCOUNTS};
use crate::story::Story;
use crate::workload::{Boot, Size};
use counterfoil_core::ledger::account::Side;
use counterfoil_core::types::time::Time;
use counterfoil_store::conformance::fixtures::TENANT;
use counterfoil_store::conformance::fixtures::ledger::account_id;
use counterfoil_store::judge::Image as Rows;
use counterfoil_store::{Change, Committed, Position, Row, RowKey, Store, Upto};
use counterfoil_store_embedded::{EmbeddedStore, Options};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Rows per read.
const BATCH: usize = 200;
/// Commits per page of the feed.
const PAGE: usize = 500;
/// The number of the sets that are committed after the check. No workload reaches it.
const AFTERWARDS: i64 = 1 << 40;
/// The initial size of SQLite's shared memory.
const SHARED_MEMORY: usize = 32 << 10;

/// Checks the images of one recording.
#[derive(Debug)]
pub struct Checker<'a> {
    story: &'a Story,
    keys: Vec<RowKey>,
    dir: PathBuf,
    runtime: Runtime,
    /// Digests of contents that were compared row by row already.
    known: HashSet<u64>,
}

impl<'a> Checker<'a> {
    /// A checker that builds images in `dir`, which is created or emptied as needed.
    pub fn new(story: &'a Story, dir: PathBuf) -> Result<Checker<'a>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(text)?;
        Ok(Checker { story, keys: story.keys(), dir, runtime, known: HashSet::new() })
    }

    /// The number of different contents so far.
    pub fn contents(&self) -> usize {
        self.known.len()
    }

    /// Checks the image of a cut after `point` operations.
    pub fn check(&mut self, image: &Image, point: usize, chance: &mut Chance) -> Result<(), String> {
        write_image(&self.dir, image, chance).map_err(text)?;
        let opened = self.story.secrets.iter().any(|secret| secret.1 <= point);
        if opened && chance.percent(5) {
            let reader =
                EmbeddedStore::open_read_only(&self.dir).map_err(|error| format!("read-only: {error}"))?;
            self.acknowledged(&self.feed(&reader)?, point)?;
        }
        let store = reopen(&self.dir)?;
        let feed = self.feed(&store)?;
        self.acknowledged(&feed, point)?;
        self.openings(&store, &feed, point)?;
        let found = dump(&self.dir)?;
        if !self.known.contains(&found.digest) {
            self.rows(&store, &feed, &found)?;
            self.known.insert(found.digest);
        }
        self.go_on(store, chance)
    }

    fn feed(&self, store: &EmbeddedStore) -> Result<Vec<Committed>, String> {
        self.runtime.block_on(async {
            let mut feed: Vec<Committed> = Vec::new();
            loop {
                let last = feed.last().map_or(Position::START, |commit| commit.receipt.position);
                let page = store.feed(last, PAGE).await.map_err(text)?;
                if page.is_empty() {
                    return Ok(feed);
                }
                feed.extend(page);
            }
        })
    }

    /// Acknowledged sets are there, denied sets are not, and groups are whole.
    fn acknowledged(&self, feed: &[Committed], point: usize) -> Result<(), String> {
        for (expected, commit) in (1_u64..).zip(feed) {
            if commit.receipt.position.0 != expected {
                return Err(format!("position {expected} of the feed holds {:?}", commit.receipt));
            }
        }
        for known in self.story.acknowledged.iter().filter(|known| known.after <= point) {
            let place = usize::try_from(known.receipt.position.0).unwrap_or(0).wrapping_sub(1);
            let found = feed.get(place).map(|commit| (commit.set, commit.receipt));
            if found != Some((known.set, known.receipt)) {
                return Err(format!(
                    "{:?} was acknowledged as {:?} after operation {}, and its place holds {found:?}",
                    known.set, known.receipt, known.after
                ));
            }
        }
        let denied = self.story.denied.iter().filter(|denied| denied.1 <= point);
        for (set, _) in denied {
            if feed.iter().any(|commit| commit.set == *set) {
                return Err(format!("{set:?} was denied and is there"));
            }
        }
        let head = u64::try_from(feed.len()).unwrap_or(0);
        if head > 0 && !self.story.doubtful && !self.story.groups.contains(&head) {
            return Err(format!("the last commit, {head}, is inside a group"));
        }
        Ok(())
    }

    /// The secret has not changed, and the clock has not gone back.
    fn openings(&self, store: &EmbeddedStore, feed: &[Committed], point: usize) -> Result<(), String> {
        let told = self.story.secrets.iter().filter(|secret| secret.1 <= point);
        for (secret, after) in told {
            if store.secret().reveal() != secret {
                return Err(format!(
                    "the store's secret is not the one of the opening before operation {after}"
                ));
            }
        }
        let last = feed.last().map_or(Time::EPOCH, |commit| commit.receipt.at);
        if store.now() < last {
            return Err(format!("the clock says {:?} after a commit at {last:?}", store.now()));
        }
        Ok(())
    }

    /// The rows are exactly those that the sets of the feed make, in their order.
    fn rows(&self, store: &EmbeddedStore, feed: &[Committed], found: &Dump) -> Result<(), String> {
        let mut model = Rows::default();
        for commit in feed {
            let set = self.story.sets.get(&commit.set.to_i64());
            let set = set.ok_or_else(|| format!("{:?} was never submitted", commit.set))?;
            let touched: Vec<RowKey> = set.changes().iter().map(Change::key).collect();
            if touched != commit.touched {
                return Err(format!("{:?} touched other rows than it named", commit.set));
            }
            model.admit(set).map_err(|refusal| format!("{:?} cannot be there: {refusal:?}", commit.set))?;
        }
        for keys in self.keys.chunks(BATCH) {
            let rows = self.runtime.block_on(store.read(keys.to_vec())).map_err(text)?;
            for (key, row) in keys.iter().zip(rows) {
                if row.as_ref() != model.get(key) {
                    return Err(format!("{key:?} is {row:?} and should be {:?}", model.get(key)));
                }
            }
        }
        let mut expected: BTreeMap<&str, usize> = BTreeMap::from([("commits", feed.len())]);
        for row in self.keys.iter().filter_map(|key| model.get(key)) {
            *expected.entry(table(row)).or_default() += 1;
            if let Row::Transaction(transaction) = row {
                *expected.entry("journal_entries").or_default() += transaction.legs.as_slice().len();
            }
        }
        for (name, count) in &found.counts {
            let due = expected.remove(name.as_str()).unwrap_or(0);
            if *count != due && name != "meta" {
                return Err(format!("{name} has {count} rows and should have {due}"));
            }
        }
        self.ledger(store, &model)
    }

    fn ledger(&self, store: &EmbeddedStore, model: &Rows) -> Result<(), String> {
        let mut all = 0_i128;
        for account in (1..=ACCOUNTS).map(account_id) {
            let folded = store.fold(TENANT, account, Position::START, Upto::Now);
            let totals = self.runtime.block_on(folded).map_err(text)?.totals;
            let posted = totals.seen_from(Side::Credit).posted;
            let balance = match model.get(&RowKey::Balance(TENANT, account, 0)) {
                Some(Row::Balance(balance)) => i128::from(balance.posted),
                Some(_) | None => 0,
            };
            if balance != posted {
                return Err(format!("{account:?} has {balance}, and its journal adds up to {posted}"));
            }
            all += posted;
        }
        if all == 0 { Ok(()) } else { Err(format!("{all} were made of nothing")) }
    }

    /// The store commits again, and another opening finds these commits.
    fn go_on(&self, store: EmbeddedStore, chance: &mut Chance) -> Result<(), String> {
        let sets = [rows::open(AFTERWARDS), rows::settle(AFTERWARDS, b"{}"), rows::pay(AFTERWARDS, 1, 2, 5)];
        for set in &sets {
            self.runtime
                .block_on(store.commit(set.clone()))
                .map_err(|error| format!("afterwards: {error:?}"))?;
        }
        store.close();
        if !chance.percent(10) {
            return Ok(());
        }
        let store = reopen(&self.dir)?;
        for set in &sets {
            let found = self.runtime.block_on(store.committed(set.id())).map_err(text)?;
            found.ok_or_else(|| format!("{:?}, committed afterwards, is gone", set.id()))?;
        }
        dump(&self.dir).map(|_| ())
    }
}

/// Opens the image in another boot, with a wall clock at zero.
fn reopen(dir: &Path) -> Result<EmbeddedStore, String> {
    let time = Arc::new(Boot { name: "after", wall_ms: Some(0) });
    let options = Options { readers: 1, time, log: Size::SHORT_LOG, ..Options::default() };
    EmbeddedStore::open(dir, options).map_err(|error| format!("it does not open: {error}"))
}

/// Writes the image, and remains of the files that are never synced: the lock and the shared
/// memory.
fn write_image(dir: &Path, image: &Image, chance: &mut Chance) -> std::io::Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    std::fs::create_dir(dir)?;
    for (name, bytes) in image {
        std::fs::write(dir.join(name), bytes)?;
    }
    match chance.below(4) {
        0 => {}
        1 => std::fs::write(dir.join("LOCK"), "")?,
        2 => std::fs::write(dir.join("LOCK"), "4711\n")?,
        _ => std::fs::write(dir.join("LOCK"), chance.bytes(512))?,
    }
    if image.contains_key("counterfoil.db") && chance.percent(30) {
        let bytes = if chance.percent(50) { vec![0; SHARED_MEMORY] } else { chance.bytes(SHARED_MEMORY) };
        std::fs::write(dir.join("counterfoil.db-shm"), bytes)?;
    }
    Ok(())
}

fn table(row: &Row) -> &'static str {
    match row {
        Row::Claim(_) => "claims",
        Row::Charge(_) => "charges",
        Row::Operation(_) => "operations",
        Row::Payout(_) => "payouts",
        Row::Outbox(_) => "outbox",
        Row::Audit(_) => "audit_log",
        Row::Tenant(_) => "tenants",
        Row::ApiKey(_) => "api_keys",
        Row::Slot(_) => "slots",
        Row::Account(_) => "accounts",
        Row::Name(_) => "account_names",
        Row::Asset(_) => "assets",
        Row::Balance(_) => "balances",
        Row::Transaction(_) => "journal_transactions",
        Row::Reversal(_) => "reversals",
        Row::Hold(_) => "holds",
        Row::Snapshot(_) => "snapshots",
        Row::Cursor(_) => "cursors",
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
