//! The rules of the tables, as the connection keeps them that shows what is durable.
//!
//! Everybody else who opens the file is held by all of its triggers, and so is what an earlier release has left behind. This connection
//! has none that is asked for every new row. Most of those only ask whether a row is there already, because `INSERT OR REPLACE` would
//! remove it unseen: the store never says that, and its insertions are refused by the key of the table. Whether an entry comes after
//! its transaction need not be asked: the store writes both together, and the transaction has a key. Whether a key is in any volume, the
//! writer knows. What is left is asked once for all rows (`tables/new_rows.rs`). All rules about rows that change, as they are at the
//! opening, hold for it too.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error};

/// What `tables::new_rows` asks, beside whether positions rise.
const ASKED_AT_ONCE: [&str; 2] = ["claims_go_into_an_open_volume", "journal_transactions_balance"];

/// Leaves out the rules that a plain insertion cannot break, and those that are asked once for all rows.
pub(crate) fn keep_own(db: &Connection) -> Result<(), Error> {
    let rules: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (_, rule) in rules.iter().filter(|(name, _)| !is_about_new_rows(name)) {
        db.execute_batch(&rule.replacen("CREATE TRIGGER ", "CREATE TEMP TRIGGER ", 1))?;
    }
    // Those of the file itself; what was copied still holds, and ends with the connection.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).map(|_| ())
}

fn is_about_new_rows(rule: &str) -> bool {
    rule.ends_with("_not_replaced") || rule == "journal_entries_come_first" || ASKED_AT_ONCE.contains(&rule)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::schema::{Found, migrate};

    /// New tables as the display has them.
    pub(crate) fn tables() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, Found::Fresh).unwrap();
        keep_own(&db).unwrap();
        db
    }

    /// Whatever is added to the rules one day is kept, unless it is named as these are.
    #[test]
    fn only_rules_about_new_rows_are_left_out() {
        let db = tables();
        let left_out = "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' \
            AND name NOT IN (SELECT name FROM temp.sqlite_schema)";
        let mut left_out = db.prepare(left_out).unwrap();
        let rules = left_out.query_map([], |row| row.get(0)).unwrap();
        let rules: Vec<String> = rules.collect::<Result<_, _>>().unwrap();
        assert_eq!(rules.len(), 14, "{rules:?}");
        for rule in rules {
            assert!(rule.contains(" BEFORE INSERT ON "), "{rule}");
        }
    }

    const ENTRIES: &str = "INSERT INTO journal_entries \
        (transaction_id, leg, account, position, side, layer, asset, amount, at) VALUES \
        (1, 0, 10, 1, 'debit', 'posted', 'USD', 5, 0), (1, 1, 11, 1, 'credit', 'posted', 'USD', 4, 0)";

    #[test]
    fn history_stays_as_it_is() {
        let db = tables();
        db.execute_batch(ENTRIES).unwrap();
        for rewritten in ["UPDATE journal_entries SET amount = 4", "DELETE FROM journal_entries"] {
            let refused = db.execute_batch(rewritten).unwrap_err().to_string();
            assert!(refused.contains("append-only"), "{refused}");
        }
    }

    #[test]
    fn what_is_there_is_not_inserted_again() {
        let db = tables();
        db.execute_batch(ENTRIES).unwrap();
        assert!(db.execute_batch(ENTRIES).unwrap_err().to_string().contains("UNIQUE"));
    }
}
