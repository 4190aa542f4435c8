//! The rules of the tables, as the connection keeps them that shows what is durable.
//!
//! Everybody else who opens the file is held by all of its triggers, and so is what an earlier release has left behind. Some of them
//! only ask whether a row is there already, because `INSERT OR REPLACE` would remove it unseen. The store never says that: its
//! insertions are refused by the key of the table, without a trigger for every row. One asks whether an entry comes after its
//! transaction: the store writes both together, and the transaction has a key. One asks whether a key is in any volume: the writer
//! knows. All others, as they are at the opening, hold for it too.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error};

/// Leaves out the rules that a plain insertion cannot break.
pub(crate) fn keep_own(db: &Connection) -> Result<(), Error> {
    let rules: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (_, rule) in rules.iter().filter(|(name, _)| !is_about_replacing(name)) {
        db.execute_batch(&rule.replacen("CREATE TRIGGER ", "CREATE TEMP TRIGGER ", 1))?;
    }
    // Those of the file itself; what was copied still holds, and ends with the connection.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).map(|_| ())
}

fn is_about_replacing(rule: &str) -> bool {
    match rule {
        // It also asks whether positions rise.
        "commits_are_not_replaced" => false,
        rule => rule.ends_with("_not_replaced") || rule == "journal_entries_come_first",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Found, migrate};

    fn tables() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, Found::Fresh).unwrap();
        keep_own(&db).unwrap();
        db
    }

    /// Whatever is added to the rules one day is kept, unless it only asks what is there.
    #[test]
    fn only_rules_that_ask_what_is_there_are_left_out() {
        let db = tables();
        let left_out = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' \
            AND name NOT IN (SELECT name FROM temp.sqlite_schema)";
        let mut left_out = db.prepare(left_out).unwrap();
        let rules = left_out.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rules: Vec<(String, String)> = rules.collect::<Result<_, _>>().unwrap();
        assert_eq!(rules.len(), 11, "{rules:?}");
        for (name, rule) in rules {
            assert!(rule.contains("BEFORE INSERT ON") && rule.contains("\nWHEN EXISTS "), "{name}: {rule}");
        }
    }

    const ENTRIES: &str = "INSERT INTO journal_entries \
        (transaction_id, leg, account, position, side, layer, asset, amount, at) VALUES \
        (1, 0, 10, 1, 'debit', 'posted', 'USD', 5, 0), (1, 1, 11, 1, 'credit', 'posted', 'USD', 4, 0)";

    #[test]
    fn what_does_not_balance_is_refused_and_history_stays_as_it_is() {
        let db = tables();
        db.execute_batch(ENTRIES).unwrap();
        let closing = "INSERT INTO journal_transactions (id, tenant, position, at, kind, metadata, legs) \
            VALUES (1, 1, 1, 0, 'transfer', '{}', 2)";
        let refused = db.execute_batch(closing).unwrap_err().to_string();
        assert!(refused.contains("are equal in every asset and layer"), "{refused}");
        for rewritten in ["UPDATE journal_entries SET amount = 4", "DELETE FROM journal_entries"] {
            let refused = db.execute_batch(rewritten).unwrap_err().to_string();
            assert!(refused.contains("append-only"), "{refused}");
        }
    }

    #[test]
    fn positions_rise() {
        let db = tables();
        let commit = |position: i64| {
            db.execute(
                "INSERT INTO commits (position, set_id, at, touched) VALUES (?1, ?1, 0, x'')",
                [position],
            )
        };
        commit(2).unwrap();
        assert!(commit(1).unwrap_err().to_string().contains("append-only"));
    }

    #[test]
    fn what_is_there_is_not_inserted_again() {
        let db = tables();
        db.execute_batch(ENTRIES).unwrap();
        assert!(db.execute_batch(ENTRIES).unwrap_err().to_string().contains("UNIQUE"));
    }
}
