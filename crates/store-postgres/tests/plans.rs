//! The plans of the store's statements: none scans a growing table.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store_postgres::statements;
use support::{database, raw};
use tokio_postgres::Client;

/// Inserts ten thousand rows into every table that grows.
async fn grow(db: &Client) {
    let series = "generate_series(1, 10000) AS n";
    let tables = [
        format!(
            "INSERT INTO charges (tenant, id, amount_minor, captured, refunded, refunding, destination, created_at, revision, capture, asset, payment_method, status, provider, endpoint, metadata) \
            SELECT n % 9, n, 1, 0, 0, 0, 1, n, 1, true, 'USD', 'pm', 'processing', 'p', 'e', '{{}}' FROM {series}"
        ),
        format!(
            "INSERT INTO claims (id, tenant, subject, makes, fingerprint, request, created_at, fence, revision, attempts, state, replay_until, tombstone_until, sweep_at, status, media, body) \
            SELECT sha256(n::text::bytea), n % 9, n, 'charge', sha256('f'), substr(sha256('r'), 1, 16), n, 1, 1, 1, 'completed', n, n, n, 201, 'json', '' FROM {series}"
        ),
        format!(
            "INSERT INTO outbox (tenant, id, charge, version, step, due_at, created_at, generation, idle_calls, server_errors, first_sent_at, last_sent_at, revision, unknown, claim, flow, way, profile, endpoint, parked) \
            SELECT n % 9, n, n, 1, 0, n, n, 1, 0, 0, n, n, 1, n % 7 = 0, sha256('c'), 'charge', 'forward', 'p', 'e', CASE WHEN n % 9 = 0 THEN 'no_evidence' END FROM {series}"
        ),
        format!(
            "INSERT INTO operations (tenant, id, charge, kind, amount_minor, asset, status, created_at, revision) \
            SELECT n % 9, n, n / 3, CASE WHEN n % 2 = 0 THEN 'refund' ELSE 'capture' END, 1, 'USD', 'processing', n, 1 FROM {series}"
        ),
        format!(
            "INSERT INTO payouts (tenant, id, amount_minor, asset, account, metadata, status, provider, endpoint, created_at, revision) \
            SELECT n % 9, n, 1, 'USD', 1, '{{}}', 'processing', 'p', 'e', n, 1 FROM {series}"
        ),
        format!(
            "INSERT INTO audit_log SELECT n % 9, n / 3, substr(sha256(n::text::bytea), 1, 16), n, 1, 'claimed', '' FROM {series}"
        ),
        format!(
            "INSERT INTO accounts SELECT n % 9, n, 'c' || n, 'USD', 'debit', NULL, NULL, 1, 1, '{{}}', n, 1 FROM {series}"
        ),
        format!("INSERT INTO account_names SELECT n % 9, 'c' || n, n FROM {series}"),
        format!("INSERT INTO balances SELECT n % 9, n, 0, 0, 0, 0, 0, NULL, 1 FROM {series}"),
        format!(
            "BEGIN; INSERT INTO journal_transactions SELECT n % 9, n, 'transfer', NULL, 2, '{{}}', n FROM {series}; \
            INSERT INTO journal_entries SELECT n % 9, n, leg, n, n, (n + leg) % 500, 1, CASE leg WHEN 0 THEN 'debit' ELSE 'credit' END, 'posted', 'USD' FROM {series}, generate_series(0, 1) AS leg; COMMIT"
        ),
        format!("INSERT INTO reversals SELECT n % 9, n, n FROM {series}"),
        format!(
            "INSERT INTO holds (tenant, id, from_account, to_account, amount, asset, expires_at, state, metadata, created_at, revision) \
            SELECT n % 9, n, 1, 2, 1, 'USD', n, 'pending', '{{}}', n, 1 FROM {series}"
        ),
        format!("INSERT INTO snapshots SELECT n % 9, n % 500, n, n, 1, 0, 0, 0, 0 FROM {series}"),
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

/// The generic plan of a statement.
async fn plan(db: &Client, name: &str, sql: &str) -> String {
    db.batch_execute(&format!("PREPARE {name} AS {sql}"))
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let count = (1..=200).take_while(|parameter| sql.contains(&format!("${parameter}"))).count();
    let nothing = vec!["NULL"; count].join(", ");
    let lines = db.query(&format!("EXPLAIN EXECUTE {name}({nothing})"), &[]).await.unwrap();
    lines.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

/// Statements that read a whole table on purpose.
const WHOLE: [&str; 4] = [
    "FROM tenants AS t ORDER BY",
    "FROM api_keys AS t ORDER BY",
    "FROM slots AS t ORDER BY",
    "(SELECT count(*) FROM outbox",
];

#[tokio::test]
async fn no_statement_scans_a_growing_table() {
    let database = database().await;
    let db = raw(&database.url()).await;
    grow(&db).await;
    // The planner may choose any plan node, as in a session without the store's settings.
    db.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let all = statements();
    assert!(all.len() > 80, "{} statements", all.len());
    for (number, (name, sql)) in all.iter().enumerate() {
        if WHOLE.iter().any(|whole| sql.contains(whole)) {
            continue;
        }
        let plan = plan(&db, &format!("look_{number}"), sql).await;
        // `head` has one row, and `cursors` has one row per reader of the feed.
        let few = |line: &str| line.contains("on head") || line.contains("on cursors");
        let scans = plan.lines().filter(|line| line.contains("Seq Scan") && !few(line));
        assert_eq!(scans.count(), 0, "{name}: {sql}\n{plan}");
    }
}

#[tokio::test]
async fn lists_are_read_in_order_from_their_index() {
    let database = database().await;
    let db = raw(&database.url()).await;
    grow(&db).await;
    db.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
    let all = statements();
    for (number, (part, index)) in (1..).zip([
        ("FROM charges AS t WHERE t.tenant =", "charges_pkey"),
        ("FROM charges AS t WHERE (t.tenant", "charges_pkey"),
        ("FROM claims AS t WHERE (t.tenant", "claims_pkey"),
        ("FROM claims AS t WHERE t.sweep_at", "claims_by_sweep"),
        ("FROM audit_log AS t WHERE t.tenant", "audit_log_initial_pkey"),
        (
            "FROM journal_entries AS e WHERE e.tenant = $1 AND e.account = $2 AND e.position",
            "journal_entries_initial_tenant_account_position_transaction_idx",
        ),
        ("FROM snapshots AS t WHERE t.tenant", "snapshots_pkey"),
        ("FROM balances AS t WHERE (t.tenant", "balances_pkey"),
        ("FROM operations AS t WHERE t.tenant = $1 AND t.charge", "operations_by_charge"),
        ("FROM operations AS t WHERE t.kind", "refunds_by_tenant"),
        ("FROM payouts AS t WHERE t.tenant", "payouts_pkey"),
        ("FROM payouts AS t WHERE (t.tenant", "payouts_pkey"),
        ("FROM accounts AS t WHERE t.tenant", "accounts_pkey"),
        ("FROM journal_transactions AS t WHERE t.tenant", "journal_transactions_initial_pkey"),
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
