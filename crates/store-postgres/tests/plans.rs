//! The plans of the store's statements: none of them reads a table that grows from end to end.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store_postgres::statements;
use support::{database, raw};
use tokio_postgres::Client;

/// Ten thousand rows in every table that grows.
async fn grow(db: &Client) {
    let series = "generate_series(1, 10000) AS n";
    let tables = [
        format!(
            "INSERT INTO charges SELECT n, n % 9, 1, 'USD', 'pm', true, 1, NULL, '{{}}', 'processing', 'p', NULL, NULL, NULL, n, 1 FROM {series}"
        ),
        format!(
            "INSERT INTO idempotency_keys (id, tenant, subject, makes, fingerprint, request, created_at, fence, revision, attempts, state, replay_until, tombstone_until, sweep_at, status, media, body) \
            SELECT sha256(n::text::bytea), n % 9, n, 'charge', sha256('f'), substr(sha256('r'), 1, 16), n, 1, 1, 1, 'completed', n, n, n, 201, 'json', '' FROM {series}"
        ),
        format!(
            "INSERT INTO outbox SELECT n, sha256('c'), n % 9, 'p', 'e', n, n, 1, 0, n % 7 = 0, 0, n, n, CASE WHEN n % 9 = 0 THEN 'no_evidence' END, 1, n, 'charge', 1, 0, 'forward', NULL FROM {series}"
        ),
        format!(
            "INSERT INTO operations SELECT n, n % 9, n / 3, CASE WHEN n % 2 = 0 THEN 'refund' ELSE 'capture' END, 1, 'USD', 'processing', NULL, NULL, NULL, n, 1 FROM {series}"
        ),
        format!(
            "INSERT INTO payouts SELECT n, n % 9, 1, 'USD', 1, NULL, NULL, '{{}}', 'processing', 'p', 'e', NULL, NULL, NULL, n, 1 FROM {series}"
        ),
        format!(
            "INSERT INTO audit_log SELECT n / 3, substr(sha256(n::text::bytea), 1, 16), n % 9, n, 1, 'claimed', '' FROM {series}"
        ),
        format!(
            "INSERT INTO accounts SELECT n, n % 9, 'c' || n, 'USD', 'debit', NULL, NULL, 1, 1, '{{}}', n, 1 FROM {series}"
        ),
        format!("INSERT INTO account_names SELECT n % 9, 'c' || n, n FROM {series}"),
        format!("INSERT INTO balances SELECT n, 0, 0, 0, 0, 0, NULL, 1, n % 9 FROM {series}"),
        format!(
            "BEGIN; INSERT INTO journal_transactions SELECT n, n % 9, 'transfer', NULL, 2, '{{}}', n FROM {series}; \
            INSERT INTO journal_entries SELECT n, leg, n, n, (n + leg) % 500, CASE leg WHEN 0 THEN 'debit' ELSE 'credit' END, 'posted', 1, 'USD', n % 9 FROM {series}, generate_series(0, 1) AS leg; COMMIT"
        ),
        format!("INSERT INTO reversals SELECT n, n, n % 9 FROM {series}"),
        format!(
            "INSERT INTO holds SELECT n, n % 9, 1, 2, 1, 'USD', n, 'pending', NULL, NULL, '{{}}', n, 1 FROM {series}"
        ),
        format!("INSERT INTO snapshots SELECT n % 500, n, n, 0, 0, 0, 0, 1, n % 9 FROM {series}"),
        format!("INSERT INTO commits SELECT n, n, n, '' FROM {series}"),
        format!("INSERT INTO commit_groups SELECT n, n, ARRAY[n], ARRAY[''::bytea] FROM {series}"),
        format!(
            "INSERT INTO api_keys SELECT sha256(n::text::bytea), 'k', 't', 'read', n, NULL, 1 FROM {series}"
        ),
        format!("INSERT INTO tenants SELECT 't' || n, n, NULL, n, 1 FROM {series}"),
        format!("INSERT INTO assets SELECT n % 9, 'A' || n, 2, n FROM {series}"),
        format!("INSERT INTO slots SELECT n, 1, n, 1 FROM {series}"),
        "ANALYZE".to_owned(),
    ];
    for table in tables {
        db.batch_execute(&table).await.unwrap_or_else(|error| panic!("{table}: {error:?}"));
    }
}

/// The plan that any parameters get.
async fn plan(db: &Client, name: &str, sql: &str) -> String {
    db.batch_execute(&format!("PREPARE {name} AS {sql}"))
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let count = (1..=200).take_while(|parameter| sql.contains(&format!("${parameter}"))).count();
    let nothing = vec!["NULL"; count].join(", ");
    let lines = db.query(&format!("EXPLAIN EXECUTE {name}({nothing})"), &[]).await.unwrap();
    lines.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

/// Lists that are whole by their meaning.
const WHOLE: [&str; 5] = [
    "FROM tenants AS t ORDER BY",
    "FROM api_keys AS t ORDER BY",
    "FROM slots AS t ORDER BY",
    "(SELECT count(*) FROM outbox",
    "CROSS JOIN tenants",
];

#[tokio::test]
async fn no_statement_reads_a_table_from_end_to_end() {
    let database = database().await;
    let db = raw(&database.url()).await;
    grow(&db).await;
    // With the planner's own choice among all its means, and the plan that any parameters get.
    db.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let all = statements();
    assert!(all.len() > 80, "{} statements", all.len());
    for (number, (name, sql)) in all.iter().enumerate() {
        if WHOLE.iter().any(|whole| sql.contains(whole)) {
            continue;
        }
        let plan = plan(&db, &format!("look_{number}"), sql).await;
        // The head has one row, and there are as many cursors as readers of the feed.
        let few = |line: &str| line.contains("on head") || line.contains("on cursors");
        let scans = plan.lines().filter(|line| line.contains("Seq Scan") && !few(line));
        assert_eq!(scans.count(), 0, "{name}: {sql}\n{plan}");
    }
}

#[tokio::test]
async fn lists_come_in_order_from_the_index_made_for_them() {
    let database = database().await;
    let db = raw(&database.url()).await;
    grow(&db).await;
    db.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let all = statements();
    for (number, (part, index)) in (1..).zip([
        ("FROM charges AS t WHERE t.tenant =", "charges_pkey"),
        ("FROM charges AS t WHERE (t.tenant", "charges_pkey"),
        ("FROM idempotency_keys AS t WHERE (t.tenant", "idempotency_keys_pkey"),
        ("FROM idempotency_keys AS t WHERE t.sweep_at", "idempotency_keys_by_sweep"),
        ("FROM audit_log AS t WHERE t.tenant", "audit_log_pkey"),
        (
            "FROM journal_entries AS e WHERE e.tenant = $1 AND e.account = $2 AND e.position",
            "journal_entries_by_account",
        ),
        ("FROM snapshots AS t WHERE t.tenant", "snapshots_pkey"),
        ("FROM balances AS t WHERE (t.tenant", "balances_pkey"),
        ("FROM operations AS t WHERE t.tenant = $1 AND t.charge", "operations_by_charge"),
        ("FROM operations AS t WHERE t.kind", "refunds_by_tenant"),
        ("FROM payouts AS t WHERE t.tenant", "payouts_pkey"),
        ("FROM payouts AS t WHERE (t.tenant", "payouts_pkey"),
        ("FROM accounts AS t WHERE t.tenant", "accounts_pkey"),
        ("FROM journal_transactions AS t WHERE t.tenant", "journal_transactions_pkey"),
        ("FROM operations AS t WHERE (t.tenant", "operations_pkey"),
        ("FROM outbox AS t WHERE (t.tenant", "outbox_pkey"),
        ("FROM outbox AS t WHERE t.parked IS NOT NULL", "outbox_parked"),
        ("FROM outbox AS t WHERE t.parked IS NULL AND t.due_at", "outbox_by_due"),
        ("FROM outbox AS t WHERE t.charge = ", "outbox_doubt_on_charge"),
        ("FROM outbox AS t WHERE t.payout = ", "outbox_doubt_on_payout"),
        ("FROM holds AS t WHERE t.state", "holds_by_expiry"),
    ]) {
        let (_, sql) = all.iter().find(|(_, sql)| sql.contains(part)).unwrap_or_else(|| panic!("{part}"));
        let plan = plan(&db, &format!("list_{number}"), sql).await;
        assert!(plan.contains(index) && !plan.contains("Sort"), "{sql}\n{plan}");
    }
}
