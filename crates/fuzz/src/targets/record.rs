//! Stored records: any value in a cell of the embedded store's file is read or gives an error, and
//! written rows read back unchanged.

use super::config::memory;
use crate::mutate::prng_of;
use crate::target::{Check, Kind, Target};
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::charge::{Charge, ChargeOrder};
use counterfoil_core::types::id::{ChargeId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::conformance::fixtures::ledger::{FLOOR, account_id, moving, posted};
use counterfoil_store::conformance::fixtures::{TENANT, at, audit, charge, claim_in, set, settled};
use counterfoil_store::conformance::variants::one_of_each;
use counterfoil_store::{ChangeSet, Due, EntryPage, Position, ReadError, Row, RowKey, Scan, Store, Upto};
use counterfoil_store_embedded::{EmbeddedStore, Options};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

pub(super) const TARGET: Target = Target {
    name: "record",
    seeds,
    words: &[
        "\0\0\0\0\0\0\0\x01",
        "USD",
        "in_flight",
        "completed",
        "uncertain",
        "succeeded",
        "failed",
        "{}",
        "{\"a\":\"b\"}",
        "json",
        "projection",
        "\x05\x04acme",
        "\u{1f600}",
        "acme",
        "chart:fees:EUR",
        "340282366920938463463374607431768211455",
        "-1",
    ],
    length_max: 512,
    short: 400,
    start,
};

/// Change sets before the file is created again.
const FILE: i64 = 20_000;

fn seeds() -> Vec<Vec<u8>> {
    // Each cell with a number, a text and bytes of the columns' lengths.
    let mut seeds = Vec::new();
    for cell in 0..=u8::MAX {
        for (shape, bytes) in [(0, &b"\0\0\0\0\0\0\0\x02"[..]), (1, b"completed"), (2, &[7; 32]), (3, b"")] {
            seeds.push([&[cell, shape][..], bytes].concat());
        }
    }
    seeds.push(b"\xff\x04some text\nand\0more".to_vec());
    seeds
}

fn start() -> Check {
    let mut file = File::make();
    Box::new(move |input| {
        if file.sets >= FILE {
            file = File::make();
        }
        let [cell, shape, bytes @ ..] = input else { return Kind::of("short") };
        if shape % 5 == 4 { file.comes_back(*cell, bytes) } else { file.damage(*cell, *shape, bytes) }
    })
}

/// A store with a row of every kind, and a second connection to its file without triggers.
struct File {
    /// Reads the file that `raw` damages.
    store: EmbeddedStore,
    /// Another store, to write to: a foreign write stops an open one.
    live: EmbeddedStore,
    raw: Connection,
    cells: Vec<(String, String)>,
    runtime: Runtime,
    sets: i64,
    _folders: [TempDir; 2],
}

impl File {
    fn make() -> File {
        let folder = tempfile::tempdir_in(memory()).expect("a folder");
        let store = EmbeddedStore::open(folder.path(), Options { readers: 1, ..Options::default() })
            .expect("a store");
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let rows = one_of_each().into_iter().fold(set(1), ChangeSet::insert);
        runtime.block_on(store.commit(rows)).expect("rows of every kind");
        let ended = claim_in(2, ClaimState::Completed(settled(b"{}", at(4))));
        runtime.block_on(store.commit(set(2).insert(ended))).expect("an ended claim");
        let _ = runtime.block_on(store.commit(set(3).shift(moving(1, FLOOR, posted(5)))));
        store.close();
        let store = EmbeddedStore::open_read_only(folder.path()).expect("the same store");
        let other = tempfile::tempdir_in(memory()).expect("a folder");
        let live =
            EmbeddedStore::open(other.path(), Options { readers: 1, ..Options::default() }).expect("a store");
        let raw = Connection::open(folder.path().join("counterfoil.db")).expect("a connection");
        raw.execute_batch("PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF")
            .expect("no rules");
        let triggers = column(&raw, "SELECT name FROM sqlite_schema WHERE type = 'trigger'");
        for trigger in triggers {
            raw.execute_batch(&format!("DROP TRIGGER \"{trigger}\"")).expect("no guards");
        }
        let mut cells = Vec::new();
        for table in
            column(&raw, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        {
            // The store reads its secret and format only when it opens.
            if table == "meta" {
                continue;
            }
            for name in column(&raw, &format!("SELECT name FROM pragma_table_info('{table}')")) {
                cells.push((table.clone(), name));
            }
        }
        File { store, live, raw, cells, runtime, sets: 10, _folders: [folder, other] }
    }

    /// Puts a value into a cell of every row of a table, reads everything, and restores the old
    /// values.
    fn damage(&mut self, cell: u8, shape: u8, bytes: &[u8]) -> Kind {
        let (table, column) = self.cells[usize::from(cell) % self.cells.len()].clone();
        let value = match shape % 5 {
            0 => {
                let mut number = [0; 8];
                number.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
                Value::Integer(i64::from_be_bytes(number))
            }
            1 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            2 => Value::Blob(bytes.to_vec()),
            _ => Value::Null,
        };
        // The store's connections would not see an open transaction; a rolled-back one leaves no
        // trace.
        self.raw
            .execute_batch(&format!("CREATE TEMP TABLE old AS SELECT * FROM main.{table}"))
            .expect("a copy");
        let hurt = self.raw.execute(&format!("UPDATE {table} SET {column} = ?1"), [value]);
        let read = self.read_everything();
        if hurt.is_ok() {
            let back =
                format!("BEGIN; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM temp.old; COMMIT");
            self.raw.execute_batch(&back).expect("the old values");
        }
        self.raw.execute_batch("DROP TABLE temp.old").expect("no copy");
        let said = read.iter().map(|read| read.as_ref().err().map_or("", |error| error.0.as_str()));
        let said: Vec<&str> = said.collect();
        if hurt.is_err() {
            assert!(said.iter().all(|said| said.is_empty()), "an untouched store fails: {said:?}");
        }
        Kind::of(format!("{table}.{column} {} {said:?}", hurt.is_ok()))
    }

    fn read_everything(&self) -> Vec<Result<usize, ReadError>> {
        let mut read = Vec::new();
        self.runtime.block_on(async {
            let store = &self.store;
            for row in one_of_each() {
                let key = row.key();
                let found = store.read(vec![key.clone()]).await;
                if let Ok([Some(found)]) = found.as_deref() {
                    assert_eq!(found.key(), key, "another row was found");
                }
                read.push(found.map(|found| found.len()));
            }
            read.push(store.feed(Position(0), 100).await.map(|page| page.len()));
            read.push(store.tally(Time::MAX).await.map(|_| 0));
            read.push(store.committed(SetId::from_i64(1)).await.map(|_| 0));
            for what in [Due::Outbox, Due::Claims, Due::Holds] {
                read.push(store.due(what, Time::MAX, 100).await.map(|page| page.len()));
            }
            for scan in [
                Scan::ChargesOf { tenant: TENANT, before: None, limit: 100 },
                Scan::AccountsOf { tenant: TENANT, before: None, limit: 100 },
                Scan::TransactionsOf { tenant: TENANT, before: None, limit: 100 },
                Scan::Tenants,
                Scan::ApiKeys,
                Scan::Slots,
                Scan::Balances { after: None, limit: 9 },
            ] {
                read.push(store.scan(scan).await.map(|page| page.len()));
            }
            read.push(
                store
                    .entries(TENANT, account_id(1), EntryPage::Before(None), 100)
                    .await
                    .map(|page| page.len()),
            );
            read.push(store.fold(TENANT, account_id(1), Position(0), Upto::Now).await.map(|_| 0));
        });
        read
    }

    /// Checks that rows with the input's bytes and texts read back unchanged.
    fn comes_back(&mut self, salt: u8, bytes: &[u8]) -> Kind {
        self.sets += 1;
        let number = self.sets * 1_000 + i64::from(salt);
        let mut prng = prng_of(bytes);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let words: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let mut word = || words[prng.index(words.len())].clone();
        let metadata: BTreeMap<String, Masked<String>> =
            (0..words.len()).map(|_| (word(), Masked::new(word()))).collect();
        let order = ChargeOrder {
            payment_method: Masked::new(word()),
            description: Some(Masked::new(word())),
            metadata,
            ..ChargeOrder::clone(&charge(number).order)
        };
        let made = Charge {
            id: ChargeId::from_i64(number),
            tenant: TenantId::from_i64(i64::from(salt)),
            order: Arc::new(order),
            provider: ProviderBinding { profile: word().into(), endpoint: word().into() },
            provider_reference: Some(word()),
            ..charge(number)
        };
        let claim = Claim {
            attempts: u32::from(salt),
            ..claim_in(number, ClaimState::Completed(settled(bytes, at(4))))
        };
        let record = AuditRecord { detail: text, ..audit(number, 0) };
        let rows: [Row; 3] = [made.into(), claim.into(), record.into()];
        let keys: Vec<RowKey> = rows.iter().map(Row::key).collect();
        let set = rows.iter().cloned().fold(ChangeSet::new(SetId::from_i64(self.sets)), ChangeSet::insert);
        self.runtime.block_on(async {
            self.live.commit(set).await.expect("new rows");
            let read = self.live.read(keys.clone()).await.expect("rows that were written");
            assert_eq!(read, rows.map(Some), "what was written");
            let feed = self.live.feed(Position(0), 100_000).await.expect("the feed");
            assert!(feed.iter().any(|commit| commit.touched == keys), "what was touched");
        });
        Kind::of(format!("back {}", words.len().min(5)))
    }
}

fn column(raw: &Connection, sql: &str) -> Vec<String> {
    let mut statement = raw.prepare(sql).expect("a question");
    let names = statement.query_map([], |row| row.get(0)).expect("an answer");
    names.collect::<Result<Vec<String>, _>>().expect("names")
}
