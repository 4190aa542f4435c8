//! Query plans: no query of the store reads a whole table.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use support::{open, raw};

fn plan(db: &rusqlite::Connection, query: &str) -> Vec<String> {
    let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    plan.query_map([], |row| row.get(3)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// The look-up steps from partition to partition until it finds the key.
#[test]
fn a_key_is_looked_up_in_the_index_of_each_partition() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let by_id = "SELECT body FROM claim_partitions CROSS JOIN claims ON claims.partition = claim_partitions.partition \
        WHERE id = x'00' LIMIT 1";
    let plan = plan(&raw(dir.path()), by_id);
    assert!(plan.iter().any(|step| step.contains("CO-ROUTINE partitions")), "{plan:?}");
    assert!(plan.iter().any(|step| step.contains("claims_by_id (partition=? AND id=?)")), "{plan:?}");
    let walks: Vec<&String> = plan.iter().filter(|step| step.contains("SCAN")).collect();
    assert!(walks.iter().all(|step| *step == "SCAN partitions"), "{plan:?}");
}

#[test]
fn the_legs_of_new_transactions_are_counted_one_transaction_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let counted = "SELECT count(*) FROM json_each('[1, 9223372036854775807]') \
        CROSS JOIN journal_entries ON transaction_id = value";
    let plan = plan(&raw(dir.path()), counted);
    let [ids, entries] = plan.as_slice() else { panic!("{plan:?}") };
    assert!(ids.contains("SCAN json_each"), "{plan:?}");
    assert!(entries.contains("journal_entries USING PRIMARY KEY (transaction_id=?)"), "{plan:?}");
}

#[test]
fn every_query_of_the_store_runs_on_an_index() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let db = raw(dir.path());
    for (query, index) in [
        ("SELECT body FROM claims WHERE partition = 1 AND id = x'00'", "claims_by_id (partition=? AND id=?)"),
        ("SELECT max(partition) FROM claims WHERE partition < 9", "claims_by_id"),
        ("SELECT min(partition) FROM claims WHERE partition > 1", "claims_by_id"),
        ("SELECT max(partition) FROM claims", "claims_by_id"),
        (
            "SELECT id FROM claims WHERE partition = 1 AND id > x'00' ORDER BY id LIMIT 1",
            "COVERING INDEX claims_by_id (partition=? AND id>?)",
        ),
        (
            "SELECT body FROM claims WHERE sweep_at IS NOT NULL AND sweep_at <= 1 ORDER BY sweep_at LIMIT 1",
            "claims_by_sweep",
        ),
        (
            "SELECT status FROM charges WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "charges_by_tenant",
        ),
        (
            "SELECT claim FROM outbox WHERE parked IS NULL AND due_at <= 1 ORDER BY due_at, id LIMIT 1",
            "outbox_by_due",
        ),
        ("SELECT count(*) FROM outbox WHERE parked IS NULL AND due_at < 1", "outbox_by_due"),
        ("SELECT count(*) FROM outbox WHERE parked IS NULL", "outbox_by_due"),
        (
            "SELECT * FROM outbox WHERE charge = 1 AND unknown = 1 ORDER BY id LIMIT 9",
            "outbox_doubt_on_charge",
        ),
        (
            "SELECT * FROM outbox WHERE payout = 1 AND unknown = 1 ORDER BY id LIMIT 9",
            "outbox_doubt_on_payout",
        ),
        ("SELECT count(*) FROM outbox WHERE parked IS NOT NULL", "outbox_parked"),
        (
            "SELECT claim FROM outbox WHERE tenant = 1 AND parked IS NOT NULL AND id < 9 ORDER BY id DESC LIMIT 1",
            "outbox_parked",
        ),
        (
            "SELECT status FROM operations WHERE charge = 1 AND id > 1 ORDER BY id LIMIT 1",
            "operations_by_charge",
        ),
        (
            "SELECT status FROM payouts WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "payouts_by_tenant",
        ),
        (
            "SELECT status FROM operations WHERE tenant = 1 AND kind = 'refund' AND id < 9 ORDER BY id DESC LIMIT 1",
            "refunds_by_tenant",
        ),
        ("SELECT position FROM commits WHERE set_id = 1", "commits_by_set"),
        ("SELECT kind FROM audit_log WHERE subject = 1 AND id > x'' ORDER BY id LIMIT 1", "PRIMARY KEY"),
        (
            "SELECT code FROM accounts WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "accounts_by_tenant",
        ),
        ("SELECT account FROM account_names WHERE tenant = 1 AND code = 'a'", "PRIMARY KEY"),
        ("SELECT exponent FROM assets WHERE tenant = 1 ORDER BY code", "PRIMARY KEY"),
        (
            "SELECT posted FROM balances WHERE (account, shard) > (1, 0) ORDER BY account, shard LIMIT 1",
            "PRIMARY KEY",
        ),
        (
            "SELECT kind FROM journal_transactions WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "journal_transactions_by_tenant",
        ),
        ("SELECT amount FROM journal_entries WHERE transaction_id = 1 ORDER BY leg", "PRIMARY KEY"),
        (
            "SELECT amount FROM journal_entries WHERE account = 1 AND position > 1 AND position <= 9 ORDER BY position",
            "journal_by_account",
        ),
        (
            "SELECT amount FROM journal_entries WHERE account = 1 AND position > 1 \
             ORDER BY position, transaction_id, leg LIMIT 1",
            "journal_by_account",
        ),
        (
            "SELECT amount FROM journal_entries WHERE account = 1 AND (position, transaction_id, leg) < (9, 9, 9) \
             ORDER BY position DESC, transaction_id DESC, leg DESC LIMIT 1",
            "journal_by_account",
        ),
        (
            "SELECT amount FROM holds WHERE state = 'pending' AND expires_at <= 1 ORDER BY expires_at, id LIMIT 1",
            "holds_by_deadline",
        ),
        (
            "SELECT debits FROM snapshots WHERE account = 1 AND position <= 9 AND at <= 9 \
             ORDER BY position DESC LIMIT 1",
            "PRIMARY KEY",
        ),
    ] {
        let plan = plan(&db, query);
        assert!(plan.len() == 1 && plan[0].contains(index), "{query}: {plan:?}");
    }
}
