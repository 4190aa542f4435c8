-- Rows that are there get their owner, and every table the keys that the tenant leads, while servers go on: no table is locked
-- against readers or writers. It is no transaction. Each statement stands alone, may be broken off anywhere and be run again:
-- what was filled in stays so, few rows at a time.

SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_custom_plan
--;
-- By header: each is found by its key, and so are its entries.
DO $$
DECLARE
    done BIGINT := -9223372036854775808;
    upto BIGINT;
BEGIN
    LOOP
        SELECT max(id) INTO upto
        FROM (SELECT id FROM counterfoil.journal_transactions WHERE id > done ORDER BY id LIMIT 2000) AS few;
        EXIT WHEN upto IS NULL;
        UPDATE counterfoil.journal_entries AS t SET tenant = o.tenant
        FROM counterfoil.journal_transactions AS o WHERE o.id > done AND o.id <= upto AND t.transaction = o.id AND t.tenant IS NULL;
        COMMIT;
        done := upto;
    END LOOP;
END $$
--;
DO $$
DECLARE
    done BIGINT := -9223372036854775808;
    upto BIGINT;
BEGIN
    LOOP
        SELECT max(id) INTO upto
        FROM (SELECT id FROM counterfoil.journal_transactions WHERE id > done ORDER BY id LIMIT 2000) AS few;
        EXIT WHEN upto IS NULL;
        UPDATE counterfoil.reversals AS t SET tenant = o.tenant
        FROM counterfoil.journal_transactions AS o WHERE o.id > done AND o.id <= upto AND t.original = o.id AND t.tenant IS NULL;
        COMMIT;
        done := upto;
    END LOOP;
END $$
--;
DO $$
DECLARE
    done BIGINT := -9223372036854775808;
    upto BIGINT;
BEGIN
    LOOP
        SELECT max(id) INTO upto
        FROM (SELECT id FROM counterfoil.accounts WHERE id > done ORDER BY id LIMIT 2000) AS few;
        EXIT WHEN upto IS NULL;
        UPDATE counterfoil.balances AS t SET tenant = o.tenant, revision = t.revision + 1
        FROM counterfoil.accounts AS o WHERE o.id > done AND o.id <= upto AND t.account = o.id AND t.tenant IS NULL;
        COMMIT;
        done := upto;
    END LOOP;
END $$
--;
DO $$
DECLARE
    done BIGINT := -9223372036854775808;
    upto BIGINT;
BEGIN
    LOOP
        SELECT max(id) INTO upto
        FROM (SELECT id FROM counterfoil.accounts WHERE id > done ORDER BY id LIMIT 2000) AS few;
        EXIT WHEN upto IS NULL;
        UPDATE counterfoil.snapshots AS t SET tenant = o.tenant
        FROM counterfoil.accounts AS o WHERE o.id > done AND o.id <= upto AND t.account = o.id AND t.tenant IS NULL;
        COMMIT;
        done := upto;
    END LOOP;
END $$
--;
-- What is left is nobody's.
UPDATE counterfoil.journal_entries SET tenant = -9223372036854775808 WHERE tenant IS NULL
--;
UPDATE counterfoil.reversals SET tenant = -9223372036854775808 WHERE tenant IS NULL
--;
UPDATE counterfoil.balances SET tenant = -9223372036854775808, revision = revision + 1 WHERE tenant IS NULL
--;
UPDATE counterfoil.snapshots SET tenant = -9223372036854775808 WHERE tenant IS NULL
--;
ALTER TABLE counterfoil.journal_entries VALIDATE CONSTRAINT has_an_owner
--;
ALTER TABLE counterfoil.reversals VALIDATE CONSTRAINT has_an_owner
--;
ALTER TABLE counterfoil.balances VALIDATE CONSTRAINT has_an_owner
--;
ALTER TABLE counterfoil.snapshots VALIDATE CONSTRAINT has_an_owner
--;
-- What an interrupted attempt left half-built.
DO $$
DECLARE
    half TEXT;
BEGIN
    FOR half IN SELECT i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE NOT i.indisvalid AND c.relnamespace = 'counterfoil'::regnamespace LOOP
        EXECUTE 'DROP INDEX ' || half;
    END LOOP;
END $$
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS idempotency_keys_of_tenant ON counterfoil.idempotency_keys (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS charges_of_tenant ON counterfoil.charges (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS operations_of_tenant ON counterfoil.operations (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS payouts_of_tenant ON counterfoil.payouts (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS outbox_of_tenant ON counterfoil.outbox (tenant, id)
--;
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_doubt_on_charge ON counterfoil.outbox (charge, tenant, id) WHERE unknown AND charge IS NOT NULL
--;
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_doubt_on_payout ON counterfoil.outbox (payout, tenant, id) WHERE unknown AND payout IS NOT NULL
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS audit_log_of_tenant ON counterfoil.audit_log (tenant, subject, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS accounts_of_tenant ON counterfoil.accounts (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS balances_of_tenant ON counterfoil.balances (tenant, account, shard)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS journal_transactions_of_tenant ON counterfoil.journal_transactions (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS journal_entries_of_tenant ON counterfoil.journal_entries (tenant, transaction, leg)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS reversals_of_tenant ON counterfoil.reversals (tenant, original)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS holds_of_tenant ON counterfoil.holds (tenant, id)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS snapshots_of_tenant ON counterfoil.snapshots (tenant, account, position)
--;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS journal_entries_of_account ON counterfoil.journal_entries (tenant, account, position, transaction, leg)
--;
CREATE INDEX CONCURRENTLY IF NOT EXISTS operations_of_charge ON counterfoil.operations (tenant, charge, id)
--;
-- The same columns in the same order.
DROP INDEX CONCURRENTLY IF EXISTS counterfoil.charges_by_tenant
--;
DROP INDEX CONCURRENTLY IF EXISTS counterfoil.payouts_by_tenant
--;
DROP INDEX CONCURRENTLY IF EXISTS counterfoil.accounts_by_tenant
--;
DROP INDEX CONCURRENTLY IF EXISTS counterfoil.journal_transactions_by_tenant
--;
DROP INDEX CONCURRENTLY IF EXISTS counterfoil.holds_by_tenant
--;
RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin; RESET plan_cache_mode
