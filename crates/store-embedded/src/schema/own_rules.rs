//! The triggers that hold for the flusher's connection.
//!
//! All triggers of the file hold for other programs and for the replay of the write-ahead log. The
//! flusher's connection runs without `BEFORE INSERT` triggers, because they make SQLite set all
//! rows of a statement aside before writing the first. The store never says `OR REPLACE`, so the
//! key of the table refuses a second row. `tables/new_rows.rs` checks the other insertion rules.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error};

/// All triggers except those about insertions, as temporary triggers.
const RULES: &str = "SELECT 'CREATE TEMP' || substr(sql, length('CREATE') + 1) FROM main.sqlite_schema \
    WHERE type = 'trigger' AND sql NOT LIKE '% BEFORE INSERT ON %'";

/// Copies these rules to the connection, and disables the triggers of the file there.
pub(crate) fn copy_rules(db: &Connection) -> Result<(), Error> {
    let rules: Vec<String> = db.prepare(RULES)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    rules.iter().try_for_each(|rule| db.execute_batch(rule))?;
    // Temporary triggers stay enabled; they end with the connection.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).map(|_| ())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::schema::{Found, STEPS, migrate};

    /// New tables as the flusher has them.
    pub(crate) fn tables() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, Found::Fresh, STEPS).unwrap();
        copy_rules(&db).unwrap();
        db
    }

    #[test]
    fn only_rules_about_insertions_are_left_out() {
        let db = tables();
        let left_out = "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger' \
            AND name NOT IN (SELECT name FROM temp.sqlite_schema)";
        let mut left_out = db.prepare(left_out).unwrap();
        let rules = left_out.query_map([], |row| row.get(0)).unwrap();
        let rules: Vec<String> = rules.collect::<Result<_, _>>().unwrap();
        assert_eq!(rules.len(), 15, "{rules:?}");
        for rule in rules {
            assert!(rule.contains(" BEFORE INSERT ON "), "{rule}");
        }
    }

    const ENTRIES: &str = "INSERT INTO journal_entries \
        (transaction_id, leg, account, position, side, layer, asset, amount, at) VALUES \
        (1, 0, 10, 1, 'debit', 'posted', 'USD', 5, 0), (1, 1, 11, 1, 'credit', 'posted', 'USD', 4, 0)";

    #[test]
    fn history_cannot_be_rewritten_by_the_store_either() {
        let db = tables();
        db.execute_batch(ENTRIES).unwrap();
        for rewritten in ["UPDATE journal_entries SET amount = 4", "DELETE FROM journal_entries"] {
            let refused = db.execute_batch(rewritten).unwrap_err().to_string();
            assert!(refused.contains("append-only"), "{refused}");
        }
    }

    #[test]
    fn a_second_row_is_refused_by_the_key_of_its_table() {
        let db = tables();
        db.execute_batch(ENTRIES).unwrap();
        assert!(db.execute_batch(ENTRIES).unwrap_err().to_string().contains("UNIQUE"));
    }
}
